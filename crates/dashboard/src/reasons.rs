//! The wording of conflicts and of messages that cannot be cancelled.

use heliograph_service::kernel::error::{ConflictReason, NotCancellableReason};
use std::borrow::Cow;

/// Explains a conflict, and what to do.
pub(crate) fn conflict(reason: &ConflictReason) -> Cow<'static, str> {
    let text = match reason {
        ConflictReason::InvitationEnded => {
            "This invitation was revoked or has expired. Reload the page to create another."
        }
        ConflictReason::AlreadyMember => "This person is already a member of the account.",
        ConflictReason::InvitationLimit => "Too many invitations are open. Revoke some first.",
        ConflictReason::UserExists => {
            "You already have a Heliograph user. Sign in to accept the invitation."
        }
        ConflictReason::LastOwner => {
            "An account needs an owner. Make another member an owner first."
        }
        ConflictReason::TwoFactorEnabled => {
            "two-factor authentication is already on: turn it off first"
        }
        ConflictReason::TwoFactorDisabled => "two-factor authentication is off",
        ConflictReason::TwoFactorNotPending => "two-factor setup has not begun",
        ConflictReason::ApiKeyLimit(limit) => {
            return format!("the account has {limit} keys, which is the limit: revoke unused keys")
                .into();
        }
        ConflictReason::OptoutListLimit(limit) => {
            return format!("The account already has {limit} lists, which is the limit.").into();
        }
        ConflictReason::DefaultOptoutList => {
            "The default list can't be removed: an account always has one."
        }
        // Only commands return these.
        ConflictReason::UnknownAccount(_)
        | ConflictReason::DatabaseNotEmpty(_)
        | ConflictReason::BackupViolations { .. } => reason.code(),
    };
    text.into()
}

/// Explains why a message can no longer be cancelled.
pub(crate) const fn not_cancellable(reason: NotCancellableReason) -> &'static str {
    match reason {
        NotCancellableReason::InProgress => "The message is being sent to the carrier.",
        NotCancellableReason::InDoubt => "Part of the message may have been sent.",
        NotCancellableReason::PartlySent => "Part of the message was sent.",
        NotCancellableReason::Sent => "The message was sent.",
        NotCancellableReason::Delivered => "The message was delivered.",
        NotCancellableReason::Ended => "The message has already ended.",
    }
}
