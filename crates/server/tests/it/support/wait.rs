//! Waits for a condition with a timeout.

use std::time::{Duration, Instant};

/// The timeout, which is long enough for busy machines.
pub(crate) const TIMEOUT: Duration = Duration::from_secs(40);

/// Repeats `look` until it returns a value; panics after the timeout.
pub(crate) fn eventually<T>(what: &str, look: impl FnMut() -> Option<T>) -> T {
    within(TIMEOUT, look).unwrap_or_else(|| panic!("timeout while waiting: {what}"))
}

/// Repeats `look` until it returns a value, or until `time` is over.
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

/// Pauses the thread.
#[expect(clippy::disallowed_methods, reason = "the condition is in another process")]
pub(crate) fn pause(time: Duration) {
    std::thread::sleep(time);
}
