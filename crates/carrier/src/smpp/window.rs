//! The window: which submissions have gone out and have no answer yet.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};
use std::time::Duration;
use tokio::time::Instant;

/// One submission without an answer.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Flight {
    /// Of the message.
    pub(crate) token: u64,
    /// Of the message.
    pub(crate) part: u8,
    sent: Instant,
}

/// All of one session's, by sequence_number. Never holds more than its limit.
#[derive(Debug)]
pub(crate) struct Window {
    flights: HashMap<u32, Flight, BuildHasherDefault<SequenceHasher>>,
    limit: usize,
    /// No flight is older than this. May lag behind: it is only corrected when it comes due, so
    /// that an answer costs no search for the next oldest.
    oldest: Instant,
}

impl Window {
    pub(crate) fn new(limit: u16) -> Self {
        let limit = usize::from(limit.max(1));
        Self {
            flights: HashMap::with_capacity_and_hasher(limit, BuildHasherDefault::default()),
            limit,
            oldest: Instant::now(),
        }
    }

    pub(crate) fn room(&self) -> usize {
        self.limit - self.flights.len().min(self.limit)
    }

    pub(crate) fn len(&self) -> usize {
        self.flights.len()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.flights.is_empty()
    }

    pub(crate) fn insert(&mut self, sequence: u32, token: u64, part: u8, sent: Instant) {
        if self.flights.is_empty() {
            self.oldest = sent;
        }
        self.flights.insert(sequence, Flight { token, part, sent });
    }

    pub(crate) fn remove(&mut self, sequence: u32) -> Option<Flight> {
        self.flights.remove(&sequence)
    }

    /// When to look at [`Self::overdue`] again.
    pub(crate) fn deadline(&self, timeout: Duration) -> Option<Instant> {
        (!self.flights.is_empty()).then(|| self.oldest + timeout)
    }

    /// Whether an answer is missing for longer than `timeout`.
    pub(crate) fn overdue(&mut self, now: Instant, timeout: Duration) -> bool {
        if self.deadline(timeout).is_none_or(|at| now < at) {
            return false;
        }
        self.oldest = self.flights.values().map(|f| f.sent).min().unwrap_or(now);
        self.deadline(timeout).is_some_and(|at| now >= at)
    }

    /// Empties it, the earliest sent first.
    pub(crate) fn drain(&mut self) -> Vec<Flight> {
        let mut all: Vec<_> = self.flights.drain().collect();
        all.sort_unstable_by_key(|(sequence, flight)| (flight.sent, *sequence));
        all.into_iter().map(|(_, flight)| flight).collect()
    }
}

/// Spreads consecutive numbers over the table. They are our own, so nobody can choose them badly.
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
