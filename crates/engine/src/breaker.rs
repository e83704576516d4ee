//! The breaker of one endpoint: how many webhooks it is given at once, and when it is left alone.

use heliograph_domain::retry;
use std::time::Duration;
use tokio::time::Instant;

/// At once to an endpoint that answers quickly.
const FAST: usize = 64;
/// At once to one that takes its time, or of which nothing is known yet.
const SLOW: usize = 16;
/// An answer that takes longer makes an endpoint a slow one.
const QUICK: Duration = Duration::from_secs(1);
/// Failures in a row after which an endpoint is left alone for a while.
const FAILURES: u32 = 5;
/// The first pause and the longest.
const PAUSE: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(60));

/// What is known of an endpoint's health, from its last answers.
#[derive(Debug, Default)]
pub(crate) struct Breaker {
    /// Failures since the last success.
    failures: u32,
    /// Answers in a row that were quick.
    quick: u32,
    closed_until: Option<Instant>,
}

impl Breaker {
    /// How many webhooks may be under way at once.
    pub(crate) fn room(&self, now: Instant) -> usize {
        match self.closed_until {
            Some(until) if now < until => 0,
            // One by one, until one succeeds.
            Some(_) => 1,
            None if self.failures == 0 && self.quick > 0 => FAST,
            None => SLOW,
        }
    }

    /// Whether it answers, and quickly: then it is handed what is fresh, ahead of its turn.
    pub(crate) const fn is_well(&self) -> bool {
        self.failures == 0 && self.quick > 0
    }

    /// Takes note of a success.
    pub(crate) fn succeeded(&mut self, took: Duration) {
        self.failures = 0;
        self.closed_until = None;
        self.quick = if took < QUICK { self.quick.saturating_add(1) } else { 0 };
    }

    /// Takes note of a failure. `random` is uniform in 0..1.
    pub(crate) fn failed(&mut self, now: Instant, random: f64) {
        self.failures = self.failures.saturating_add(1);
        self.quick = 0;
        if let Some(over) = self.failures.checked_sub(FAILURES) {
            let pause = retry::reconnect_delay(over, PAUSE.0, PAUSE.1, random);
            self.closed_until = Some(now + pause);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn opens_with_success_and_closes_with_failures() {
        let (now, soon) = (Instant::now(), Duration::from_millis(5));
        let mut breaker = Breaker::default();
        assert_eq!((breaker.room(now), breaker.is_well()), (SLOW, false));
        breaker.succeeded(soon);
        assert_eq!((breaker.room(now), breaker.is_well()), (FAST, true));
        breaker.succeeded(Duration::from_secs(3));
        assert_eq!((breaker.room(now), breaker.is_well()), (SLOW, false));
        breaker.succeeded(soon);
        for _ in 1..FAILURES {
            breaker.failed(now, 1.0);
            assert_eq!((breaker.room(now), breaker.is_well()), (SLOW, false));
        }
        breaker.failed(now, 1.0);
        assert_eq!(breaker.room(now), 0);
        assert_eq!(breaker.room(now + PAUSE.0), 1, "then one by one");
        for _ in 0..100 {
            breaker.failed(now, 1.0);
        }
        assert_eq!(breaker.closed_until, Some(now + PAUSE.1));
        breaker.succeeded(soon);
        assert_eq!(breaker.room(now), FAST);
    }
}
