//! The command that creates a message.

use crate::kernel::commands::writer_command::WriterCommand;
use heliograph_domain::account_limit::AccountLimit;
use heliograph_domain::id::MessageId;
use heliograph_domain::message::Message;
use heliograph_store::idempotency::ScopedKey;
use heliograph_store::{StoreError, StoreResult};
use std::sync::Arc;
use tokio::sync::oneshot;

/// A request to create a message.
#[derive(Debug)]
pub struct Accept {
    /// The complete message.
    pub message: Arc<Message>,
    /// The client's idempotency key and the SHA-256 of its request.
    pub idempotency: Option<(ScopedKey, [u8; 32])>,
    /// Receives the outcome.
    pub reply: oneshot::Sender<StoreResult<AcceptOutcome>>,
}

/// The outcome of an [`Accept`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum AcceptOutcome {
    /// The message is durable.
    Done,
    /// An earlier request with the same idempotency key created this message.
    Replayed(MessageId),
    /// The idempotency key belongs to a different request.
    KeyReused,
    /// The API key was revoked meanwhile, or lacks the permission to send.
    KeyInvalid,
    /// The balance does not cover the message.
    InsufficientBalance,
    /// The recipient is on the opt-out list that the message enforces.
    OptedOut,
    /// The account has reached this limit.
    LimitReached(AccountLimit),
}

impl WriterCommand for Accept {
    fn weight(&self) -> usize {
        1
    }

    fn refuse(self, error: &StoreError) {
        let _ = self.reply.send(Err(error.share()));
    }
}
