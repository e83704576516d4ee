//! Whether the other side is still there.

use crate::smpp::end::End;
use crate::smpp::options::SmppOptions;
use tokio::time::Instant;

/// When the SMSC was last heard, and what is being waited for.
#[derive(Debug)]
pub(crate) struct Pulse {
    heard: Instant,
    asked: Option<Instant>,
    begun: Option<Instant>,
}

impl Pulse {
    pub(crate) fn new(now: Instant) -> Self {
        Self { heard: now, asked: None, begun: None }
    }

    /// Something was read: so many whole PDUs, and maybe the beginning of the next.
    pub(crate) fn heard(&mut self, now: Instant, whole: usize, more: bool) {
        self.heard = now;
        self.asked = None;
        self.begun = match (more, whole) {
            (false, _) => None,
            (true, 0) => self.begun.or(Some(now)),
            (true, _) => Some(now),
        };
    }

    /// Whether an enquire_link must go out now; it counts as sent. An error when the SMSC is gone.
    pub(crate) fn ask(&mut self, now: Instant, options: &SmppOptions) -> Result<bool, End> {
        let late = |since: Option<Instant>, limit| since.is_some_and(|at| now >= at + limit);
        if late(self.asked, options.enquire_timeout) {
            return Err(End::Silent(options.enquire_timeout));
        }
        if late(self.begun, options.read_timeout) {
            return Err(End::Stuck(options.read_timeout));
        }
        let ask = self.asked.is_none() && now >= self.heard + options.enquire_after;
        if ask {
            self.asked = Some(now);
        }
        Ok(ask)
    }

    /// When to call [`Self::ask`] again.
    pub(crate) fn deadline(&self, options: &SmppOptions) -> Instant {
        let next = match self.asked {
            Some(asked) => asked + options.enquire_timeout,
            None => self.heard + options.enquire_after,
        };
        self.begun.map_or(next, |begun| next.min(begun + options.read_timeout))
    }
}
