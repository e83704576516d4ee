//! Receipts and replies on their way back: kept for a system_id until a session of it took them.

use crate::smsc::delivery::Delivery;
use std::cmp::{Ordering, Reverse};
use std::collections::BinaryHeap;
use std::sync::atomic::{self, AtomicUsize};
use std::sync::{Mutex, MutexGuard, PoisonError};
use tokio::sync::Notify;
use tokio::time::Instant;

/// The most deliveries kept for one system_id. A client that never takes any gets no more submits
/// accepted (ESME_RMSGQFUL) until it does.
const MAX_WAITING: usize = 1_000_000;

/// All deliveries for one system_id.
#[derive(Debug, Default)]
pub(crate) struct Mailbox {
    queue: Mutex<Queue>,
    /// Rings when there is something for another session than the one that put it there.
    pub(crate) bell: Notify,
    /// How many sessions are bound that take something out.
    receivers: AtomicUsize,
}

#[derive(Debug, Default)]
struct Queue {
    heap: BinaryHeap<Reverse<Due>>,
    /// Keeps deliveries that are due at the same instant in order.
    posted: u64,
}

#[derive(Debug)]
struct Due {
    at: Instant,
    order: u64,
    delivery: Box<Delivery>,
}

impl Mailbox {
    pub(crate) fn is_full(&self) -> bool {
        self.lock().heap.len() >= MAX_WAITING
    }

    /// A session begins to take something out.
    pub(crate) fn enter(&self) {
        self.receivers.fetch_add(1, atomic::Ordering::Relaxed);
    }

    /// It does so no more.
    pub(crate) fn leave(&self) {
        self.receivers.fetch_sub(1, atomic::Ordering::Relaxed);
    }

    pub(crate) fn has_receiver(&self) -> bool {
        self.receivers.load(atomic::Ordering::Relaxed) > 0
    }

    /// Puts in deliveries with the time when each is due.
    pub(crate) fn post(&self, deliveries: impl IntoIterator<Item = (Instant, Box<Delivery>)>) {
        let mut queue = self.lock();
        for (at, delivery) in deliveries {
            queue.posted += 1;
            let order = queue.posted;
            queue.heap.push(Reverse(Due { at, order, delivery }));
        }
    }

    /// Takes out each delivery that is due at `now`, for as long as there is `room`; tells when
    /// the one after that will be.
    #[expect(clippy::vec_box, reason = "each stays in its box from the heap to the flight")]
    pub(crate) fn take(
        &self,
        now: Instant,
        room: usize,
        into: &mut Vec<Box<Delivery>>,
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

    /// A panic elsewhere can't leave the queue half changed.
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
