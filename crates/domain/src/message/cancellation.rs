//! Why a message can no longer be cancelled.

use crate::message::{MessageState, MessageStatus};

/// The reason why a message can no longer be cancelled.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum NotCancellableReason {
    /// A node is submitting the message.
    InProgress,
    /// Some parts may have been sent.
    InDoubt,
    /// Some parts were sent.
    PartlySent,
    /// All parts were sent.
    Sent,
    /// The message was delivered.
    Delivered,
    /// The message has failed or was cancelled.
    Ended,
}

impl NotCancellableReason {
    /// Returns the reason for a message in this state, of which a part was submitted.
    pub const fn of(state: &MessageState) -> Self {
        match state.status {
            MessageStatus::Queued if state.in_doubt => Self::InDoubt,
            MessageStatus::Queued => Self::PartlySent,
            MessageStatus::Sent => Self::Sent,
            MessageStatus::Delivered => Self::Delivered,
            MessageStatus::Failed | MessageStatus::Cancelled => Self::Ended,
        }
    }

    /// Returns the code, for logs.
    pub const fn code(self) -> &'static str {
        match self {
            Self::InProgress => "in_progress",
            Self::InDoubt => "in_doubt",
            Self::PartlySent => "partly_sent",
            Self::Sent => "sent",
            Self::Delivered => "delivered",
            Self::Ended => "ended",
        }
    }
}
