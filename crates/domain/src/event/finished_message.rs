//! A message in a final status, as events report it.

use crate::event::kind::EventKind;
use crate::message::{Message, MessageState, MessageStatus};
use std::sync::Arc;

/// A message in a final status, and the currency of its price.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct FinishedMessage {
    /// The message.
    pub message: Arc<Message>,
    /// The final state.
    pub state: MessageState,
    /// The currency code (ISO 4217).
    pub currency: Arc<str>,
}

impl FinishedMessage {
    /// Returns the kind of the event for a final status. A cancelled message has no event.
    pub const fn event_kind(status: MessageStatus) -> Option<EventKind> {
        match status {
            MessageStatus::Delivered => Some(EventKind::MessageDelivered),
            MessageStatus::Failed => Some(EventKind::MessageFailed),
            MessageStatus::Queued | MessageStatus::Sent | MessageStatus::Cancelled => None,
        }
    }
}
