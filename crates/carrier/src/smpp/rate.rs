//! The rate limit of submissions: a token bucket, and pauses after throttling by the SMSC.

use std::time::Duration;
use tokio::time::Instant;

/// The pause after the SMSC throttled a submission.
const PAUSE: Duration = Duration::from_secs(1);

/// The capacity of the bucket in seconds: a tenth of a second's worth may be sent at once.
const BURST: f64 = 0.1;

/// The rate limiter of one session.
#[derive(Debug)]
pub(crate) struct RateLimiter {
    per_second: f64,
    tokens: f64,
    filled: Instant,
    paused_until: Option<Instant>,
}

impl RateLimiter {
    /// Creates a limiter for `rate` parts per second; 0 means no limit.
    pub(crate) fn new(rate: u32, now: Instant) -> Self {
        Self { per_second: f64::from(rate), tokens: 1.0, filled: now, paused_until: None }
    }

    pub(crate) fn pause(&mut self, now: Instant) {
        self.paused_until = Some(now + PAUSE);
    }

    /// Takes one token, for a part that is sent.
    pub(crate) fn consume(&mut self) {
        if self.per_second > 0.0 {
            self.tokens -= 1.0;
        }
    }

    /// Returns whether a part may be sent at `now`.
    pub(crate) fn may_send(&mut self, now: Instant) -> bool {
        if self.paused_until.is_some_and(|until| now < until) {
            return false;
        }
        self.paused_until = None;
        self.fill(now);
        self.per_second == 0.0 || self.tokens >= 1.0
    }

    /// Returns when [`Self::may_send`] can be true again.
    pub(crate) fn ready_at(&self, now: Instant) -> Instant {
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
    fn rate_is_kept_over_time() {
        let start = Instant::now();
        let mut limiter = RateLimiter::new(50, start);
        let mut sent = 0;
        for millis in 0..2_000 {
            while limiter.may_send(start + Duration::from_millis(millis)) {
                limiter.consume();
                sent += 1;
            }
        }
        assert!((98..=101).contains(&sent), "{sent}");
    }

    #[test]
    fn pause_ends_by_itself() {
        let start = Instant::now();
        let mut limiter = RateLimiter::new(0, start);
        limiter.pause(start);
        assert!(!limiter.may_send(start + PAUSE / 2));
        assert_eq!(limiter.ready_at(start), start + PAUSE);
        assert!(limiter.may_send(start + PAUSE));
    }
}
