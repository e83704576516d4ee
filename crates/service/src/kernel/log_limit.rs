//! A limit for warnings that a loop or many requests repeat while something is out of order.

use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// The time between two warnings.
const INTERVAL: Duration = Duration::from_secs(10);

/// The limit of one warning: it is logged at most once in ten seconds, with the number of those that
/// were omitted since.
#[derive(Debug, Default)]
pub struct LogLimit(Mutex<Recent>);

#[derive(Debug, Default)]
struct Recent {
    logged: Option<Instant>,
    omitted: u64,
}

impl LogLimit {
    /// Creates the limit of a warning that was not logged yet.
    pub const fn new() -> Self {
        Self(Mutex::new(Recent { logged: None, omitted: 0 }))
    }

    /// Returns the number of warnings that were omitted since the last one, or `None` if this one has
    /// to be omitted too.
    pub fn admit(&self) -> Option<u64> {
        self.admit_at(Instant::now())
    }

    fn admit_at(&self, now: Instant) -> Option<u64> {
        let mut recent = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if recent.logged.is_some_and(|at| now.saturating_duration_since(at) < INTERVAL) {
            recent.omitted += 1;
            return None;
        }
        recent.logged = Some(now);
        Some(std::mem::take(&mut recent.omitted))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_warning_in_ten_seconds_counts_the_others() {
        let (limit, start) = (LogLimit::new(), Instant::now());
        let at = |seconds| limit.admit_at(start + Duration::from_secs(seconds));
        assert_eq!(
            [0, 1, 9, 10, 11, 25, 40].map(at),
            [Some(0), None, None, Some(2), None, Some(1), Some(0)]
        );
    }
}
