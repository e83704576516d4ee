//! How fast submissions may leave: a token bucket, and pauses that the SMSC asked for.

use std::time::Duration;
use tokio::time::Instant;

/// How long a throttled carrier is left alone.
const PAUSE: Duration = Duration::from_secs(1);

/// A tenth of a second's worth may leave at once.
const BURST: f64 = 0.1;

/// The pace of one session.
#[derive(Debug)]
pub(crate) struct Pace {
    per_second: f64,
    tokens: f64,
    filled: Instant,
    paused_until: Option<Instant>,
}

impl Pace {
    /// `rate` parts per second, or 0 for no limit.
    pub(crate) fn new(rate: u32, now: Instant) -> Self {
        Self { per_second: f64::from(rate), tokens: 1.0, filled: now, paused_until: None }
    }

    pub(crate) fn pause(&mut self, now: Instant) {
        self.paused_until = Some(now + PAUSE);
    }

    /// One part leaves.
    pub(crate) fn spend(&mut self) {
        if self.per_second > 0.0 {
            self.tokens -= 1.0;
        }
    }

    /// Whether a part may leave at `now`.
    pub(crate) fn is_open(&mut self, now: Instant) -> bool {
        if self.paused_until.is_some_and(|until| now < until) {
            return false;
        }
        self.paused_until = None;
        self.fill(now);
        self.per_second == 0.0 || self.tokens >= 1.0
    }

    /// When to ask again after a refusal.
    pub(crate) fn opens(&self, now: Instant) -> Instant {
        let missing = (1.0 - self.tokens).max(0.0);
        let token = match self.per_second > 0.0 {
            true => self.filled + Duration::from_secs_f64(missing / self.per_second),
            false => now,
        };
        self.paused_until.map_or(token, |until| until.max(token))
    }

    fn fill(&mut self, now: Instant) {
        if self.per_second > 0.0 {
            let gained = now.duration_since(self.filled).as_secs_f64() * self.per_second;
            self.tokens = (self.tokens + gained).min((self.per_second * BURST).max(1.0));
            self.filled = now;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rate_holds_over_time() {
        let start = Instant::now();
        let mut pace = Pace::new(50, start);
        let mut gone = 0;
        for millis in 0..2_000 {
            while pace.is_open(start + Duration::from_millis(millis)) {
                pace.spend();
                gone += 1;
            }
        }
        assert!((98..=101).contains(&gone), "{gone}");
    }

    #[test]
    fn a_pause_ends_by_itself() {
        let start = Instant::now();
        let mut pace = Pace::new(0, start);
        pace.pause(start);
        assert!(!pace.is_open(start + PAUSE / 2));
        assert_eq!(pace.opens(start), start + PAUSE);
        assert!(pace.is_open(start + PAUSE));
    }
}
