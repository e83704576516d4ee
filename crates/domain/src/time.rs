//! Timestamps in milliseconds, and the injected clock.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

/// A point in time, in milliseconds since 1970 in UTC, as stored in the database.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct Timestamp(pub i64);

impl Timestamp {
    /// Returns the milliseconds since 1970.
    pub const fn millis(self) -> i64 {
        self.0
    }

    /// Returns the timestamp that is `d` later; `d` is truncated to milliseconds.
    pub fn after(self, d: Duration) -> Self {
        Self(self.0.saturating_add(i64::try_from(d.as_millis()).unwrap_or(i64::MAX)))
    }

    /// Returns the timestamp that is `d` earlier; `d` is truncated to milliseconds.
    pub fn before(self, d: Duration) -> Self {
        Self(self.0.saturating_sub(i64::try_from(d.as_millis()).unwrap_or(i64::MAX)))
    }

    /// Returns the time elapsed since `earlier`, or zero if `earlier` is later.
    pub fn since(self, earlier: Self) -> Duration {
        Duration::from_millis(u64::try_from(self.0.saturating_sub(earlier.0)).unwrap_or(0))
    }
}

/// Formats as RFC 3339 in UTC with milliseconds, as everywhere on the wire:
/// `2026-11-20T09:00:00.000Z`.
impl fmt::Display for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match jiff::Timestamp::from_millisecond(self.0) {
            Ok(t) => write!(f, "{t:.3}"),
            Err(_) => write!(f, "{}ms", self.0),
        }
    }
}

/// Parses RFC 3339 with any offset: `2026-11-20T09:00:00Z`. Seconds may be omitted.
impl FromStr for Timestamp {
    type Err = BadTimestamp;

    fn from_str(text: &str) -> Result<Self, BadTimestamp> {
        let (local, offset) = split_offset(text).ok_or(BadTimestamp)?;
        let (date, time) = local.split_at_checked(DATE_LENGTH).ok_or(BadTimestamp)?;
        let is_time = |c: char| c.is_ascii_digit() || c == ':' || c == '.';
        let time = time.strip_prefix(['T', 't', ' ']).ok_or(BadTimestamp)?;
        if !time.chars().all(is_time) {
            return Err(BadTimestamp);
        }
        let time: jiff::civil::Time = time.parse().map_err(|_| BadTimestamp)?;
        let within = time.duration_since(jiff::civil::Time::midnight());
        let within = i64::try_from(within.as_millis()).map_err(|_| BadTimestamp)?;
        Ok(Self(Day::parse(date)?.start.0 + within - offset))
    }
}

/// The length of a date: `2026-11-20`.
const DATE_LENGTH: usize = 10;
const DAY: i64 = 86_400_000;

/// Splits off the offset from UTC at the end of a timestamp, in milliseconds: `Z`, or less than a
/// day, in hours and minutes.
fn split_offset(text: &str) -> Option<(&str, i64)> {
    if let Some(local) = text.strip_suffix(['Z', 'z']) {
        return Some((local, 0));
    }
    let (local, offset) = text.split_at_checked(text.len().checked_sub("+00:00".len())?)?;
    let sign = match offset.get(..1)? {
        "+" => 1,
        "-" => -1,
        _ => return None,
    };
    let (hours, minutes) = offset.get(1..)?.split_once(':')?;
    let number = |digits: &str, end: i64| {
        let is_number = digits.len() == 2 && digits.bytes().all(|b| b.is_ascii_digit());
        digits.parse().ok().filter(|n: &i64| is_number && *n < end)
    };
    Some((local, sign * (number(hours, 24)? * 60 + number(minutes, 60)?) * 60_000))
}

/// A day in UTC.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Day {
    /// The first millisecond.
    pub start: Timestamp,
    /// The first millisecond of the next day.
    pub end: Timestamp,
}

