//! The handle of the simulated SMSC: access to its handsets, and replies from them.

use crate::smpp::submit;
use crate::smsc::address::StoredAddress;
use crate::smsc::delivery::PendingDelivery;
use crate::smsc::delivery_queue::DeliveryQueue;
use crate::smsc::handset::{Handsets, ReplyRoute};
use crate::smsc::options::SmscOptions;
use crate::smsc::reply::ReplyPart;
use crate::smsc::state::SmscState;
use heliograph_domain::originator::{BadOriginator, Originator};
use heliograph_domain::phone::Recipient;
use heliograph_domain::time::Clock;
use std::fmt;
use std::io;
use std::sync::Arc;
use tokio::time::Instant;

/// A simulated SMSC without its listeners. Clones share the same state.
#[derive(Clone)]
pub struct Simulator {
    pub(crate) smsc: Arc<SmscState>,
}

/// The reasons why a handset can't reply.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum ReplyError {
    /// The reply is addressed to an invalid originator.
    #[error("to: {0}")]
    InvalidOriginator(#[from] BadOriginator),
    /// The text needs more than 255 parts.
    #[error("text: longer than 255 parts")]
    TooLong,
    /// No bound session can receive the reply.
    #[error("no client can receive the reply: bind as receiver or transceiver first")]
    NoReceiver,
    /// The delivery queue of the client is full.
    #[error("reply queue full: acknowledge pending messages first")]
    QueueFull,
}

impl Simulator {
    /// Creates the SMSC. Returns an error when the journal can't be opened.
    pub fn new(options: SmscOptions, clock: Arc<dyn Clock>) -> io::Result<Self> {
        Ok(Self { smsc: Arc::new(SmscState::new(options, clock)?) })
    }

    /// Returns the handsets.
    pub fn handsets(&self) -> &Handsets {
        &self.smsc.options.handsets
    }

    /// Sends `text` from the handset `from` to the originator `to`, as a reply to the last message
    /// from there, or to the last one with `label` if there is one. The client that sent the
    /// message receives the reply, with `label` if given, otherwise with the label of the message.
    /// A reply to an originator that is unknown to the handset goes to any client.
    pub fn reply(
        &self,
        from: Recipient,
        to: &str,
        text: &str,
        label: Option<i64>,
    ) -> Result<(), ReplyError> {
        let route = self.handsets().reply_route(from, to, label);
        let address = match &route {
            Some(route) => route.address,
            None => address(to)?,
        };
        let label = label.or(route.as_ref().and_then(|route| route.label));
        let [.., reference] = self.smsc.next_id().to_be_bytes();
        let parts = ReplyPart::parts(StoredAddress::handset(from), address, text, reference, label);
        if parts.is_empty() {
            return Err(ReplyError::TooLong);
        }
        let queue = self.queue(route)?;
        let now = Instant::now();
        queue.push(parts.into_iter().map(|part| (now, Box::new(PendingDelivery::Reply(part)))));
        queue.ready.notify_one();
        Ok(())
    }

    fn queue(&self, route: Option<ReplyRoute>) -> Result<Arc<DeliveryQueue>, ReplyError> {
        let queue = match route {
            Some(route) => Some(route.queue).filter(|queue| queue.has_receiver()),
            None => self.smsc.any_receiver(),
        };
        let queue = queue.ok_or(ReplyError::NoReceiver)?;
        match queue.is_full() {
            true => Err(ReplyError::QueueFull),
            false => Ok(queue),
        }
    }
}

/// Prints only the handsets; the rest changes all the time.
impl fmt::Debug for Simulator {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Simulator").field("handsets", self.handsets()).finish_non_exhaustive()
    }
}

/// Parses the address of an originator that is unknown to the handset.
fn address(to: &str) -> Result<StoredAddress, BadOriginator> {
    let originator: Originator = to.parse()?;
    let (ton, npi) = submit::ton_npi(originator.kind());
    Ok(StoredAddress::new(ton, npi, originator.as_str()))
}
