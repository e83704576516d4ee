//! The audit log: security-relevant actions are recorded in the transaction that performs them.

use crate::kernel::context::Context;
use crate::kernel::error::Result;
use crate::kernel::security_log::SecurityEvent;
use async_recursion::async_recursion as boxed;
use heliograph_domain::id::{AccountId, ApiKeyId, AuditId, UserId};
use heliograph_store::Conn;
use heliograph_store::identity::audit;
pub use heliograph_store::identity::audit::AuditEntry;

/// The actor of an audit log entry.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Actor {
    /// The account that is acted on.
    pub account: AccountId,
    /// The user; `None` for the command line.
    pub user: Option<UserId>,
    /// The network address.
    pub address: String,
}

impl Actor {
    /// Returns the operator at the command line.
    pub const fn operator(account: AccountId) -> Self {
        Self { account, user: None, address: String::new() }
    }
}

/// Declares an enum whose values are stored by a code.
macro_rules! codes {
    ($(#[$about:meta])* pub enum $name:ident { $($(#[$doc:meta])* $value:ident = $code:literal,)+ }) => {
        $(#[$about])*
        #[derive(Clone, Copy, PartialEq, Eq, Debug)]
        pub enum $name {
            $($(#[$doc])* $value,)+
        }

        impl $name {
            /// Returns the code that the audit log stores. Codes never change.
            pub const fn code(self) -> &'static str {
                match self {
                    $(Self::$value => $code,)+
                }
            }

            /// Returns the value of a code.
            pub fn from_code(code: &str) -> Option<Self> {
                match code {
                    $($code => Some(Self::$value),)+
                    _ => None,
                }
            }
        }
    };
}

codes! {
    /// An action that the audit log records.
    pub enum AuditAction {
        /// An account was created, by signing up or by the operator.
        AccountOpened = "account_opened",
        /// The operator changed the balance.
        CreditAdded = "credit_added",
        /// The operator changed a limit of the account.
        LimitChanged = "limit_changed",
        /// A user signed in; the detail is the code of a [`SignInMethod`].
        SignedIn = "signed_in",
        /// A sign-in failed; the detail is the code of a [`SignInFailure`].
        SignInFailed = "sign_in_failed",
        /// The operator created a magic link.
        SignInLinkCreated = "sign_in_link_created",
        /// The operator created a password reset link.
        PasswordResetLinkCreated = "password_reset_link_created",
        /// A session was ended.
        SessionEnded = "session_ended",
        /// All other sessions of a user were ended.
        OtherSessionsEnded = "other_sessions_ended",
        /// An operator ended all sessions of a member.
        MemberSessionsEnded = "member_sessions_ended",
        /// A user confirmed their email address.
        EmailConfirmed = "email_confirmed",
        /// The owner of a mailbox dropped what somebody else had set up with its address.
        UnconfirmedSetupDropped = "unconfirmed_setup_dropped",
        /// A user changed their password.
        PasswordChanged = "password_changed",
        /// A password reset was requested by email.
        PasswordResetRequested = "password_reset_requested",
        /// A password was reset.
        PasswordReset = "password_reset",
        /// Two-factor authentication was turned on.
        TwoFactorEnabled = "two_factor_enabled",
        /// Two-factor authentication was turned off.
        TwoFactorDisabled = "two_factor_disabled",
        /// The account requires two-factor authentication of its members.
        TwoFactorRequired = "two_factor_required",
        /// The account no longer requires two-factor authentication.
        TwoFactorOptional = "two_factor_optional",
        /// The recovery codes were replaced.
        RecoveryCodesRenewed = "recovery_codes_renewed",
        /// A person was invited.
        MemberInvited = "member_invited",
        /// An invitation was revoked.
        InvitationRevoked = "invitation_revoked",
        /// A person accepted an invitation.
        MemberJoined = "member_joined",
        /// The role of a member was changed.
        RoleChanged = "role_changed",
        /// A member was removed, or left.
        MemberRemoved = "member_removed",
        /// An API key was created.
        ApiKeyCreated = "api_key_created",
        /// An API key was revoked.
        ApiKeyRevoked = "api_key_revoked",
        /// A webhook endpoint was added.
        WebhookAdded = "webhook_added",
        /// The URL or the event kinds of a webhook endpoint were changed.
        WebhookChanged = "webhook_changed",
        /// A webhook endpoint was removed.
        WebhookRemoved = "webhook_removed",
        /// A webhook endpoint was switched off.
        WebhookDisabled = "webhook_disabled",
        /// A webhook endpoint was switched on.
        WebhookEnabled = "webhook_enabled",
        /// A signing secret was shown.
        WebhookSecretRevealed = "webhook_secret_revealed",
        /// A signing secret was replaced.
        WebhookSecretRotated = "webhook_secret_rotated",
        /// Events were replayed to a webhook endpoint; the detail has their number.
        WebhookReplayed = "webhook_replayed",
        /// The installation was restored from a backup.
        BackupRestored = "backup_restored",
        /// A phone number was assigned to the account.
        NumberAssigned = "number_assigned",
        /// A phone number was moved to another account.
        NumberRemoved = "number_removed",
        /// A message was cancelled at the command line.
        MessageCancelled = "message_cancelled",
        /// A number was added to an opt-out list at the command line.
        OptoutAdded = "optout_added",
        /// Numbers were imported into an opt-out list.
        OptoutsImported = "optouts_imported",
        /// A number was removed from an opt-out list.
        OptoutRemoved = "optout_removed",
        /// An opt-out list was removed.
        OptoutListRemoved = "optout_list_removed",
    }
}

codes! {
    /// The method of a sign-in.
    pub enum SignInMethod {
        /// The password.
        Password = "password",
        /// The password and a code of an authenticator app.
        AuthenticatorApp = "authenticator_app",
        /// The password and a recovery code.
        RecoveryCode = "recovery_code",
        /// A magic link for the first sign-in.
        MagicLink = "magic_link",
        /// A magic link that an operator created for somebody else.
        OperatorLink = "operator_link",
        /// Accepting an invitation as a new user.
        Invitation = "invitation",
        /// Creating an account.
        SignUp = "sign_up",
    }
}

codes! {
    /// The reason of a failed sign-in.
    pub enum SignInFailure {
        /// The password is wrong.
        WrongPassword = "wrong_password",
        /// The two-factor code is wrong or was used before.
        WrongCode = "wrong_code",
    }
}

/// Writes an audit log entry, and logs the event. `detail` names the object and is never a secret.
#[boxed]
pub async fn record(
    cx: &Context,
    tx: &mut Conn,
    actor: &Actor,
    action: AuditAction,
    detail: &str,
) -> heliograph_store::StoreResult<()> {
    audit::insert(tx, &entry(cx, actor, action, detail)).await?;
    log(actor, action, detail, None);
    Ok(())
}

/// Writes an audit log entry about an API key, and logs the event.
#[boxed]
pub async fn record_key(
    cx: &Context,
    tx: &mut Conn,
    actor: &Actor,
    action: AuditAction,
    (key, name): (ApiKeyId, &str),
) -> heliograph_store::StoreResult<()> {
    audit::insert(tx, &entry(cx, actor, action, name)).await?;
    log(actor, action, "", Some(key));
    Ok(())
}

fn entry(cx: &Context, actor: &Actor, action: AuditAction, detail: &str) -> AuditEntry {
    let (id, at) = cx.next_id();
    AuditEntry {
        id: AuditId(id),
        account: actor.account,
        actor: actor.user,
        action: action.code().to_owned(),
        detail: detail.to_owned(),
        address: actor.address.clone(),
        at,
    }
}

fn log(actor: &Actor, action: AuditAction, detail: &str, key: Option<ApiKeyId>) {
    let is_code = matches!(action, AuditAction::SignedIn | AuditAction::SignInFailed);
    let event = SecurityEvent {
        event: action.code(),
        client: &actor.address,
        // Other details are texts that a user chose.
        reason: if is_code { detail } else { "" },
        key,
        account: Some(actor.account),
        user: actor.user,
    };
    match action {
        AuditAction::SignInFailed => event.refused(),
        _ => event.done(),
    }
}

/// Writes an audit log entry in a transaction of its own, after an action whose transaction is the
/// writer's or that API keys take as well.
#[boxed]
pub async fn record_alone(
    cx: &Context,
    actor: &Actor,
    action: AuditAction,
    detail: &str,
) -> Result<()> {
    let mut tx = cx.db.write().await?;
    record(cx, &mut tx, actor, action, detail).await?;
    Ok(tx.commit().await?)
}

/// Returns the audit log of an account below `before`, the newest first, with the actors' email
/// addresses.
#[boxed]
pub async fn list(
    cx: &Context,
    account: AccountId,
    before: AuditId,
    limit: i64,
) -> Result<Vec<(AuditEntry, Option<String>)>> {
    let mut conn = cx.db.read().await?;
    Ok(audit::list(&mut conn, account, before, limit).await?)
}
