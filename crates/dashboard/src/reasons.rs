//! The wording of conflicts, and of messages that cannot be sent.

use heliograph_domain::wording::{limits, sentence};
use heliograph_service::kernel::error::{ConflictReason, DestinationReason, Shortfall};
use std::borrow::Cow;

/// The text for a recipient who opted out.
pub(crate) const OPTED_OUT: &str = "This recipient has opted out (STOP), so the message was not sent. The recipient \
                                    can text START to opt back in.";
/// The text for a form that was submitted before with other content.
pub(crate) const ALREADY_SENT: &str = "This form was already submitted with different content, and that message was \
                                       sent. Submit it again to send another message.";

/// Explains that the balance does not cover a message.
pub(crate) fn not_covered(shortfall: &Shortfall) -> String {
    format!(
        "Insufficient balance: {shortfall}. The message was not sent. Ask the operator of this \
         service to add credit."
    )
}

/// Explains why no message can be sent to a number.
pub(crate) fn refused(reason: DestinationReason) -> &'static str {
    match reason {
        DestinationReason::NoRoute => limits::NO_ROUTE,
        DestinationReason::NoPrice => limits::NO_PRICE,
    }
}

/// Explains a conflict, and what to do.
pub(crate) fn conflict(reason: &ConflictReason) -> Cow<'static, str> {
    let text = match reason {
        ConflictReason::InvitationEnded => {
            "This invitation was revoked or has expired. Reload the page to create another."
        }
        ConflictReason::AlreadyMember => "This person is already a member of the account.",
        ConflictReason::InvitationMailLimit => {
            "This person was invited too many times today. Try again tomorrow."
        }
        ConflictReason::EmailUnconfirmed => {
            "Confirm your email address first, with the link that we sent you. You can send it again under Security."
        }
        ConflictReason::TwoFactorMissing => {
            "Enable two-factor authentication for yourself first, under Security."
        }
        ConflictReason::InvitationLimit => "Too many invitations are open. Revoke some first.",
        ConflictReason::UserExists => {
            "You already have a Heliograph user. Sign in to accept the invitation."
        }
        ConflictReason::LastOwner => {
            "An account needs an owner. Make another member an owner first."
        }
        ConflictReason::TwoFactorEnabled => {
            "Two-factor authentication is already enabled. Disable it first."
        }
        ConflictReason::TwoFactorDisabled => "Two-factor authentication is not enabled.",
        ConflictReason::TwoFactorNotPending => "Two-factor setup was not started. Start it again.",
        ConflictReason::ApiKeyLimit(limit) => {
            return sentence(&limits::api_keys(*limit)).into();
        }
        ConflictReason::OptoutListLimit(limit) => {
            return limits::optout_lists(*limit).into();
        }
        ConflictReason::OptoutListExists => limits::OPTOUT_LIST_EXISTS,
        ConflictReason::DefaultOptoutList => limits::DEFAULT_OPTOUT_LIST,
        ConflictReason::DefaultOptoutListName => limits::DEFAULT_OPTOUT_LIST_NAME,
        // Only commands return these.
        ConflictReason::AmbiguousAccount(_)
        | ConflictReason::NumberAssigned(_)
        | ConflictReason::DatabaseNotEmpty(_)
        | ConflictReason::BackupViolations { .. } => reason.code(),
    };
    text.into()
}

/// Returns the sentence for a text that needs too many segments, as pages call the parts of a
/// message.
pub(crate) fn too_many_segments(segments: u16, allowed: u16) -> String {
    let verb = if allowed == 1 { "is" } else { "are" };
    format!("The text needs {segments} segments, but at most {allowed} {verb} allowed.")
}
