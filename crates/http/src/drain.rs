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

/// The requests of a node. Both counters are atomic, so that a request costs a few additions and
/// there is no race between counting and draining.
#[derive(Debug)]
struct Requests {
    /// Requests without a response, plus [`DRAINING`] while the node drains: those in flight, and
    /// those whose body is still arriving.
    open: AtomicU64,
    /// The requests in flight.
    in_flight: AtomicU64,
    max_in_flight: u64,
    /// Notified when the last request ends while the node drains.
    idle: Notify,
}

/// Added to the counter when the node drains; larger than any limit.
const DRAINING: u64 = 1 << 32;

/// The requests whose body may be arriving, for each request that may be in flight: they need
/// little but memory.
const OPEN_PER_IN_FLIGHT: u64 = 16;

/// Drains and closes the [`RequestGate`]s of a node.
#[derive(Debug)]
pub struct DrainController {
    stage: watch::Sender<Stage>,
    requests: Arc<Requests>,
}

impl DrainController {
    /// Creates a controller that admits at most `max_in_flight` requests at a time.
    pub fn new(max_in_flight: u32) -> Self {
        let requests = Arc::new(Requests {
            open: AtomicU64::new(0),
            in_flight: AtomicU64::new(0),
            max_in_flight: max_in_flight.into(),
            idle: Notify::new(),
        });
        Self { stage: watch::Sender::new(Stage::Open), requests }
    }

    /// Returns a gate that this controller drains and closes.
    pub fn gate(&self) -> RequestGate {
        RequestGate { stage: self.stage.subscribe(), requests: self.requests.clone() }
    }

    /// Rejects new requests from now on and waits for those that have begun. After `timeout`,
    /// aborts the remaining ones and returns true.
    pub async fn drain(&self, timeout: Duration) -> bool {
        self.requests.open.fetch_or(DRAINING, Ordering::AcqRel);
        self.stage.send_replace(Stage::Draining);
        let idle = async {
            while self.requests.open.load(Ordering::Acquire) != DRAINING {
                self.requests.idle.notified().await;
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
    requests: Arc<Requests>,
}

/// The permit of one request. Dropping it ends the request.
#[derive(Debug)]
pub struct RequestPermit {
    requests: Arc<Requests>,
    in_flight: bool,
}

impl RequestGate {
    /// Returns a permit for a request that begins, or `None` when the node drains or has too many
    /// of them. [`RequestPermit::start`] follows when its body is complete.
    pub fn try_open(&self) -> Option<RequestPermit> {
        let before = self.requests.open.fetch_add(1, Ordering::AcqRel);
        // A rejected request drops its permit at once.
        let permit = RequestPermit { requests: self.requests.clone(), in_flight: false };
        (before < self.requests.max_in_flight * OPEN_PER_IN_FLIGHT).then_some(permit)
    }

    /// Returns the requests that one client, or one account, may have open: a quarter of those that
    /// may be in flight, so that none can use up the places of the others.
    pub fn max_open_share(&self) -> usize {
        usize::try_from(self.requests.max_in_flight.div_ceil(4)).unwrap_or(usize::MAX)
    }

    /// Returns whether the node rejects new requests because it shuts down.
    pub fn is_draining(&self) -> bool {
        self.requests.open.load(Ordering::Acquire) >= DRAINING
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

impl RequestPermit {
    /// Takes a place for the request, which is complete now; false if there is none. A request that
    /// began before the node drains still gets one.
    pub fn start(&mut self) -> bool {
        if self.in_flight {
            return true;
        }
        let before = self.requests.in_flight.fetch_add(1, Ordering::AcqRel);
        self.in_flight = before < self.requests.max_in_flight;
        if !self.in_flight {
            self.requests.in_flight.fetch_sub(1, Ordering::AcqRel);
        }
        self.in_flight
    }
}

impl Drop for RequestPermit {
    fn drop(&mut self) {
        if self.in_flight {
            self.requests.in_flight.fetch_sub(1, Ordering::AcqRel);
        }
        if self.requests.open.fetch_sub(1, Ordering::AcqRel) == DRAINING + 1 {
            self.requests.idle.notify_one();
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
        let mut permits: Vec<_> = (0..3).map(|_| gate.try_open().unwrap()).collect();
        let mut waiting = permits.pop().unwrap();
        assert!(permits.iter_mut().all(RequestPermit::start) && !waiting.start());
        permits.pop();
        assert!(waiting.start() && waiting.start(), "a permit takes one place");
        assert_eq!(gate.requests.in_flight.load(Ordering::Acquire), 2);
        drop((permits, waiting));
        assert_eq!(gate.requests.in_flight.load(Ordering::Acquire), 0);
    }

    #[tokio::test(start_paused = true)]
    async fn requests_that_wait_for_their_body_are_limited() {
        let controller = DrainController::new(2);
        let gate = controller.gate();
        let permits: Vec<_> = (0..32).map(|_| gate.try_open()).collect();
        assert!(permits.iter().all(Option::is_some) && gate.try_open().is_none());
        drop(permits);
        assert!(gate.try_open().is_some());
    }

    #[tokio::test(start_paused = true)]
    async fn draining_waits_for_requests_in_flight_and_rejects_new_ones() {
        let controller = DrainController::new(2);
        let mut gate = controller.gate();
        let inside = controller.gate();
        let mut permit = inside.try_open().unwrap();
        let leave = async {
            gate.draining().await;
            tokio::time::sleep(Duration::from_secs(5)).await;
            assert!(gate.try_open().is_none());
            assert!(permit.start(), "a body that arrives while the node drains is accepted");
            drop(permit);
        };
        let (late, ()) = tokio::join!(controller.drain(Duration::from_secs(10)), leave);
        assert!(!late && inside.try_open().is_none());
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
        let _permit = inside.try_open();
        assert!(controller.drain(Duration::from_secs(10)).await);
        gate.cutoff().await;
        controller.close();
        gate.closing().await;
    }
}
