//! One timer for all deadlines of a session.

use std::pin::Pin;
use tokio::time::{Instant, Sleep, sleep_until};

/// A timer that may fire early but never late: its owner checks the clock anyway. Resetting a timer
/// in each iteration of a loop is more expensive than an occasional early wake-up.
#[derive(Debug)]
pub(crate) struct Timer(Pin<Box<Sleep>>);

impl Timer {
    pub(crate) fn new() -> Self {
        Self(Box::pin(sleep_until(Instant::now())))
    }

    /// Makes the timer fire at `at` or earlier.
    pub(crate) fn set(&mut self, at: Instant) {
        if self.0.is_elapsed() || at < self.0.deadline() {
            self.0.as_mut().reset(at);
        }
    }

    /// Waits until the timer fires.
    pub(crate) async fn wait(&mut self) {
        self.0.as_mut().await;
    }
}
