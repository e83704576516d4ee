//! Time: instants in milliseconds, and the clock that is handed in.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

/// An instant in UTC, in milliseconds since 1970: what the database stores and the API prints.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct Timestamp(pub i64);

impl Timestamp {
    /// Milliseconds since 1970.
    pub const fn millis(self) -> i64 {
        self.0
    }

    /// This instant, later by `d` (which is cut to whole milliseconds).
    pub fn after(self, d: Duration) -> Self {
        Self(self.0.saturating_add(i64::try_from(d.as_millis()).unwrap_or(i64::MAX)))
    }

    /// This instant, earlier by `d` (which is cut to whole milliseconds).
    pub fn before(self, d: Duration) -> Self {
        Self(self.0.saturating_sub(i64::try_from(d.as_millis()).unwrap_or(i64::MAX)))
    }

    /// How long after `earlier` this instant is; zero when it is not.
    pub fn since(self, earlier: Self) -> Duration {
        Duration::from_millis(u64::try_from(self.0.saturating_sub(earlier.0)).unwrap_or(0))
    }
}

/// RFC 3339 in UTC with milliseconds, as everywhere on the wire: `2026-11-20T09:00:00.000Z`.
impl fmt::Display for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match jiff::Timestamp::from_millisecond(self.0) {
            Ok(t) => write!(f, "{t:.3}"),
            Err(_) => write!(f, "{}ms", self.0),
        }
    }
}

/// Reads RFC 3339 with any offset: `2026-11-20T09:00:00Z`.
impl FromStr for Timestamp {
    type Err = BadTime;

    fn from_str(text: &str) -> Result<Self, BadTime> {
        let at: jiff::Timestamp = text.parse().map_err(|_| BadTime)?;
        Ok(Self(at.as_millisecond()))
    }
}

/// Why a text is no instant.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error("this is no instant: write it with its offset from UTC, like 2026-11-20T09:00:00Z")]
pub struct BadTime;

/// The wall clock. Handed in, so that tests travel in time.
pub trait Clock: Send + Sync + 'static {
    /// The present instant.
    fn now(&self) -> Timestamp;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prints_milliseconds_even_when_they_are_zero() {
        assert_eq!(Timestamp(0).to_string(), "1970-01-01T00:00:00.000Z");
        assert_eq!(Timestamp(1_795_165_200_120).to_string(), "2026-11-20T09:00:00.120Z");
    }
}
