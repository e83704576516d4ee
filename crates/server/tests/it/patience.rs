//! Waiting for a condition: often looked at, never for ever.

use std::time::{Duration, Instant};

/// Long enough for anything that should happen, however busy the machine is.
pub(crate) const PATIENCE: Duration = Duration::from_secs(40);

/// Looks until there is something to see.
pub(crate) fn eventually<T>(what: &str, look: impl FnMut() -> Option<T>) -> T {
    within(PATIENCE, look).unwrap_or_else(|| panic!("in vain: {what}"))
}

/// Looks until there is something to see, or the time is over.
pub(crate) fn within<T>(time: Duration, mut look: impl FnMut() -> Option<T>) -> Option<T> {
    let begun = Instant::now();
    loop {
        let seen = look();
        if seen.is_some() || begun.elapsed() > time {
            return seen;
        }
        pause(Duration::from_millis(10));
    }
}

/// The time between two looks.
#[expect(clippy::disallowed_methods, reason = "what is waited for is in another process")]
pub(crate) fn pause(time: Duration) {
    std::thread::sleep(time);
}
