//! The simulated SMSC as others hold it: its handsets, and what their owners do with them.

use crate::smpp::submit;
use crate::smsc::delivery::Delivery;
use crate::smsc::handset::{Handsets, Sender};
use crate::smsc::mailbox::Mailbox;
use crate::smsc::options::SmscOptions;
use crate::smsc::party::Party;
use crate::smsc::reply::Reply;
use crate::smsc::shared::Smsc;
use heliograph_domain::originator::{BadOriginator, Originator};
use heliograph_domain::phone::Recipient;
use heliograph_domain::time::Clock;
use std::fmt;
use std::io;
use std::sync::Arc;
use tokio::time::Instant;

/// A simulated SMSC, less its listeners. Clones are the same one.
#[derive(Clone)]
pub struct Simulator {
    pub(crate) smsc: Arc<Smsc>,
}

/// Why a handset can't reply.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum ReplyError {
    /// Nobody could be written to under that name.
    #[error("to: {0}")]
    To(#[from] BadOriginator),
    /// More than 255 parts.
    #[error("text: it takes more than 255 parts")]
    TooLong,
    /// No session is bound that could take it.
    #[error("nobody is bound that could take the reply: bind as a receiver or transceiver first")]
    Nobody,
    /// Whoever it is for has not taken what was there before.
    #[error("too much waits for whom the reply is for: acknowledge that first")]
    Full,
}

impl Simulator {
    /// An error when the journal can't be opened.
    pub fn new(options: SmscOptions, clock: Arc<dyn Clock>) -> io::Result<Self> {
        Ok(Self { smsc: Arc::new(Smsc::new(options, clock)?) })
    }

    /// Its handsets.
    pub fn handsets(&self) -> &Handsets {
        &self.smsc.options.handsets
    }

    /// The handset `from` writes `text` to the originator `to`, in answer to the last message from
    /// there, or the last with this `label` if it is named and there is one. It goes to the client
    /// that sent that message, and carries its label or else the one named. To an originator that
    /// the handset does not know it goes by any client.
    pub fn reply(
        &self,
        from: Recipient,
        to: &str,
        text: &str,
        label: Option<i64>,
    ) -> Result<(), ReplyError> {
        let answered = self.handsets().sender(from, to, label);
        let party = match &answered {
            Some(sender) => sender.party,
            None => party(to)?,
        };
        let label = label.or(answered.as_ref().and_then(|sender| sender.label));
        let [.., reference] = self.smsc.next_id().to_be_bytes();
        let parts = Reply::parts(Party::handset(from), party, text, reference, label);
        if parts.is_empty() {
            return Err(ReplyError::TooLong);
        }
        let mailbox = self.mailbox(answered)?;
        let now = Instant::now();
        mailbox.post(parts.into_iter().map(|part| (now, Box::new(Delivery::Reply(part)))));
        mailbox.bell.notify_one();
        Ok(())
    }

    fn mailbox(&self, answered: Option<Sender>) -> Result<Arc<Mailbox>, ReplyError> {
        let mailbox = match answered {
            Some(sender) => Some(sender.mailbox).filter(|mailbox| mailbox.has_receiver()),
            None => self.smsc.any_receiver(),
        };
        let mailbox = mailbox.ok_or(ReplyError::Nobody)?;
        match mailbox.is_full() {
            true => Err(ReplyError::Full),
            false => Ok(mailbox),
        }
    }
}

/// Only the handsets: the rest is in motion.
impl fmt::Debug for Simulator {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Simulator").field("handsets", self.handsets()).finish_non_exhaustive()
    }
}

/// An originator that the handset has never heard of.
fn party(to: &str) -> Result<Party, BadOriginator> {
    let originator: Originator = to.parse()?;
    let (ton, npi) = submit::kind(originator.kind());
    Ok(Party::new(ton, npi, originator.as_str()))
}
