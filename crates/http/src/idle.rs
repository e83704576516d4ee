//! The idle time-out of a connection: the time during which no request is waiting for a response.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::time::Instant;

/// Tracks the requests in flight on a connection, and since when it has been idle.
///
/// hyper has such a time-out for HTTP/1 too, but creates a timer for each request; here one serves
/// the connection.
#[derive(Clone)]
pub(crate) struct IdleTracker(Arc<Mutex<State>>);

struct State {
    /// The number of requests that are waiting for a response.
    active: usize,
    /// The time of the last response, or of the start of the connection.
    since: Instant,
}

/// A request that is waiting for its response, until this is dropped.
pub(crate) struct ActiveRequest(IdleTracker);

impl IdleTracker {
    /// Creates a tracker for a new, idle connection.
    pub(crate) fn new() -> Self {
        Self(Arc::new(Mutex::new(State { active: 0, since: Instant::now() })))
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Records the start of a request.
    pub(crate) fn begin_request(&self) -> ActiveRequest {
        self.state().active += 1;
        ActiveRequest(self.clone())
    }

    pub(crate) fn is_busy(&self) -> bool {
        self.state().active > 0
    }

    /// Completes when the connection has been idle for `timeout`.
    pub(crate) async fn idle_for(&self, timeout: Duration) {
        loop {
            let left = {
                let state = self.state();
                let idle = if state.active > 0 { Duration::ZERO } else { state.since.elapsed() };
                timeout.saturating_sub(idle)
            };
            if left.is_zero() {
                return;
            }
            tokio::time::sleep(left).await;
        }
    }
}

impl Drop for ActiveRequest {
    fn drop(&mut self) {
        let mut state = self.0.state();
        state.active -= 1;
        state.since = Instant::now();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TIMEOUT: Duration = Duration::from_secs(60);

    #[tokio::test(start_paused = true)]
    async fn idle_connection_times_out() {
        let (tracker, begun) = (IdleTracker::new(), Instant::now());
        tracker.idle_for(TIMEOUT).await;
        assert_eq!(begun.elapsed().as_secs(), TIMEOUT.as_secs());
    }

    #[tokio::test(start_paused = true)]
    async fn connection_does_not_time_out_during_or_soon_after_a_request() {
        let tracker = IdleTracker::new();
        let answers = async {
            for _ in 0..5 {
                tokio::time::sleep(TIMEOUT / 2).await;
                let (first, second) = (tracker.begin_request(), tracker.begin_request());
                tokio::time::sleep(TIMEOUT * 2).await;
                drop(first);
                tokio::time::sleep(TIMEOUT * 2).await;
                assert!(tracker.is_busy());
                drop(second);
                assert!(!tracker.is_busy());
            }
            Instant::now()
        };
        let (last, ()) = tokio::join!(answers, tracker.idle_for(TIMEOUT));
        assert!(last.elapsed() >= TIMEOUT, "timed out {:?} after a response", last.elapsed());
        assert!(last.elapsed() <= TIMEOUT * 2, "timed out late: {:?}", last.elapsed());
    }
}
