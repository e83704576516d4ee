//! Whose turn it is on a connection: ours while a request waits for its answer, else the client's.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::time::Instant;

/// Whose turn it is, and since when.
///
/// hyper has such a limit for HTTP/1 too, but makes a new timer for each request; here one serves the connection.
#[derive(Clone)]
pub(crate) struct Turn(Arc<Mutex<State>>);

struct State {
    /// Requests that wait for their answer.
    asked: usize,
    /// When the last answer was ready, or the connection began.
    since: Instant,
}

/// A request that waits for its answer, until this is dropped.
pub(crate) struct Asked(Turn);

impl Turn {
    /// The client begins.
    pub(crate) fn new() -> Self {
        Self(Arc::new(Mutex::new(State { asked: 0, since: Instant::now() })))
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A request has come.
    pub(crate) fn begin(&self) -> Asked {
        self.state().asked += 1;
        Asked(self.clone())
    }

    pub(crate) fn is_ours(&self) -> bool {
        self.state().asked > 0
    }

    /// Comes back when the client has let its turn pass.
    pub(crate) async fn forgotten(&self, patience: Duration) {
        loop {
            let left = {
                let state = self.state();
                let spent = if state.asked > 0 { Duration::ZERO } else { state.since.elapsed() };
                patience.saturating_sub(spent)
            };
            if left.is_zero() {
                return;
            }
            tokio::time::sleep(left).await;
        }
    }
}

impl Drop for Asked {
    fn drop(&mut self) {
        let mut state = self.0.state();
        state.asked -= 1;
        state.since = Instant::now();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PATIENCE: Duration = Duration::from_secs(60);

    #[tokio::test(start_paused = true)]
    async fn who_lets_their_turn_pass_is_forgotten() {
        let (turn, begun) = (Turn::new(), Instant::now());
        turn.forgotten(PATIENCE).await;
        assert_eq!(begun.elapsed().as_secs(), PATIENCE.as_secs());
    }

    #[tokio::test(start_paused = true)]
    async fn nobody_is_forgotten_while_we_answer_or_soon_after() {
        let turn = Turn::new();
        let answers = async {
            for _ in 0..5 {
                tokio::time::sleep(PATIENCE / 2).await;
                let (first, second) = (turn.begin(), turn.begin());
                tokio::time::sleep(PATIENCE * 2).await;
                drop(first);
                tokio::time::sleep(PATIENCE * 2).await;
                assert!(turn.is_ours());
                drop(second);
                assert!(!turn.is_ours());
            }
            Instant::now()
        };
        let (last, ()) = tokio::join!(answers, turn.forgotten(PATIENCE));
        assert!(last.elapsed() >= PATIENCE, "forgotten {:?} after an answer", last.elapsed());
        assert!(last.elapsed() <= PATIENCE * 2, "forgotten late: {:?}", last.elapsed());
    }
}
