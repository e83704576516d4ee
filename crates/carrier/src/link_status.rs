//! The live status of the link to a carrier: written by the carrier, read by the engine.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::sync::Notify;
use tokio::time::Instant;

/// The status of one link. An update is a plain atomic store, except for the last error, which is
/// behind a mutex.
#[derive(Debug, Default)]
pub struct LinkStatus {
    bound: AtomicBool,
    unanswered: AtomicUsize,
    throttled: AtomicBool,
    last_error: Mutex<Option<(String, Instant)>>,
    changed: Arc<Notify>,
}

/// A copy of a [`LinkStatus`] at one moment.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct LinkSnapshot {
    /// True when the carrier is bound.
    pub bound: bool,
    /// The number of submissions without a response.
    pub unanswered: usize,
    /// True when the SMSC has throttled the carrier since the previous snapshot.
    pub throttled: bool,
    /// The last error in words for the operator, and the time since it happened.
    pub last_error: Option<(String, Duration)>,
}

impl LinkStatus {
    /// Creates the status of an unbound link. `changed` is notified at every bind and unbind.
    pub fn new(changed: Arc<Notify>) -> Self {
        Self { changed, ..Self::default() }
    }

    /// Records that the carrier is bound.
    pub fn mark_bound(&self) {
        self.bound.store(true, Relaxed);
        self.changed.notify_one();
    }

    /// Records that the carrier is no longer bound.
    pub fn mark_unbound(&self) {
        self.set_unanswered(0);
        if self.bound.swap(false, Relaxed) {
            self.changed.notify_one();
        }
    }

    /// Records an error in words for the operator.
    pub fn record_error(&self, error: String) {
        let last_error = Some((error, Instant::now()));
        *self.last_error.lock().unwrap_or_else(PoisonError::into_inner) = last_error;
    }

    /// Records the number of submissions without a response.
    pub fn set_unanswered(&self, n: usize) {
        self.unanswered.store(n, Relaxed);
    }

    /// Records that the SMSC throttles the carrier.
    pub fn mark_throttled(&self) {
        self.throttled.store(true, Relaxed);
    }

    /// Returns the present status and resets its throttled flag.
    pub fn snapshot(&self) -> LinkSnapshot {
        let last_error = self.last_error.lock().unwrap_or_else(PoisonError::into_inner).clone();
        LinkSnapshot {
            bound: self.bound.load(Relaxed),
            unanswered: self.unanswered.load(Relaxed),
            throttled: self.throttled.swap(false, Relaxed),
            last_error: last_error.map(|(error, at)| (error, at.elapsed())),
        }
    }
}
