//! The keep-alive: detects with enquire_link (SMPP 3.4 §4.11.1) when the SMSC is gone.

use crate::smpp::close_reason::CloseReason;
use crate::smpp::options::SmppOptions;
use tokio::time::Instant;

/// The keep-alive state of one session.
#[derive(Debug)]
pub(crate) struct Keepalive {
    /// The time of the last read.
    last_read: Instant,
    /// The time when the unanswered enquire_link was sent.
    enquired: Option<Instant>,
    /// The time when the first bytes of an incomplete PDU were read.
    partial_since: Option<Instant>,
}

impl Keepalive {
    pub(crate) fn new(now: Instant) -> Self {
        Self { last_read: now, enquired: None, partial_since: None }
    }

    /// Records a read of `complete` PDUs, and whether it ended with an incomplete one.
    pub(crate) fn on_read(&mut self, now: Instant, complete: usize, partial: bool) {
        self.last_read = now;
        self.enquired = None;
        self.partial_since = match (partial, complete) {
            (false, _) => None,
            (true, 0) => self.partial_since.or(Some(now)),
            (true, _) => Some(now),
        };
    }

    /// Returns whether an enquire_link must be sent now, and counts it as sent. Returns an error
    /// when the SMSC does not respond or leaves a PDU incomplete for too long.
    pub(crate) fn enquire_due(
        &mut self,
        now: Instant,
        options: &SmppOptions,
    ) -> Result<bool, CloseReason> {
        let late = |since: Option<Instant>, limit| since.is_some_and(|at| now >= at + limit);
        if late(self.enquired, options.enquire_timeout) {
            return Err(CloseReason::EnquireTimeout(options.enquire_timeout));
        }
        if late(self.partial_since, options.read_timeout) {
            return Err(CloseReason::ReadTimeout(options.read_timeout));
        }
        let due = self.enquired.is_none() && now >= self.last_read + options.enquire_interval;
        if due {
            self.enquired = Some(now);
        }
        Ok(due)
    }

    /// Returns when [`Self::enquire_due`] must be called again.
    pub(crate) fn deadline(&self, options: &SmppOptions) -> Instant {
        let next = match self.enquired {
            Some(at) => at + options.enquire_timeout,
            None => self.last_read + options.enquire_interval,
        };
        self.partial_since.map_or(next, |since| next.min(since + options.read_timeout))
    }
}