impl Day {
    /// Parses a date: `2026-11-20`. Returns an error for any other notation.
    pub fn parse(text: &str) -> Result<Self, BadTimestamp> {
        let is_date = text.len() == DATE_LENGTH && text.split('-').map(str::len).eq([4, 2, 2]);
        let date: jiff::civil::Date =
            is_date.then_some(text).ok_or(BadTimestamp)?.parse().map_err(|_| BadTimestamp)?;
        // The calculation covers all days, while the times of the library end before the last one.
        let days = date.duration_since(jiff::civil::date(1970, 1, 1)).as_hours() / 24;
        let start = days * DAY;
        Ok(Self { start: Timestamp(start), end: Timestamp(start + DAY) })
    }
}

/// The error of an invalid timestamp.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error("invalid time: use RFC 3339 with an offset, like 2026-11-20T09:00:00Z")]
pub struct BadTimestamp;

/// The clocks of the machine. Injected, so that tests control the time.
pub trait Clock: Send + Sync + 'static {
    /// Returns the current time by the wall clock, which can be set.
    fn now(&self) -> Timestamp;

    /// Returns the time since some fixed point by a clock that is never set.
    fn monotonic(&self) -> Duration;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn milliseconds_are_always_formatted() {
        assert_eq!(Timestamp(0).to_string(), "1970-01-01T00:00:00.000Z");
        assert_eq!(Timestamp(1_795_165_200_120).to_string(), "2026-11-20T09:00:00.120Z");
    }

    #[test]
    fn timestamps_are_parsed_with_any_offset() {
        let at = Timestamp(1_795_165_200_120);
        for text in [
            "2026-11-20T09:00:00.120Z",
            "2026-11-20t09:00:00.12z",
            "2026-11-20 09:00:00.120999+00:00",
            "2026-11-20T10:30:00.12+01:30",
            "2026-11-19T09:01:00.120-23:59",
        ] {
            assert_eq!(text.parse(), Ok(at), "{text}");
        }
        assert_eq!("2026-11-20T09:00Z".parse(), Ok(Timestamp(1_795_165_200_000)));
        assert_eq!("1969-12-31T23:59:59.999Z".parse(), Ok(Timestamp(-1)));
        let (first, last) = (Timestamp(-62_167_219_200_000), Timestamp(253_402_300_799_000));
        assert_eq!("0000-01-01T00:00:00Z".parse(), Ok(first));
        assert_eq!("9999-12-31T23:59:59Z".parse(), Ok(last));
        assert_eq!("9999-12-31T23:59:59-23:59".parse(), Ok(Timestamp(last.0 + 86_340_000)));
    }

    #[test]
    fn other_notations_are_rejected() {
        for text in [
            "",
            "Z",
            "today",
            "2026-11-20",
            "2026-11-20Z",
            "2026-11-20T09:00:00",
            "2026-11-20T09:00:00+25:00",
            "2026-11-20T09:00:00+24:00",
            "2026-11-20T09:00:00+01:60",
            "2026-11-20T09:00:00+0100",
            "2026-11-20T09:00:00+1:000",
            "2026-11-20T09:00:00+01:00+01:00",
            "2026-11-20T09:00:00+01:00[Europe/Paris]",
            "2026-11-20T24:00:00Z",
            "2026-11-31T09:00:00Z",
            "20261120T090000Z",
            "+002026-11-20T09:00:00Z",
            "2026-11-20T09:00:00日Z",
            "2026-11-2日T09:00:00+01:00",
        ] {
            assert_eq!(text.parse::<Timestamp>(), Err(BadTimestamp), "{text}");
        }
    }

    #[test]
    fn a_day_is_24_hours_in_utc() {
        let day = Day::parse("2026-11-22").unwrap();
        assert_eq!(day.start.to_string(), "2026-11-22T00:00:00.000Z");
        assert_eq!(day.end.to_string(), "2026-11-23T00:00:00.000Z");
        assert_eq!(Day::parse("9999-12-31").unwrap().end, Timestamp(253_402_300_800_000));
        for text in ["", "2026-11-31", "20261122", "2026-11-2", "2026-1-022", "2026-W47-7"] {
            assert_eq!(Day::parse(text), Err(BadTimestamp), "{text}");
        }
    }
}
