//! The state that all sessions of the simulated SMSC share.

use crate::smpp::command::status;
use crate::smpp::rate::RateLimiter;
use crate::smsc::behaviour::Behaviour;
use crate::smsc::delivery_queue::DeliveryQueue;
use crate::smsc::journal::Journal;
use crate::smsc::options::SmscOptions;
use heliograph_domain::time::Clock;
use std::collections::{HashMap, HashSet};
use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::time::Instant;

/// The maximum number of system_ids with a delivery queue.
const MAX_QUEUES: usize = 10_000;

/// The maximum number of remembered destinations that were throttled once.
const MAX_THROTTLED: usize = 10_000;

/// The shared state of the SMSC.
pub(crate) struct SmscState {
    pub(crate) options: SmscOptions,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) journal: Option<Journal>,
    ids: AtomicU64,
    responses: AtomicU64,
    limiter: Mutex<RateLimiter>,
    throttled: Mutex<HashSet<(Option<i64>, Vec<u8>)>>,
    queues: Mutex<HashMap<Vec<u8>, Arc<DeliveryQueue>>>,
}

impl SmscState {
    pub(crate) fn new(options: SmscOptions, clock: Arc<dyn Clock>) -> io::Result<Self> {
        options.handsets.set_capacity(options.keep_messages);
        let journal = options.journal.as_deref().map(Journal::open).transpose()?;
        // Ids start at the time in microseconds, so that they differ between runs, and have at
        // least ten digits even if the clock starts at zero.
        let start = u64::try_from(clock.now().millis()).unwrap_or(0);
        let start = start.saturating_mul(1_000).max(1_000_000_000);
        let rate = options.throttle;
        Ok(Self {
            options,
            clock,
            journal,
            ids: AtomicU64::new(start),
            responses: AtomicU64::new(0),
            limiter: Mutex::new(RateLimiter::new(rate, Instant::now())),
            throttled: Mutex::default(),
            queues: Mutex::default(),
        })
    }

    pub(crate) fn next_id(&self) -> u64 {
        self.ids.fetch_add(1, Ordering::Relaxed)
    }

    /// Counts a submit_sm_resp and returns whether it must be dropped.
    pub(crate) fn drops_response(&self) -> bool {
        let every = self.options.drop_response_every;
        every > 0 && (self.responses.fetch_add(1, Ordering::Relaxed) + 1).is_multiple_of(every)
    }

    /// Returns the delivery queue of `system_id`; `None` when there are too many queues.
    pub(crate) fn queue(&self, system_id: &[u8]) -> Option<Arc<DeliveryQueue>> {
        let mut all = lock(&self.queues);
        if !all.contains_key(system_id) && all.len() >= MAX_QUEUES {
            return None;
        }
        Some(Arc::clone(all.entry(system_id.to_owned()).or_default()))
    }

    /// Returns the delivery queue of any client with a bound session that can receive.
    pub(crate) fn any_receiver(&self) -> Option<Arc<DeliveryQueue>> {
        let all = lock(&self.queues);
        all.values().find(|queue| queue.has_receiver()).cloned()
    }

    /// Returns the command_status that refuses a submit to `number`, if any. Each account, which the
    /// label names, is throttled by itself.
    pub(crate) fn refusal(
        &self,
        (label, number): (Option<i64>, &[u8]),
        behaviour: &Behaviour,
        now: Instant,
    ) -> Option<u32> {
        if self.is_too_fast(now) || (behaviour.throttles && self.is_first(label, number)) {
            return Some(status::ESME_RTHROTTLED);
        }
        behaviour.refusal
    }

    fn is_too_fast(&self, now: Instant) -> bool {
        if self.options.throttle == 0 {
            return false;
        }
        let mut limiter = lock(&self.limiter);
        let open = limiter.may_send(now);
        if open {
            limiter.consume();
        }
        !open
    }

    fn is_first(&self, label: Option<i64>, number: &[u8]) -> bool {
        let mut seen = lock(&self.throttled);
        if seen.len() >= MAX_THROTTLED {
            seen.clear();
        }
        seen.insert((label, number.to_owned()))
    }
}

/// Ignores poisoning: no panic can leave one of these values inconsistent.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;
    use heliograph_domain::time::Timestamp;
    use std::time::Duration;

    struct Fixed;

    impl Clock for Fixed {
        fn now(&self) -> Timestamp {
            Timestamp(0)
        }

        fn monotonic(&self) -> Duration {
            Duration::ZERO
        }
    }

    #[tokio::test]
    async fn each_account_is_throttled_once_by_a_number() {
        let state = SmscState::new(SmscOptions::default(), Arc::new(Fixed)).unwrap();
        let number = b"447700900004";
        let behaviour = Behaviour::for_number(number);
        for label in [Some(1), Some(3), None] {
            let submit = || state.refusal((label, number), &behaviour, Instant::now());
            assert_eq!([submit(), submit()], [Some(status::ESME_RTHROTTLED), None], "{label:?}");
        }
    }
}
