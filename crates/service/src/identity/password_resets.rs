//! Password resets by a single-use link.

use crate::identity::confirmations;
use crate::identity::magic_links::{self, MagicLinkKind};
use crate::identity::mails::{self, MailKind, NewMail};
use crate::identity::passwords::Passwords;
use crate::identity::sessions::{self, SessionOrigin};
use crate::kernel::audit::{self, AuditAction};
use crate::kernel::context::Context;
use crate::kernel::error::{Error, Result};
use async_recursion::async_recursion as boxed;
use heliograph_domain::password;
use heliograph_domain::secret::Token;
use heliograph_store::identity::accounts;
use heliograph_store::identity::magic_links as links;
use heliograph_store::identity::users;

/// Mails a reset link to this address, if a user has it and mail is configured. The response is the
/// same in all cases, and the caller does not wait for this function, so that neither reveals who
/// has an account. `known` requests come from a browser that the person signed in with before:
/// they are counted separately, so that nobody else can use them up.
#[boxed]
pub async fn request(cx: &Context, email: &str, origin: &SessionOrigin, known: bool) -> Result<()> {
    let entrance = &cx.settings().sign_up;
    let mut tx = cx.db.write().await?;
    let Some(user) =
        accounts::user_by_email(&mut tx, email).await?.filter(|_| entrance.mail_enabled)
    else {
        return Ok(());
    };
    let token = magic_links::create_in(cx, &mut tx, user, MagicLinkKind::PasswordReset).await?;
    let link =
        format!("{}{}", entrance.base_url, magic_links::path(MagicLinkKind::PasswordReset, &token));
    let body = format!(
        "We received a request to reset the password of {email}.\n\nChoose a new password with this \
         link, which expires in one hour:\n{link}\n\nIf you did not request this, you can ignore this \
         email: your password stays the same.\n"
    );
    let kind = if known { MailKind::KnownPasswordReset } else { MailKind::PasswordReset };
    let mail = NewMail { kind, recipient: email, subject: "Reset your password", body: &body };
    if !mails::send(cx, &mut tx, mail).await? {
        return Ok(());
    }
    if let Some(actor) = sessions::first_actor(&mut tx, user, origin).await? {
        let action = AuditAction::PasswordResetRequested;
        audit::record(cx, &mut tx, &actor, action, email).await?;
    }
    Ok(tx.commit().await?)
}

/// Returns the email address of the user whose password a link resets.
///
/// # Errors
/// [`Error::NotFound`] when the link was used or has expired.
#[boxed]
pub async fn email_of(cx: &Context, token: &Token) -> Result<String> {
    let mut conn = cx.db.read().await?;
    let link = magic_links::find_valid(cx, &mut conn, token, MagicLinkKind::PasswordReset).await?;
    Ok(users::by_id(&mut conn, link.user).await?.ok_or(Error::NotFound)?.email)
}

/// Sets a new password, ends all sessions, and invalidates all links of the user. Returns the email
/// address. Two-factor authentication stays on and is required at the next sign-in. If nobody has
/// proved the mailbox before, everything is dropped that was set up until now, also two-factor
/// authentication: see [`confirmations`].
///
/// # Errors
/// [`Error::WeakPassword`]; [`Error::NotFound`] when the link was used or has expired.
#[boxed]
pub async fn complete(
    cx: &Context,
    passwords: &Passwords,
    token: &Token,
    password: &str,
    origin: &SessionOrigin,
) -> Result<String> {
    let email = email_of(cx, token).await?;
    password::check(password, &email)?;
    let hash = passwords.hash(password).await?;
    let mut tx = cx.db.write().await?;
    let link = magic_links::find_valid(cx, &mut tx, token, MagicLinkKind::PasswordReset).await?;
    links::take(&mut tx, &token.hash()).await?.ok_or(Error::NotFound)?;
    links::delete_for_user(&mut tx, link.user).await?;
    users::set_password(&mut tx, link.user, &hash).await?;
    users::drop_pending_totp(&mut tx, link.user).await?;
    // Who has a new password may try a code at once; the number of failures stays.
    users::delay_codes(&mut tx, link.user, None).await?;
    heliograph_store::identity::sessions::delete_others(&mut tx, link.user, None).await?;
    if let Some(actor) = sessions::first_actor(&mut tx, link.user, origin).await? {
        audit::record(cx, &mut tx, &actor, AuditAction::PasswordReset, "").await?;
    }
    confirmations::first_proof(cx, &mut tx, link.user, origin).await?;
    tx.commit().await?;
    Ok(email)
}
