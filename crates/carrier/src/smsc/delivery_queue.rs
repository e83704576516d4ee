//! The queue of receipts and replies for one system_id, until one of its sessions delivers them.

use crate::smsc::delivery::PendingDelivery;
use std::cmp::{Ordering, Reverse};
use std::collections::BinaryHeap;
use std::sync::atomic::{self, AtomicUsize};
use std::sync::{Mutex, MutexGuard, PoisonError};
use tokio::sync::Notify;
use tokio::time::Instant;

/// The maximum number of deliveries for one system_id. While the queue is full, the submits of the
/// client are refused with ESME_RMSGQFUL.
const MAX_WAITING: usize = 1_000_000;

/// All deliveries for one system_id.
#[derive(Debug, Default)]
pub(crate) struct DeliveryQueue {
    queue: Mutex<Queue>,
    /// Notified when there is a delivery for a session other than the one that queued it.
    pub(crate) ready: Notify,
    /// The number of bound sessions that can receive.
    receivers: AtomicUsize,
}

#[derive(Debug, Default)]
struct Queue {
    heap: BinaryHeap<Reverse<Due>>,
    /// A counter that keeps deliveries with the same due time in order.
    pushed: u64,
}

#[derive(Debug)]
struct Due {
    at: Instant,
    order: u64,
    delivery: Box<PendingDelivery>,
}

impl DeliveryQueue {
    pub(crate) fn is_full(&self) -> bool {
        self.lock().heap.len() >= MAX_WAITING
    }

    /// Registers a bound session that can receive.
    pub(crate) fn add_receiver(&self) {
        self.receivers.fetch_add(1, atomic::Ordering::Relaxed);
    }

    /// Removes the registration of a session.
    pub(crate) fn remove_receiver(&self) {
        self.receivers.fetch_sub(1, atomic::Ordering::Relaxed);
    }

    pub(crate) fn has_receiver(&self) -> bool {
        self.receivers.load(atomic::Ordering::Relaxed) > 0
    }

    /// Queues deliveries with the time when each is due.
    pub(crate) fn push(
        &self,
        deliveries: impl IntoIterator<Item = (Instant, Box<PendingDelivery>)>,
    ) {
        let mut queue = self.lock();
        for (at, delivery) in deliveries {
            queue.pushed += 1;
            let order = queue.pushed;
            queue.heap.push(Reverse(Due { at, order, delivery }));
        }
    }

    /// Moves the deliveries that are due at `now` to `into`, up to `room` of them. Returns when the
    /// next one is due.
    #[expect(clippy::vec_box, reason = "deliveries stay boxed from the heap to the session")]
    pub(crate) fn pop_due(
        &self,
        now: Instant,
        room: usize,
        into: &mut Vec<Box<PendingDelivery>>,
    ) -> Option<Instant> {
        let mut queue = self.lock();
        while let Some(Reverse(next)) = queue.heap.peek() {
            if next.at > now || into.len() >= room {
                return Some(next.at);
            }
            into.extend(queue.heap.pop().map(|Reverse(due)| due.delivery));
        }
        None
    }

    /// Ignores poisoning: no panic can leave the queue inconsistent.
    fn lock(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Due {
    fn key(&self) -> (Instant, u64) {
        (self.at, self.order)
    }
}

impl PartialEq for Due {
    fn eq(&self, other: &Self) -> bool {
        self.key() == other.key()
    }
}

impl Eq for Due {}

impl PartialOrd for Due {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Due {
    fn cmp(&self, other: &Self) -> Ordering {
        self.key().cmp(&other.key())
    }
}
