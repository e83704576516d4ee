//! Who may come in: no more requests than the node can carry, and no new ones once it goes.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use tokio::sync::{Notify, watch};

/// How far the node is on its way out.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum Stage {
    /// Requests are welcome.
    Open,
    /// New requests are refused, those that have begun are answered.
    Draining,
    /// Those that have not been answered yet are cut off; new ones are still refused in words.
    Late,
    /// No new connections.
    Closing,
}

/// Requests that are in, and above them [`DRAINING`]: one number, so that each request costs one addition and
/// one subtraction, and none slips in between.
#[derive(Debug)]
struct Count {
    inside: AtomicU64,
    most: u64,
    /// Told when the last one has left while the node drains.
    empty: Notify,
}

/// Added to the count when the node drains: more than anybody lets in.
const DRAINING: u64 = 1 << 32;

/// Opens and closes the gates: for whoever starts and stops the node.
#[derive(Debug)]
pub struct GateKeeper {
    stage: watch::Sender<Stage>,
    count: Arc<Count>,
}

impl GateKeeper {
    /// Lets in so many requests at once.
    pub fn new(max_in_flight: u32) -> Self {
        let (inside, most) = (AtomicU64::new(0), u64::from(max_in_flight));
        let count = Arc::new(Count { inside, most, empty: Notify::new() });
        Self { stage: watch::Sender::new(Stage::Open), count }
    }

    /// A gate that this keeper opens and closes.
    pub fn gate(&self) -> Gate {
        Gate { stage: self.stage.subscribe(), count: self.count.clone() }
    }

    /// Lets no new request in and waits until all that are in are answered; cuts off those that are not by
    /// then, and says whether that was needed. Whoever asks from now on is refused in words.
    pub async fn drain(&self, patience: Duration) -> bool {
        self.count.inside.fetch_or(DRAINING, Ordering::AcqRel);
        self.stage.send_replace(Stage::Draining);
        let empty = async {
            while self.count.inside.load(Ordering::Acquire) != DRAINING {
                self.count.empty.notified().await;
            }
        };
        let late = tokio::time::timeout(patience, empty).await.is_err();
        if late {
            self.stage.send_replace(Stage::Late);
        }
        late
    }

    /// Ends the listener, and with it all connections.
    pub fn close(&self) {
        self.stage.send_replace(Stage::Closing);
    }
}

/// What each request passes.
#[derive(Clone, Debug)]
pub struct Gate {
    stage: watch::Receiver<Stage>,
    count: Arc<Count>,
}

/// Room for one request, until it is dropped.
pub(crate) struct Permit<'a>(&'a Count);

impl Gate {
    /// Room for one request; none when the node is full, or on its way out.
    pub(crate) fn enter(&self) -> Option<Permit<'_>> {
        let before = self.count.inside.fetch_add(1, Ordering::AcqRel);
        // Who finds no room leaves again.
        let permit = Permit(&self.count);
        (before < self.count.most).then_some(permit)
    }

    pub(crate) fn is_draining(&self) -> bool {
        self.count.inside.load(Ordering::Acquire) >= DRAINING
    }

    /// Comes back when new requests are refused.
    pub(crate) async fn draining(&mut self) {
        self.reached(Stage::Draining).await;
    }

    /// Comes back when requests that are not answered yet are cut off: not when the listener ends in time, since
    /// then nothing is under way but refusals.
    pub(crate) async fn late(&mut self) {
        drop(self.stage.wait_for(|s| *s == Stage::Late).await);
    }

    /// Comes back when the listener ends.
    pub(crate) async fn closing(&mut self) {
        self.reached(Stage::Closing).await;
    }

    /// A keeper that is gone has closed.
    async fn reached(&mut self, stage: Stage) {
        drop(self.stage.wait_for(|s| *s >= stage).await);
    }
}

impl Drop for Permit<'_> {
    fn drop(&mut self) {
        if self.0.inside.fetch_sub(1, Ordering::AcqRel) == DRAINING + 1 {
            self.0.empty.notify_one();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn no_more_come_in_than_there_is_room_for() {
        let keeper = GateKeeper::new(2);
        let gate = keeper.gate();
        let (first, second) = (gate.enter(), gate.enter());
        assert!(first.is_some() && second.is_some() && gate.enter().is_none());
        drop(first);
        assert!(gate.enter().is_some());
    }

    #[tokio::test(start_paused = true)]
    async fn draining_waits_for_who_is_in_and_lets_nobody_in() {
        let keeper = GateKeeper::new(2);
        let mut gate = keeper.gate();
        let inside = keeper.gate();
        let permit = inside.enter();
        let leave = async {
            gate.draining().await;
            tokio::time::sleep(Duration::from_secs(5)).await;
            assert!(gate.enter().is_none());
            drop(permit);
        };
        let (late, ()) = tokio::join!(keeper.drain(Duration::from_secs(10)), leave);
        assert!(!late && inside.enter().is_none());
    }

    #[tokio::test(start_paused = true)]
    async fn refusals_are_not_cut_off_when_all_have_left_in_time() {
        let keeper = GateKeeper::new(2);
        let mut gate = keeper.gate();
        assert!(!keeper.drain(Duration::from_secs(10)).await);
        keeper.close();
        gate.closing().await;
        assert!(tokio::time::timeout(Duration::from_secs(60), gate.late()).await.is_err());
    }

    #[tokio::test(start_paused = true)]
    async fn who_does_not_leave_is_late() {
        let keeper = GateKeeper::new(2);
        let mut gate = keeper.gate();
        let inside = keeper.gate();
        let _permit = inside.enter();
        assert!(keeper.drain(Duration::from_secs(10)).await);
        gate.late().await;
        keeper.close();
        gate.closing().await;
    }
}
