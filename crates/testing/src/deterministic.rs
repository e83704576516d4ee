//! A manual clock, and ids and random bytes that are the same in every run.

use heliograph_domain::id::Ids;
use heliograph_domain::secret::Random;
use heliograph_domain::time::{Clock, Timestamp};
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::time::Duration;
use uuid::{Builder, Uuid};

/// The time at the beginning of every test: 2026-11-20 09:00 UTC.
pub const START: Timestamp = Timestamp(1_795_165_200_000);

/// A clock that stands still until a test advances it.
#[derive(Debug)]
pub struct TestClock {
    wall: AtomicI64,
    monotonic: AtomicU64,
}

impl Default for TestClock {
    fn default() -> Self {
        Self { wall: AtomicI64::new(START.0), monotonic: AtomicU64::new(0) }
    }
}

impl TestClock {
    /// Lets time pass.
    pub fn advance(&self, by: Duration) {
        self.step(i64::try_from(by.as_millis()).unwrap());
        self.monotonic.fetch_add(u64::try_from(by.as_millis()).unwrap(), Ordering::Relaxed);
    }

    /// Sets the wall clock forward by this many milliseconds, or back.
    pub fn step(&self, by: i64) {
        self.wall.fetch_add(by, Ordering::Relaxed);
    }
}

impl Clock for TestClock {
    fn now(&self) -> Timestamp {
        Timestamp(self.wall.load(Ordering::Relaxed))
    }

    fn monotonic(&self) -> Duration {
        Duration::from_millis(self.monotonic.load(Ordering::Relaxed))
    }
}

/// A generator of ids that count up.
#[derive(Default, Debug)]
pub struct TestIds(AtomicU64);

impl Ids for TestIds {
    fn next(&self, at: Timestamp) -> Uuid {
        let mut count = [0; 10];
        count[2..].copy_from_slice(&self.0.fetch_add(1, Ordering::Relaxed).to_be_bytes());
        Builder::from_unix_timestamp_millis(at.millis().unsigned_abs(), &count).into_uuid()
    }
}

/// A reproducible source of "random" bytes (SplitMix64 with a fixed seed). Values do not repeat.
#[derive(Default, Debug)]
pub struct TestRandom(AtomicU64);

impl Random for TestRandom {
    fn fill(&self, bytes: &mut [u8]) -> bool {
        for chunk in bytes.chunks_mut(8) {
            let count = self.0.fetch_add(1, Ordering::Relaxed) + 1;
            chunk.copy_from_slice(&splitmix64(count).to_le_bytes()[..chunk.len()]);
        }
        true
    }
}

/// Returns the `n`th number of the SplitMix64 sequence with seed 0.
const fn splitmix64(n: u64) -> u64 {
    let mut z = n.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}
