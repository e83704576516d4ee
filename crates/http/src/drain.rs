//! Limits the requests in flight, and drains them on a graceful shutdown.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use tokio::sync::{Notify, watch};

/// The stages of a graceful shutdown.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum Stage {
    /// Requests are accepted.
    Open,
    /// New requests are rejected, those in flight are completed.
    Draining,
    /// The drain time-out has passed: requests in flight are aborted, new ones are still rejected
    /// with a response.
    Cutoff,
    /// The listener ends, and connections with it.
    Closing,
}

/// The number of requests in flight, plus [`DRAINING`] while the node drains: one atomic counter,
/// so that a request costs one addition and one subtraction and there is no race between counting
/// and draining.
#[derive(Debug)]
struct Inflight {
    count: AtomicU64,
    max: u64,
    /// Notified when the last request ends while the node drains.
    idle: Notify,
}

/// Added to the counter when the node drains; larger than any limit.
const DRAINING: u64 = 1 << 32;

/// Drains and closes the [`RequestGate`]s of a node.
#[derive(Debug)]
pub struct DrainController {
    stage: watch::Sender<Stage>,
    inflight: Arc<Inflight>,
}

impl DrainController {
    /// Creates a controller that admits at most `max_in_flight` requests at a time.
    pub fn new(max_in_flight: u32) -> Self {
        let (count, max) = (AtomicU64::new(0), u64::from(max_in_flight));
        let inflight = Arc::new(Inflight { count, max, idle: Notify::new() });
        Self { stage: watch::Sender::new(Stage::Open), inflight }
    }

    /// Returns a gate that this controller drains and closes.
    pub fn gate(&self) -> RequestGate {
        RequestGate { stage: self.stage.subscribe(), inflight: self.inflight.clone() }
    }

    /// Rejects new requests from now on and waits for those in flight. After `timeout`, aborts the
    /// remaining ones and returns true.
    pub async fn drain(&self, timeout: Duration) -> bool {
        self.inflight.count.fetch_or(DRAINING, Ordering::AcqRel);
        self.stage.send_replace(Stage::Draining);
        let idle = async {
            while self.inflight.count.load(Ordering::Acquire) != DRAINING {
                self.inflight.idle.notified().await;
            }
        };
        let late = tokio::time::timeout(timeout, idle).await.is_err();
        if late {
            self.stage.send_replace(Stage::Cutoff);
        }
        late
    }

    /// Ends the listener and all connections.
    pub fn close(&self) {
        self.stage.send_replace(Stage::Closing);
    }
}

/// Admits requests, and tells connections about the stage of a shutdown.
#[derive(Clone, Debug)]
pub struct RequestGate {
    stage: watch::Receiver<Stage>,
    inflight: Arc<Inflight>,
}

/// The permit of one request in flight. Dropping it ends the request.
#[derive(Debug)]
pub struct RequestPermit(Arc<Inflight>);

impl RequestGate {
    /// Returns a permit for one request, or `None` when the limit is reached or the node drains.
    pub(crate) fn try_enter(&self) -> Option<RequestPermit> {
        let before = self.inflight.count.fetch_add(1, Ordering::AcqRel);
        // A rejected request drops its permit at once.
        let permit = RequestPermit(self.inflight.clone());
        (before < self.inflight.max).then_some(permit)
    }

    /// Returns whether the node rejects new requests because it shuts down.
    pub fn is_draining(&self) -> bool {
        self.inflight.count.load(Ordering::Acquire) >= DRAINING
    }

    /// Completes when new requests are rejected.
    pub async fn draining(&mut self) {
        self.reached(Stage::Draining).await;
    }

    /// Completes when requests in flight are aborted. Never completes if all of them ended in time,
    /// since only rejections are in flight then.
    pub(crate) async fn cutoff(&mut self) {
        drop(self.stage.wait_for(|s| *s == Stage::Cutoff).await);
    }

    /// Completes when the listener ends.
    pub(crate) async fn closing(&mut self) {
        self.reached(Stage::Closing).await;
    }

    /// Waits for a stage. A dropped controller counts as closed.
    async fn reached(&mut self, stage: Stage) {
        drop(self.stage.wait_for(|s| *s >= stage).await);
    }
}

impl Drop for RequestPermit {
    fn drop(&mut self) {
        if self.0.count.fetch_sub(1, Ordering::AcqRel) == DRAINING + 1 {
            self.0.idle.notify_one();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn requests_in_flight_are_limited() {
        let controller = DrainController::new(2);
        let gate = controller.gate();
        let (first, second) = (gate.try_enter(), gate.try_enter());
        assert!(first.is_some() && second.is_some() && gate.try_enter().is_none());
        drop(first);
        assert!(gate.try_enter().is_some());
    }

    #[tokio::test(start_paused = true)]
    async fn draining_waits_for_requests_in_flight_and_rejects_new_ones() {
        let controller = DrainController::new(2);
        let mut gate = controller.gate();
        let inside = controller.gate();
        let permit = inside.try_enter();
        let leave = async {
            gate.draining().await;
            tokio::time::sleep(Duration::from_secs(5)).await;
            assert!(gate.try_enter().is_none());
            drop(permit);
        };
        let (late, ()) = tokio::join!(controller.drain(Duration::from_secs(10)), leave);
        assert!(!late && inside.try_enter().is_none());
    }

    #[tokio::test(start_paused = true)]
    async fn rejections_are_not_aborted_when_all_requests_ended_in_time() {
        let controller = DrainController::new(2);
        let mut gate = controller.gate();
        assert!(!controller.drain(Duration::from_secs(10)).await);
        controller.close();
        gate.closing().await;
        assert!(tokio::time::timeout(Duration::from_secs(60), gate.cutoff()).await.is_err());
    }

    #[tokio::test(start_paused = true)]
    async fn slow_requests_reach_the_cutoff() {
        let controller = DrainController::new(2);
        let mut gate = controller.gate();
        let inside = controller.gate();
        let _permit = inside.try_enter();
        assert!(controller.drain(Duration::from_secs(10)).await);
        gate.cutoff().await;
        controller.close();
        gate.closing().await;
    }
}
