//! Desks: where freshly committed work is handed to the workers of this node, already leased.

use std::collections::HashMap;
use std::fmt;
use std::hash::Hash;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, PoisonError, RwLock};
use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore, mpsc};

/// The place where a worker takes in what was just committed: as much as it has room for.
#[derive(Debug)]
pub struct Desk<T> {
    room: Arc<Semaphore>,
    inbox: mpsc::Sender<Vec<T>>,
    /// False while older work waits in the table, or it can't be done: new work queues behind it.
    open: AtomicBool,
    /// Whether whoever the work is for is there at all.
    bound: AtomicBool,
    /// Rung when there is something to claim.
    pub bell: Notify,
}

impl<T> Desk<T> {
    /// A desk with room for `ahead` pieces of work, and where what is handed over arrives.
    pub fn new(ahead: usize) -> (Arc<Self>, mpsc::Receiver<Vec<T>>) {
        // Each batch holds at least one place, so there are never more batches than places.
        let (inbox, arrivals) = mpsc::channel(ahead);
        let desk = Self {
            room: Arc::new(Semaphore::new(ahead)),
            inbox,
            open: AtomicBool::new(false),
            bound: AtomicBool::new(false),
            bell: Notify::new(),
        };
        (Arc::new(desk), arrivals)
    }

    /// Places for as much as there is room for, at most `most`; `None` when there is none.
    pub fn free_room(&self, most: usize) -> Option<OwnedSemaphorePermit> {
        let n = self.room.available_permits().min(most);
        let n = u32::try_from(n).ok().filter(|n| *n > 0)?;
        self.room.clone().try_acquire_many_owned(n).ok()
    }

    /// How many places are free.
    pub fn places(&self) -> usize {
        self.room.available_permits()
    }

    /// Says whether whoever the work is for is there. While not, nothing is handed over.
    pub fn set_bound(&self, bound: bool) {
        self.bound.store(bound, Ordering::Release);
        if !bound {
            self.open.store(false, Ordering::Release);
        }
        self.bell.notify_one();
    }

    /// Whether whoever the work is for is there.
    pub fn is_bound(&self) -> bool {
        self.bound.load(Ordering::Acquire)
    }
}

/// All desks of one sort on this node. What has none waits in the table, for this node or another.
#[derive(Debug)]
pub struct Desks<K, T>(Arc<Shared<K, T>>);

#[derive(Debug)]
struct Shared<K, T> {
    all: RwLock<HashMap<K, Arc<Desk<T>>>>,
    bell: Notify,
}

impl<K, T> Default for Desks<K, T> {
    fn default() -> Self {
        Self(Arc::new(Shared { all: RwLock::default(), bell: Notify::new() }))
    }
}

impl<K, T> Clone for Desks<K, T> {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}

impl<K: Eq + Hash + Copy + fmt::Display, T> Desks<K, T> {
    /// Sets up a desk, in place of an earlier one.
    pub fn set(&self, key: K, desk: Arc<Desk<T>>) {
        self.0.all.write().unwrap_or_else(PoisonError::into_inner).insert(key, desk);
    }

    fn get(&self, key: K) -> Option<Arc<Desk<T>>> {
        self.0.all.read().unwrap_or_else(PoisonError::into_inner).get(&key).cloned()
    }

    /// A place for one new piece of work, if nothing older waits.
    pub(crate) fn room(&self, key: K) -> Option<OwnedSemaphorePermit> {
        let desk = self.get(key)?;
        if !desk.open.load(Ordering::Acquire) {
            return None;
        }
        desk.room.clone().try_acquire_owned().ok()
    }

    /// Gives freshly committed, already leased work to its worker.
    pub(crate) fn hand_over(&self, key: K, handed: Vec<T>) {
        let sent = self.get(key).is_some_and(|d| d.inbox.try_send(handed).is_ok());
        if !sent {
            tracing::warn!(%key, "a worker ended; its leases run out");
        }
    }

    /// A claim found less than it had room for: nothing older waits.
    pub(crate) fn drained(&self, key: K) {
        if let Some(desk) = self.get(key).filter(|d| d.is_bound()) {
            desk.open.store(true, Ordering::Release);
        }
    }

    /// Work was left in the table: it has to be claimed.
    pub(crate) fn left(&self, key: K) {
        match self.get(key) {
            Some(desk) => {
                desk.open.store(false, Ordering::Release);
                desk.bell.notify_one();
            }
            None => self.0.bell.notify_one(),
        }
    }

    /// Takes a desk away; what was handed over and not taken in is lost with its leases.
    pub fn remove(&self, key: K) {
        self.0.all.write().unwrap_or_else(PoisonError::into_inner).remove(&key);
    }

    /// Waits until work was left for which there is no desk.
    pub async fn missed(&self) {
        self.0.bell.notified().await;
    }
}
