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

/// Parses RFC 3339 with any offset: `2026-11-20T09:00:00Z`.
impl FromStr for Timestamp {
    type Err = BadTimestamp;

    fn from_str(text: &str) -> Result<Self, BadTimestamp> {
        let at: jiff::Timestamp = text.parse().map_err(|_| BadTimestamp)?;
        Ok(Self(at.as_millisecond()))
    }
}

/// The error of an invalid timestamp.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error("invalid timestamp: use RFC 3339 with an offset, like 2026-11-20T09:00:00Z")]
pub struct BadTimestamp;

/// The wall clock. Injected, so that tests control the time.
pub trait Clock: Send + Sync + 'static {
    /// Returns the current time.
    fn now(&self) -> Timestamp;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn milliseconds_are_always_formatted() {
        assert_eq!(Timestamp(0).to_string(), "1970-01-01T00:00:00.000Z");
        assert_eq!(Timestamp(1_795_165_200_120).to_string(), "2026-11-20T09:00:00.120Z");
    }
}
