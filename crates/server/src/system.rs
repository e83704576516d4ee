//! The operating system's clock, randomness and name resolution, and the id generator.

use heliograph_domain::id::Ids;
use heliograph_domain::secret::Random;
use heliograph_domain::time::{Clock, Timestamp};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use std::sync::LazyLock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};
use uuid::{Builder, Uuid};

/// The machine's clocks.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SystemClock;

impl Clock for SystemClock {
    #[expect(clippy::disallowed_methods, reason = "this is the Clock that everything else uses")]
    fn now(&self) -> Timestamp {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Timestamp(i64::try_from(since.as_millis()).unwrap_or(i64::MAX))
    }

    fn monotonic(&self) -> Duration {
        static START: LazyLock<Instant> = LazyLock::new(Instant::now);
        START.elapsed()
    }
}

/// The operating system's source of randomness.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SystemRandom;

impl Random for SystemRandom {
    fn fill(&self, bytes: &mut [u8]) -> bool {
        getrandom::fill(bytes).is_ok()
    }
}

/// Generates UUIDv7 ids from a fast, non-cryptographic generator seeded by the operating system:
/// ids are not secrets. The ids of one process increase monotonically, also within a millisecond,
/// so that lists sorted by id are in order of creation.
#[derive(Debug, Default)]
pub(crate) struct RandomIds {
    /// The time of the last id in milliseconds, and 12 bits that count within it (RFC 9562 §6.2,
    /// method 1).
    last: AtomicU64,
}

impl Ids for RandomIds {
    fn next(&self, at: Timestamp) -> Uuid {
        let now = u64::try_from(at.millis()).unwrap_or(0) << 12;
        let next = |last: u64| Some(now.max(last + 1));
        let last = self.last.fetch_update(Ordering::Relaxed, Ordering::Relaxed, next);
        let current = now.max(last.unwrap_or(0) + 1);
        let mut rest = [0; 10];
        fastrand::fill(&mut rest);
        let [_, _, _, _, _, _, high, low] = current.to_be_bytes();
        let [first, second, ..] = &mut rest;
        (*first, *second) = (high, low);
        Builder::from_unix_timestamp_millis(current >> 12, &rest).into_uuid()
    }
}

/// Raises the limit of open files to the maximum that the operating system permits and returns it;
/// the default of a shell is too low for a server.
pub(crate) fn open_files() -> usize {
    let Rlimit { maximum, current } = getrlimit(Resource::Nofile);
    let raised = setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum });
    let files = if raised.is_ok() { maximum } else { current };
    // `None` means unlimited.
    files.and_then(|f| usize::try_from(f).ok()).unwrap_or(usize::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_increase_even_when_the_clock_stops_or_goes_back() {
        let ids = RandomIds::default();
        let all: Vec<Uuid> = (0..20_000).map(|n| ids.next(Timestamp(1_000 - n / 9_000))).collect();
        assert!(all.windows(2).all(|pair| pair[0] < pair[1]));
        assert!(all.iter().all(|id| id.get_version_num() == 7));
        // More than 4,096 ids in a millisecond borrow from the next one.
        assert_eq!(all[0].as_u128() >> 80, 1_000);
        assert_eq!(all[19_999].as_u128() >> 80, 1_004);
    }
}
