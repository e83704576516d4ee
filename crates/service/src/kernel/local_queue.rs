//! Local queues hand freshly committed, already leased work to the workers of this node.
//!
//! Local queues are bounded and only a short cut: work that does not fit stays in its table and is
//! claimed from there.

use std::collections::HashMap;
use std::fmt;
use std::hash::Hash;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, PoisonError, RwLock};
use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore, mpsc};

/// The queue of one worker, with a fixed number of slots.
#[derive(Debug)]
pub struct LocalQueue<T> {
    room: Arc<Semaphore>,
    inbox: mpsc::Sender<Vec<T>>,
    /// True if new work may be handed over; false while older work waits in the table or the worker
    /// is unavailable: new work then queues behind it.
    open: AtomicBool,
    /// True if the destination of the work (carrier or endpoint) is available.
    bound: AtomicBool,
    /// Wakes the worker when there is something to claim.
    pub wake: Notify,
}

impl<T> LocalQueue<T> {
    /// Returns a queue with `ahead` slots and the receiver of what is handed over.
    pub fn new(ahead: usize) -> (Arc<Self>, mpsc::Receiver<Vec<T>>) {
        // Each batch holds at least one slot, so there are never more batches than slots.
        let (inbox, arrivals) = mpsc::channel(ahead);
        let queue = Self {
            room: Arc::new(Semaphore::new(ahead)),
            inbox,
            open: AtomicBool::new(false),
            bound: AtomicBool::new(false),
            wake: Notify::new(),
        };
        (Arc::new(queue), arrivals)
    }

    /// Reserves all free slots, at most `most`; `None` when there is none.
    pub fn reserve_up_to(&self, most: usize) -> Option<OwnedSemaphorePermit> {
        let n = self.room.available_permits().min(most);
        let n = u32::try_from(n).ok().filter(|n| *n > 0)?;
        self.room.clone().try_acquire_many_owned(n).ok()
    }

    /// Returns the number of free slots.
    pub fn free_slots(&self) -> usize {
        self.room.available_permits()
    }

    /// Sets whether the destination is available. Otherwise nothing is handed over.
    pub fn set_available(&self, bound: bool) {
        self.bound.store(bound, Ordering::Release);
        if !bound {
            self.open.store(false, Ordering::Release);
        }
        self.wake.notify_one();
    }

    /// Returns whether the destination is available.
    pub fn is_available(&self) -> bool {
        self.bound.load(Ordering::Acquire)
    }
}

/// All queues of one kind on this node, by destination. Work without a queue waits in the table,
/// for this node or another.
#[derive(Debug)]
pub struct LocalQueues<K, T>(Arc<Shared<K, T>>);

#[derive(Debug)]
struct Shared<K, T> {
    all: RwLock<HashMap<K, Arc<LocalQueue<T>>>>,
    wake: Notify,
}

impl<K, T> Default for LocalQueues<K, T> {
    fn default() -> Self {
        Self(Arc::new(Shared { all: RwLock::default(), wake: Notify::new() }))
    }
}

impl<K, T> Clone for LocalQueues<K, T> {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}

impl<K: Eq + Hash + Copy + fmt::Display, T> LocalQueues<K, T> {
    /// Adds a queue, replacing an earlier one.
    pub fn insert(&self, key: K, queue: Arc<LocalQueue<T>>) {
        self.0.all.write().unwrap_or_else(PoisonError::into_inner).insert(key, queue);
    }

    fn get(&self, key: K) -> Option<Arc<LocalQueue<T>>> {
        self.0.all.read().unwrap_or_else(PoisonError::into_inner).get(&key).cloned()
    }

    /// Reserves a slot for new work, unless older work waits.
    pub(crate) fn reserve(&self, key: K) -> Option<OwnedSemaphorePermit> {
        let queue = self.get(key)?;
        if !queue.open.load(Ordering::Acquire) {
            return None;
        }
        queue.room.clone().try_acquire_owned().ok()
    }

    /// Hands freshly committed, already leased work to its worker.
    pub(crate) fn hand_over(&self, key: K, handed: Vec<T>) {
        let sent = self.get(key).is_some_and(|d| d.inbox.try_send(handed).is_ok());
        if !sent {
            tracing::warn!(%key, "local worker has ended; its leases will expire");
        }
    }

    /// Records that a claim found less than it had slots for: no older work waits.
    pub(crate) fn mark_drained(&self, key: K) {
        if let Some(queue) = self.get(key).filter(|d| d.is_available()) {
            queue.open.store(true, Ordering::Release);
        }
    }

    /// Records that work was left in the table and has to be claimed.
    pub(crate) fn mark_backlogged(&self, key: K) {
        match self.get(key) {
            Some(queue) => {
                queue.open.store(false, Ordering::Release);
                queue.wake.notify_one();
            }
            None => self.0.wake.notify_one(),
        }
    }

    /// Removes a queue. Work that was handed over and not received waits until its leases expire.
    pub fn remove(&self, key: K) {
        self.0.all.write().unwrap_or_else(PoisonError::into_inner).remove(&key);
    }

    /// Waits until work was left for a destination without a queue.
    pub async fn unserved(&self) {
        self.0.wake.notified().await;
    }
}
