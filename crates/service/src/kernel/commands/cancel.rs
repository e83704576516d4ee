//! The command that cancels a queued message.

use crate::kernel::commands::writer_command::WriterCommand;
use heliograph_domain::id::{AccountId, MessageId};
use heliograph_store::messaging::queue::QueuePosition;
use heliograph_store::{StoreError, StoreResult};
use tokio::sync::oneshot;

/// A request to cancel a message.
#[derive(Debug)]
pub struct Cancel {
    /// The account of the message.
    pub account: AccountId,
    /// The message.
    pub message: MessageId,
    /// The position of the message in the queue.
    pub place: QueuePosition,
    /// Receives the outcome.
    pub reply: oneshot::Sender<StoreResult<CancelOutcome>>,
}

/// The outcome of a [`Cancel`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum CancelOutcome {
    /// The message is cancelled and will not be sent.
    Done,
    /// The message is no longer at that position: sending has begun, or it was postponed.
    Moved,
}

impl WriterCommand for Cancel {
    fn weight(&self) -> usize {
        1
    }

    fn refuse(self, error: &StoreError) {
        let _ = self.reply.send(Err(error.share()));
    }
}
