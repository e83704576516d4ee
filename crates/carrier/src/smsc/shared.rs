//! What all sessions of the simulated SMSC share.

use crate::smpp::command::status;
use crate::smpp::pace::Pace;
use crate::smsc::behaviour::Behaviour;
use crate::smsc::journal::Journal;
use crate::smsc::mailbox::Mailbox;
use crate::smsc::options::SmscOptions;
use heliograph_domain::time::Clock;
use std::collections::{HashMap, HashSet};
use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::time::Instant;

/// The most system_ids with a mailbox.
const MAX_MAILBOXES: usize = 10_000;

/// The most numbers that are remembered to have been throttled once.
const MAX_THROTTLED: usize = 10_000;

/// The SMSC, less its connections.
pub(crate) struct Smsc {
    pub(crate) options: SmscOptions,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) journal: Option<Journal>,
    ids: AtomicU64,
    answers: AtomicU64,
    pace: Mutex<Pace>,
    throttled: Mutex<HashSet<Vec<u8>>>,
    mailboxes: Mutex<HashMap<Vec<u8>, Arc<Mailbox>>>,
}

impl Smsc {
    pub(crate) fn new(options: SmscOptions, clock: Arc<dyn Clock>) -> io::Result<Self> {
        options.handsets.keep(options.keep_messages);
        let journal = options.journal.as_deref().map(Journal::open).transpose()?;
        // Ids count on from the time in microseconds: they differ between runs, and don't begin
        // with a zero even if the clock does.
        let start = u64::try_from(clock.now().millis()).unwrap_or(0);
        let start = start.saturating_mul(1_000).max(1_000_000_000);
        let rate = options.throttle;
        Ok(Self {
            options,
            clock,
            journal,
            ids: AtomicU64::new(start),
            answers: AtomicU64::new(0),
            pace: Mutex::new(Pace::new(rate, Instant::now())),
            throttled: Mutex::default(),
            mailboxes: Mutex::default(),
        })
    }

    pub(crate) fn next_id(&self) -> u64 {
        self.ids.fetch_add(1, Ordering::Relaxed)
    }

    /// Whether the answer that is about to be given shall get lost.
    pub(crate) fn loses_answer(&self) -> bool {
        let every = self.options.drop_response_every;
        every > 0 && (self.answers.fetch_add(1, Ordering::Relaxed) + 1).is_multiple_of(every)
    }

    /// The mailbox of `system_id`; `None` when there are too many already.
    pub(crate) fn mailbox(&self, system_id: &[u8]) -> Option<Arc<Mailbox>> {
        let mut all = lock(&self.mailboxes);
        if !all.contains_key(system_id) && all.len() >= MAX_MAILBOXES {
            return None;
        }
        Some(Arc::clone(all.entry(system_id.to_owned()).or_default()))
    }

    /// The mailbox of somebody who is bound and can receive.
    pub(crate) fn any_receiver(&self) -> Option<Arc<Mailbox>> {
        let all = lock(&self.mailboxes);
        all.values().find(|mailbox| mailbox.has_receiver()).cloned()
    }

    /// The status with which a submit to `number` is refused, if it is.
    pub(crate) fn refuses(
        &self,
        number: &[u8],
        behaviour: &Behaviour,
        now: Instant,
    ) -> Option<u32> {
        if self.is_too_fast(now) || (behaviour.throttles && self.is_first(number)) {
            return Some(status::ESME_RTHROTTLED);
        }
        behaviour.refusal
    }

    fn is_too_fast(&self, now: Instant) -> bool {
        if self.options.throttle == 0 {
            return false;
        }
        let mut pace = lock(&self.pace);
        let open = pace.is_open(now);
        if open {
            pace.spend();
        }
        !open
    }

    fn is_first(&self, number: &[u8]) -> bool {
        let mut seen = lock(&self.throttled);
        if seen.len() >= MAX_THROTTLED {
            seen.clear();
        }
        seen.insert(number.to_owned())
    }
}

/// None of these is ever left half changed, so a panic elsewhere spoils nothing.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
