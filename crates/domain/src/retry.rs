//! Retry schedules: exponential back-off for submissions and reconnects, and the schedule of
//! webhook deliveries.

use std::time::Duration;

/// Returns the back-off before attempt number `attempt + 1` of a submission that the carrier
/// deferred: 1 s, doubled each time, at most 5 minutes.
pub fn submit_delay(attempt: u32) -> Duration {
    let seconds = 1u64.checked_shl(attempt.saturating_sub(1)).unwrap_or(u64::MAX);
    Duration::from_secs(seconds.clamp(1, 300))
}

/// Returns the back-off before connection attempt number `attempt + 1`, with jitter: between one
/// tenth of the ceiling and the ceiling, which doubles from `floor` up to `limit`. `random` is
/// uniform in 0..1.
pub fn reconnect_delay(attempt: u32, floor: Duration, limit: Duration, random: f64) -> Duration {
    let factor = 1u32.checked_shl(attempt.min(20)).unwrap_or(u32::MAX);
    let ceiling = floor.saturating_mul(factor).min(limit);
    ceiling.mul_f64(0.1 + 0.9 * random.clamp(0.0, 1.0))
}

/// The delays after the first, second, ... delivery attempt of a webhook, in seconds; 75 hours in
/// total.
const WEBHOOK_GAPS: [u64; 9] = [5, 300, 1_800, 7_200, 18_000, 36_000, 50_400, 72_000, 86_400];

/// Returns the delay after delivery attempt number `tries` of a webhook, with a jitter of 20 % in
/// either direction, or `None` if that was the last attempt. `random` is uniform in 0..1.
pub fn webhook_delay(tries: u16, random: f64) -> Option<Duration> {
    let gap = WEBHOOK_GAPS.get(usize::from(tries.max(1)) - 1)?;
    Some(Duration::from_secs(*gap).mul_f64(0.8 + 0.4 * random.clamp(0.0, 1.0)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn back_off_grows_up_to_a_limit() {
        let delays: Vec<u64> = [0, 1, 2, 3, 9, 10, 4_000].map(|n| submit_delay(n).as_secs()).into();
        assert_eq!(delays, [1, 1, 2, 4, 256, 300, 300]);
        let (floor, limit) = (Duration::from_secs(1), Duration::from_secs(60));
        assert_eq!(reconnect_delay(0, floor, limit, 1.0), floor);
        assert_eq!(reconnect_delay(99, floor, limit, 1.0), limit);
        assert_eq!(reconnect_delay(99, floor, limit, 0.0), limit / 10);
    }

    #[test]
    fn webhooks_are_attempted_ten_times_in_three_days() {
        let all: Vec<_> = (1..20).map_while(|tries| webhook_delay(tries, 0.5)).collect();
        assert_eq!(all.len(), 9);
        let hours = all.iter().sum::<Duration>().as_secs_f64() / 3_600.0;
        assert!((74.5..76.0).contains(&hours), "{hours}");
        assert_eq!(webhook_delay(1, 0.0), Some(Duration::from_secs(4)));
        assert_eq!(webhook_delay(1, 1.0), Some(Duration::from_secs(6)));
    }
}
