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

/// The waits after the first, the second … attempt at a webhook, in seconds: 75 hours in all.
const WEBHOOK_GAPS: [u64; 9] = [5, 300, 1_800, 7_200, 18_000, 36_000, 50_400, 72_000, 86_400];

/// The wait after attempt number `tries` at a webhook, a fifth more or less; `None` when that was the last one.
/// `random` is uniform in 0..1.
pub fn webhook_delay(tries: u16, random: f64) -> Option<Duration> {
    let gap = WEBHOOK_GAPS.get(usize::from(tries.max(1)) - 1)?;
    Some(Duration::from_secs(*gap).mul_f64(0.8 + 0.4 * random.clamp(0.0, 1.0)))
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

    #[test]
    fn webhooks_are_tried_ten_times_in_three_days() {
        let all: Vec<_> = (1..20).map_while(|tries| webhook_delay(tries, 0.5)).collect();
        assert_eq!(all.len(), 9);
        let hours = all.iter().sum::<Duration>().as_secs_f64() / 3_600.0;
        assert!((74.5..76.0).contains(&hours), "{hours}");
        assert_eq!(webhook_delay(1, 0.0), Some(Duration::from_secs(4)));
        assert_eq!(webhook_delay(1, 1.0), Some(Duration::from_secs(6)));
    }
}
