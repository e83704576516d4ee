//! What can be done about a message that failed.

use crate::message::FailureCode;

impl FailureCode {
    /// One sentence for the person who sent it: what to do about it.
    pub const fn advice(self) -> &'static str {
        match self {
            Self::InvalidRecipient => {
                "Look for a mistyped digit, and take the number off your lists if it is right."
            }
            Self::Unreachable => "The handset may be off or out of reach: send it again later.",
            Self::BlockedByCarrier => {
                "Ask the operator of this service which rule it met; the same message would be blocked again."
            }
            Self::OptedOut => "They hear from you again once they write START.",
            Self::RejectedSender => {
                "Send it from another originator: a number, or a name that the carrier knows."
            }
            Self::RejectedContent => {
                "Say it in other words, without links that look like an advertisement."
            }
            Self::RouteUnavailable => {
                "Ask the operator of this service for a route to this country."
            }
            Self::Expired => {
                "Send it again if it is still news, with a longer validity if it can wait."
            }
            Self::ReceiptTimeout => {
                "It may have arrived all the same: ask the person before you send it again."
            }
            Self::CarrierError => {
                "Send it again later; if that fails too, tell the operator of this service."
            }
            Self::Unknown => {
                "Send it again; if that fails too, give the operator the carrier's code."
            }
        }
    }
}
