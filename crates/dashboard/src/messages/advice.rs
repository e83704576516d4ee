//! Advice on failed messages, shown in the dashboard.

use heliograph_domain::message::FailureCode;

/// Returns a sentence that tells the sender what to do about the failure.
pub(super) const fn advice(code: FailureCode) -> &'static str {
    match code {
        FailureCode::InvalidRecipient => {
            "Check the number for typos. If it is correct, remove it from your lists."
        }
        FailureCode::Unreachable => {
            "The handset may be switched off or out of range. Try again later."
        }
        FailureCode::BlockedByCarrier => {
            "The same message would be blocked again. Ask the operator of this service for \
             the reason."
        }
        FailureCode::OptedOut => "Messages are blocked until this person replies START.",
        FailureCode::RejectedSender => {
            "Use another originator: a number, or a name that the carrier has approved."
        }
        FailureCode::RejectedContent => {
            "Rephrase the text, and avoid links that look like advertising."
        }
        FailureCode::RouteUnavailable => {
            "Ask the operator of this service to add a route to this country."
        }
        FailureCode::Expired => {
            "If the message is still relevant, send it again with a longer validity."
        }
        FailureCode::ReceiptTimeout => {
            "The message may have been delivered. Check with the recipient before you send \
             it again."
        }
        FailureCode::CarrierError => {
            "Try again later. If it still fails, contact the operator of this service."
        }
        FailureCode::Unknown => {
            "Try again. If it still fails, contact the operator with the carrier's code."
        }
    }
}
