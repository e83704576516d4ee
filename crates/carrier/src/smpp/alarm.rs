//! One timer for everything that a session waits for.

use std::pin::Pin;
use tokio::time::{Instant, Sleep, sleep_until};

/// A timer that may ring early, but never late: whoever waits for it looks at the clock anyway.
/// Setting a timer costs something at every turn of a loop; a false ring costs a turn now and then.
#[derive(Debug)]
pub(crate) struct Alarm(Pin<Box<Sleep>>);

impl Alarm {
    pub(crate) fn new() -> Self {
        Self(Box::pin(sleep_until(Instant::now())))
    }

    /// Makes it ring at `at` or earlier.
    pub(crate) fn set(&mut self, at: Instant) {
        if self.0.is_elapsed() || at < self.0.deadline() {
            self.0.as_mut().reset(at);
        }
    }

    /// Waits for it.
    pub(crate) async fn ring(&mut self) {
        self.0.as_mut().await;
    }
}
