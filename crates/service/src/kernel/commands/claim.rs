//! The command that leases messages to a dispatcher.

use crate::kernel::commands::writer_command::WriterCommand;
use heliograph_domain::id::CarrierId;
use heliograph_domain::lease::LeasedMessage;
use heliograph_store::{StoreError, StoreResult};
use std::time::Instant;
use tokio::sync::{OwnedSemaphorePermit, oneshot};

/// A request of a dispatcher for messages to send.
#[derive(Debug)]
pub struct ClaimMessages {
    /// The carrier.
    pub carrier: CarrierId,
    /// One slot for each message that the dispatcher has room for.
    pub room: OwnedSemaphorePermit,
    /// Receives the leased messages.
    pub reply: oneshot::Sender<StoreResult<Vec<DispatchItem>>>,
}

/// A leased message on its way to the dispatcher, with its slot there.
#[derive(Debug)]
pub struct DispatchItem {
    /// The message and its lease.
    pub leased: LeasedMessage,
    /// The start of the lease by the monotonic clock; never later than the database assumes.
    pub since: Instant,
    /// The slot; free again when this is dropped.
    pub room: OwnedSemaphorePermit,
}

impl WriterCommand for ClaimMessages {
    fn weight(&self) -> usize {
        self.room.num_permits()
    }

    fn refuse(self, error: &StoreError) {
        let _ = self.reply.send(Err(error.share()));
    }
}
