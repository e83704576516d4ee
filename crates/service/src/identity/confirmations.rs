//! The confirmation of email addresses: a person proves that they read the mail of an address.
//!
//! Anybody can sign up with the address of somebody else. Where mail is configured, such an account
//! works in test mode only, and what was set up with it is dropped as soon as the owner of the
//! mailbox resets the password. A link in a mail confirms the address without dropping anything,
//! but only in the session of a person who knows the password, and has set up the account.

use crate::identity::magic_links::{self, MagicLinkKind};
use crate::identity::mails::{self, MailKind, NewMail};
use crate::identity::sessions::{self, AuthenticatedUser, SessionOrigin};
use crate::kernel::audit::{self, Actor, AuditAction};
use crate::kernel::context::Context;
use crate::kernel::error::{Error, Result};
use async_recursion::async_recursion as boxed;
use heliograph_domain::id::{AccountId, UserId};
use heliograph_domain::secret::Token;
use heliograph_store::Conn;
use heliograph_store::identity::magic_links as links;
use heliograph_store::identity::{api_keys, invitations, memberships, recovery_codes, users};
use heliograph_store::webhooks::{deliveries, endpoints};

/// Queues a mail with a link that confirms the address of a user.
pub(crate) async fn send_in(
    cx: &Context,
    tx: &mut Conn,
    user: UserId,
    email: &str,
) -> Result<bool> {
    let token = magic_links::create_in(cx, tx, user, MagicLinkKind::EmailConfirmation).await?;
    let path = magic_links::path(MagicLinkKind::EmailConfirmation, &token);
    let body = format!(
        "An account on Heliograph was created with this email address.\n\nIf it was you, confirm the \
         address with this link, which expires in three days:\n{base}{path}\n\nIf it was somebody else, \
         you can ignore this email: without this link, the account cannot send real messages. To take \
         the account over, reset its password:\n{base}/reset\n",
        base = cx.settings().sign_up.base_url,
    );
    let (kind, subject) = (MailKind::Confirmation, "Confirm your email address");
    mails::send(cx, tx, NewMail { kind, recipient: email, subject, body: &body }).await
}

/// Sends the link again. Returns false when the address has got too many of them today.
#[boxed]
pub async fn send_again(cx: &Context, who: &AuthenticatedUser) -> Result<bool> {
    if who.details.confirmed {
        return Ok(true);
    }
    let mut tx = cx.db.write().await?;
    let sent = send_in(cx, &mut tx, who.details.session.user, &who.details.email).await?;
    if sent {
        tx.commit().await?;
    }
    Ok(sent)
}

/// Returns the email address that a link confirms.
///
/// # Errors
/// [`Error::NotFound`] when the link was used or has expired.
#[boxed]
pub async fn email_of(cx: &Context, token: &Token) -> Result<String> {
    magic_links::email_of(cx, token, MagicLinkKind::EmailConfirmation).await
}

/// Confirms the address of a signed-in user by a link. All other sessions of the user end.
///
/// # Errors
/// [`Error::NotFound`] when the link was used, has expired, or is of another user.
#[boxed]
pub async fn confirm(
    cx: &Context,
    who: &AuthenticatedUser,
    actor: &Actor,
    token: &Token,
) -> Result<()> {
    let session = &who.details.session;
    let mut tx = cx.db.write().await?;
    let link =
        magic_links::find_valid(cx, &mut tx, token, MagicLinkKind::EmailConfirmation).await?;
    if link.user != session.user {
        return Err(Error::NotFound);
    }
    links::take(&mut tx, &token.hash()).await?.ok_or(Error::NotFound)?;
    users::confirm(&mut tx, session.user, cx.db.now()).await?;
    heliograph_store::identity::sessions::delete_others(&mut tx, session.user, Some(session.id))
        .await?;
    audit::record(cx, &mut tx, actor, AuditAction::EmailConfirmed, &who.details.email).await?;
    Ok(tx.commit().await?)
}

/// Confirms the address of a user who has just reset the password. If the address was not confirmed
/// before, somebody else may have set up everything that is there: two-factor authentication,
/// and in the accounts that only this user owns, API keys, webhooks, members and invitations. All
/// of it is dropped.
pub(crate) async fn first_proof(
    cx: &Context,
    tx: &mut Conn,
    user: UserId,
    origin: &SessionOrigin,
) -> Result<()> {
    // The accounts are found first: afterwards, their owner is confirmed.
    let accounts = memberships::sole_owner_of(tx, user).await?;
    if !users::confirm(tx, user, cx.db.now()).await? {
        return Ok(());
    }
    users::clear_totp(tx, user).await?;
    recovery_codes::replace(tx, user, &[]).await?;
    for account in accounts {
        drop_setup(cx, tx, account, user).await?;
        let actor = Actor { account, user: Some(user), address: origin.address.clone() };
        audit::record(cx, tx, &actor, AuditAction::UnconfirmedSetupDropped, "").await?;
    }
    if let Some(actor) = sessions::first_actor(tx, user, origin).await? {
        audit::record(cx, tx, &actor, AuditAction::EmailConfirmed, "").await?;
    }
    Ok(())
}

async fn drop_setup(cx: &Context, tx: &mut Conn, account: AccountId, keep: UserId) -> Result<()> {
    api_keys::revoke_all(tx, account, cx.db.now()).await?;
    invitations::revoke_all(tx, account).await?;
    for endpoint in endpoints::list(tx, account).await? {
        // The endpoint first, as in reports: different lock orders of two nodes would deadlock.
        endpoints::delete(tx, endpoint.id).await?;
        deliveries::delete_for_endpoint(tx, endpoint.id).await?;
    }
    for member in memberships::list(tx, account).await? {
        if member.user != keep {
            memberships::delete(tx, account, member.user).await?;
        }
    }
    Ok(())
}
