//! How a carrier's line is: told by the carrier as it goes, looked at by whoever wants to know.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::sync::Notify;
use tokio::time::Instant;

/// The condition of one line. Telling it costs no more than a store to memory, but for the trouble.
#[derive(Debug, Default)]
pub struct Condition {
    bound: AtomicBool,
    unanswered: AtomicUsize,
    throttled: AtomicBool,
    trouble: Mutex<Option<(String, Instant)>>,
    bell: Arc<Notify>,
}

/// What [`Condition::look`] saw.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Seen {
    /// Whether a bind is up.
    pub bound: bool,
    /// Submissions without an answer.
    pub unanswered: usize,
    /// Whether the SMSC has asked for a slower pace since the last look.
    pub throttled: bool,
    /// What went wrong last, in words for the operator, and how long ago.
    pub trouble: Option<(String, Duration)>,
}

impl Condition {
    /// That of a line which is not bound yet. `bell` is rung whenever that changes.
    pub fn new(bell: Arc<Notify>) -> Self {
        Self { bell, ..Self::default() }
    }

    /// A bind is up.
    pub fn bound(&self) {
        self.bound.store(true, Relaxed);
        self.bell.notify_one();
    }

    /// No bind is up any more.
    pub fn unbound(&self) {
        self.unanswered(0);
        if self.bound.swap(false, Relaxed) {
            self.bell.notify_one();
        }
    }

    /// Something went wrong.
    pub fn trouble(&self, why: String) {
        let trouble = Some((why, Instant::now()));
        *self.trouble.lock().unwrap_or_else(PoisonError::into_inner) = trouble;
    }

    /// So many submissions have no answer.
    pub fn unanswered(&self, n: usize) {
        self.unanswered.store(n, Relaxed);
    }

    /// The SMSC asks for a slower pace.
    pub fn throttled(&self) {
        self.throttled.store(true, Relaxed);
    }

    /// How it is now.
    pub fn look(&self) -> Seen {
        let trouble = self.trouble.lock().unwrap_or_else(PoisonError::into_inner).clone();
        Seen {
            bound: self.bound.load(Relaxed),
            unanswered: self.unanswered.load(Relaxed),
            throttled: self.throttled.swap(false, Relaxed),
            trouble: trouble.map(|(why, at)| (why, at.elapsed())),
        }
    }
}
