//! The circuit breaker of one webhook endpoint.
//!
//! The breaker limits concurrent requests: 64 to an endpoint that answers quickly, 16 otherwise.
//! After five failures in a row it opens with exponential back-off; after the pause it is half-open
//! and lets one request through at a time until one succeeds.

use heliograph_domain::retry;
use std::time::Duration;
use tokio::time::Instant;

/// The concurrency limit of an endpoint that answers quickly.
const FAST_LIMIT: usize = 64;
/// The concurrency limit of a slow, failing or unknown endpoint.
const SLOW_LIMIT: usize = 16;
/// A response that takes longer marks the endpoint as slow.
const QUICK: Duration = Duration::from_secs(1);
/// The number of consecutive failures that opens the breaker.
const FAILURES: u32 = 5;
/// The shortest and the longest back-off. An endpoint that works again is found after half a minute.
const PAUSE: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(30));

/// An endpoint that succeeded within this time works, even if some requests fail.
const RECENT: Duration = Duration::from_secs(10);

/// The health of an endpoint, from its latest responses.
#[derive(Debug, Default)]
pub(crate) struct CircuitBreaker {
    /// Consecutive failures.
    failures: u32,
    /// Consecutive quick responses.
    quick: u32,
    /// The end of the back-off. Set until the next success, so a time in the past means half-open.
    open_until: Option<Instant>,
    /// The time of the last success.
    succeeded_at: Option<Instant>,
}

impl CircuitBreaker {
    /// Returns how many requests may be in flight at once: 0 while the breaker is open.
    pub(crate) fn capacity(&self, now: Instant) -> usize {
        match self.open_until {
            Some(until) if now < until => 0,
            // Half-open: one at a time, until one succeeds.
            Some(_) => 1,
            None if self.failures == 0 && self.quick > 0 => FAST_LIMIT,
            None => SLOW_LIMIT,
        }
    }

    /// Returns whether the endpoint answers, and quickly. Fresh deliveries are handed directly to
    /// the worker of a healthy endpoint.
    pub(crate) const fn is_healthy(&self) -> bool {
        self.failures == 0 && self.quick > 0
    }

    /// Returns whether the breaker has opened and no request has succeeded since.
    pub(crate) const fn has_opened(&self) -> bool {
        self.open_until.is_some()
    }

    /// Returns whether the endpoint works, although some requests may fail.
    pub(crate) fn works(&self, now: Instant) -> bool {
        let recent = |at: Instant| now.saturating_duration_since(at) < RECENT;
        !self.has_opened() && self.succeeded_at.is_some_and(recent)
    }

    /// Records a successful delivery.
    pub(crate) fn record_success(&mut self, now: Instant, took: Duration) {
        self.failures = 0;
        self.succeeded_at = Some(now);
        self.open_until = None;
        self.quick = if took < QUICK { self.quick.saturating_add(1) } else { 0 };
    }

    /// Records a failed delivery. `random` is uniform in 0..1 and adds jitter to the back-off.
    pub(crate) fn record_failure(&mut self, now: Instant, random: f64) {
        self.failures = self.failures.saturating_add(1);
        self.quick = 0;
        if let Some(over) = self.failures.checked_sub(FAILURES) {
            let pause = retry::reconnect_delay(over, PAUSE.0, PAUSE.1, random);
            self.open_until = Some(now + pause);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn failures_open_the_breaker_and_a_success_closes_it() {
        let (now, quick) = (Instant::now(), Duration::from_millis(5));
        let mut breaker = CircuitBreaker::default();
        assert_eq!((breaker.capacity(now), breaker.is_healthy()), (SLOW_LIMIT, false));
        breaker.record_success(now, quick);
        assert_eq!((breaker.capacity(now), breaker.is_healthy()), (FAST_LIMIT, true));
        breaker.record_success(now, Duration::from_secs(3));
        assert_eq!((breaker.capacity(now), breaker.is_healthy()), (SLOW_LIMIT, false));
        breaker.record_success(now, quick);
        for _ in 1..FAILURES {
            breaker.record_failure(now, 1.0);
            assert_eq!((breaker.capacity(now), breaker.is_healthy()), (SLOW_LIMIT, false));
        }
        breaker.record_failure(now, 1.0);
        assert_eq!(breaker.capacity(now), 0);
        assert_eq!(breaker.capacity(now + PAUSE.0), 1, "half-open");
        for _ in 0..100 {
            breaker.record_failure(now, 1.0);
        }
        assert_eq!(breaker.open_until, Some(now + PAUSE.1));
        assert!(breaker.has_opened() && !breaker.works(now));
        breaker.record_success(now, quick);
        assert_eq!(breaker.capacity(now), FAST_LIMIT);
        assert!(!breaker.has_opened() && breaker.works(now) && !breaker.works(now + RECENT));
    }
}
