//! The texts of failed messages.

use crate::message::FailureCode;

/// Returns a sentence that explains the failure to the sender.
pub const fn failure_reason(code: FailureCode) -> &'static str {
    match code {
        FailureCode::InvalidRecipient => "The carrier reports that this number does not exist.",
        FailureCode::Unreachable => "The handset could not be reached.",
        FailureCode::BlockedByCarrier => "The carrier blocked the message.",
        FailureCode::OptedOut => "The recipient opted out before the message was sent.",
        FailureCode::RejectedSender => "The carrier does not accept this originator.",
        FailureCode::RejectedContent => "The carrier does not accept this text.",
        FailureCode::RouteUnavailable => "No carrier takes messages for this number.",
        FailureCode::Expired => "The message was not delivered within its validity.",
        FailureCode::ReceiptTimeout => "No delivery receipt arrived from the carrier in time.",
        FailureCode::CarrierError => "The carrier could not process the message.",
        FailureCode::Unknown => "The carrier gave no known reason.",
    }
}
