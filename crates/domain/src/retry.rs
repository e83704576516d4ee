//! How long to wait before the next try.

use std::time::Duration;

/// The wait before try number `attempt + 1` of a submission that the carrier put off: 1 s, doubled
/// each time up to 5 minutes.
pub fn submit_delay(attempt: u32) -> Duration {
    let seconds = 1u64.checked_shl(attempt.saturating_sub(1)).unwrap_or(u64::MAX);
    Duration::from_secs(seconds.clamp(1, 300))
}

/// The wait before connection try number `attempt + 1`, with full jitter: anywhere from one tenth of
/// the ceiling to the ceiling, which doubles from `floor` to `limit`. `random` is uniform in 0..1.
pub fn reconnect_delay(attempt: u32, floor: Duration, limit: Duration, random: f64) -> Duration {
    let factor = 1u32.checked_shl(attempt.min(20)).unwrap_or(u32::MAX);
    let ceiling = floor.saturating_mul(factor).min(limit);
    ceiling.mul_f64(0.1 + 0.9 * random.clamp(0.0, 1.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_grow_and_stop_growing() {
        let waits: Vec<u64> = [0, 1, 2, 3, 9, 10, 4_000].map(|n| submit_delay(n).as_secs()).into();
        assert_eq!(waits, [1, 1, 2, 4, 256, 300, 300]);
        let (floor, limit) = (Duration::from_secs(1), Duration::from_secs(60));
        assert_eq!(reconnect_delay(0, floor, limit, 1.0), floor);
        assert_eq!(reconnect_delay(99, floor, limit, 1.0), limit);
        assert_eq!(reconnect_delay(99, floor, limit, 0.0), limit / 10);
    }
}
