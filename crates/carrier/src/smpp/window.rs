//! The window: submissions that were sent and have no response yet.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};
use std::time::Duration;
use tokio::time::Instant;

/// A submission without a response.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PendingSubmit {
    pub(crate) token: u64,
    pub(crate) part: u8,
    sent: Instant,
}

/// The pending submissions of one session, by sequence_number. Never holds more than its limit.
#[derive(Debug)]
pub(crate) struct Window {
    pending: HashMap<u32, PendingSubmit, BuildHasherDefault<SequenceHasher>>,
    limit: usize,
    /// A lower bound of the send times of all pending submissions. The exact minimum is computed
    /// only when this one comes due, so that a response needs no search for the next oldest.
    oldest: Instant,
}

impl Window {
    pub(crate) fn new(limit: u16) -> Self {
        let limit = usize::from(limit.max(1));
        Self {
            pending: HashMap::with_capacity_and_hasher(limit, BuildHasherDefault::default()),
            limit,
            oldest: Instant::now(),
        }
    }

    pub(crate) fn room(&self) -> usize {
        self.limit - self.pending.len().min(self.limit)
    }

    pub(crate) fn len(&self) -> usize {
        self.pending.len()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.pending.is_empty()
    }

    pub(crate) fn insert(&mut self, sequence: u32, token: u64, part: u8, sent: Instant) {
        if self.pending.is_empty() {
            self.oldest = sent;
        }
        self.pending.insert(sequence, PendingSubmit { token, part, sent });
    }

    pub(crate) fn remove(&mut self, sequence: u32) -> Option<PendingSubmit> {
        self.pending.remove(&sequence)
    }

    /// Returns when [`Self::overdue`] must be called again.
    pub(crate) fn deadline(&self, timeout: Duration) -> Option<Instant> {
        (!self.pending.is_empty()).then(|| self.oldest + timeout)
    }

    /// Returns whether a response has been missing for longer than `timeout`.
    pub(crate) fn overdue(&mut self, now: Instant, timeout: Duration) -> bool {
        if self.deadline(timeout).is_none_or(|at| now < at) {
            return false;
        }
        self.oldest = self.pending.values().map(|f| f.sent).min().unwrap_or(now);
        self.deadline(timeout).is_some_and(|at| now >= at)
    }

    /// Removes and returns all pending submissions, the earliest sent first.
    pub(crate) fn drain(&mut self) -> Vec<PendingSubmit> {
        let mut all: Vec<_> = self.pending.drain().collect();
        all.sort_unstable_by_key(|(sequence, submit)| (submit.sent, *sequence));
        all.into_iter().map(|(_, submit)| submit).collect()
    }
}

/// A fast hasher for consecutive numbers. It needs no protection against chosen collisions because
/// the session assigns the sequence numbers itself.
#[derive(Default)]
struct SequenceHasher(u64);

impl Hasher for SequenceHasher {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.write_u32(u32::from(*byte));
        }
    }

    fn write_u32(&mut self, n: u32) {
        self.0 = (self.0 ^ u64::from(n)).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    }
}
