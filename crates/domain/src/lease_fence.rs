//! The fence of a node: keeps it from submitting after other nodes may have released its leases.

use crate::lease::{STOP_AFTER, SUBMIT_AFTER_HEARTBEAT};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};

/// The leases under which a node may submit now. Clones share the state.
#[derive(Clone, Debug)]
pub struct LeaseFence(Arc<State>);

/// Times in milliseconds since `start`.
#[derive(Debug)]
struct State {
    start: Instant,
    /// Leases that began before are void.
    valid_from: AtomicU64,
    /// The end of the effect of the last heartbeat.
    valid_until: AtomicU64,
}

impl LeaseFence {
    /// Creates the fence of a node that starts at `now` and shares its database with no other node:
    /// it has no heartbeat.
    pub fn open(now: Instant) -> Self {
        Self::new(now, u64::MAX)
    }

    /// Creates the fence of a node without a heartbeat so far, which may not submit yet.
    pub fn closed(now: Instant) -> Self {
        Self::new(now, 0)
    }

    fn new(start: Instant, valid_until: u64) -> Self {
        let (valid_from, valid_until) = (AtomicU64::new(0), AtomicU64::new(valid_until));
        Self(Arc::new(State { start, valid_from, valid_until }))
    }

    /// Returns whether the node may submit at `now` under a lease that began at `leased_at`.
    pub fn allows(&self, leased_at: Instant, now: Instant) -> bool {
        let state = &self.0;
        now.saturating_duration_since(leased_at) < STOP_AFTER
            && self.millis(leased_at) >= state.valid_from.load(Relaxed)
            && self.millis(now) < state.valid_until.load(Relaxed)
    }

    /// Records a heartbeat that was sent at `sent` and is stored by `now`. If the one before had no
    /// effect any more, earlier leases are void.
    pub fn record_heartbeat(&self, sent: Instant, now: Instant) {
        let until = self.millis(sent + SUBMIT_AFTER_HEARTBEAT);
        if self.0.valid_until.load(Relaxed) < self.millis(sent) {
            self.void_leases(now);
        }
        self.0.valid_until.store(until, Relaxed);
    }

    /// Voids all leases that began before `now`.
    pub fn void_leases(&self, now: Instant) {
        self.0.valid_from.store(self.millis(now), Relaxed);
    }

    fn millis(&self, at: Instant) -> u64 {
        let since: Duration = at.saturating_duration_since(self.0.start);
        u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_node_without_other_nodes_submits_until_its_leases_are_old() {
        let start = Instant::now();
        let fence = LeaseFence::open(start);
        assert!(fence.allows(start, start + STOP_AFTER - Duration::from_millis(1)));
        assert!(!fence.allows(start, start + STOP_AFTER));
    }

    #[test]
    fn a_node_submits_only_after_a_recent_heartbeat() {
        let start = Instant::now();
        let fence = LeaseFence::closed(start);
        let at = |seconds| start + Duration::from_secs(seconds);
        assert!(!fence.allows(at(1), at(1)), "no heartbeat so far");
        fence.record_heartbeat(at(1), at(2));
        assert!(fence.allows(at(3), at(3)));
        fence.record_heartbeat(at(10), at(11));
        assert!(fence.allows(at(3), at(21)));
        assert!(!fence.allows(at(3), at(22)), "12 s after it was sent");
    }

    /// As a node that was stopped for longer than the effect of its heartbeat.
    #[test]
    fn leases_from_before_a_gap_are_void() {
        let start = Instant::now();
        let fence = LeaseFence::closed(start);
        let at = |seconds| start + Duration::from_secs(seconds);
        fence.record_heartbeat(at(1), at(1));
        fence.record_heartbeat(at(20), at(21));
        assert!(!fence.allows(at(2), at(22)));
        assert!(fence.allows(at(21), at(22)));
        fence.void_leases(at(23));
        assert!(!fence.allows(at(21), at(23)));
    }
}
