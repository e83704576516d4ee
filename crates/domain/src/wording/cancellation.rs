//! The texts of messages that can no longer be cancelled.

use crate::message::NotCancellableReason;

/// Returns a sentence that explains why a message can no longer be cancelled.
pub const fn not_cancellable(reason: NotCancellableReason) -> &'static str {
    match reason {
        NotCancellableReason::InProgress => "The message is being sent to the carrier.",
        NotCancellableReason::InDoubt => "Part of the message may have been sent.",
        NotCancellableReason::PartlySent => "Part of the message was sent.",
        NotCancellableReason::Sent => "The message was sent.",
        NotCancellableReason::Delivered => "The message was delivered.",
        NotCancellableReason::Ended => "The message has already ended.",
    }
}
