//! Magic links: single-use links for signing in without a password, and for other single steps.

use crate::identity::mails::{self, MailKind, NewMail};
use crate::identity::sessions::{self, NewSession, SessionOrigin};
use crate::kernel::audit::{self, Actor, AuditAction, SignInMethod};
use crate::kernel::context::Context;
use crate::kernel::error::{Error, Result};
use async_recursion::async_recursion as boxed;
use heliograph_domain::id::UserId;
use heliograph_domain::secret::Token;
use heliograph_store::Conn;
use heliograph_store::identity::accounts;
use heliograph_store::identity::magic_links;
pub use heliograph_store::identity::magic_links::{MagicLink, MagicLinkKind};
use heliograph_store::identity::users;
use std::time::Duration;

/// The lifetime of a sign-in link made by an operator: a day.
const SIGN_IN: Duration = Duration::from_secs(86_400);
/// The lifetime of a password reset link: an hour.
const RESET: Duration = Duration::from_secs(3_600);
/// The lifetime of a link that confirms an email address: three days.
const CONFIRMATION: Duration = Duration::from_secs(3 * 86_400);
/// The time that a user has to enter a two-factor code.
const SECOND_FACTOR: Duration = Duration::from_secs(600);

/// Creates a link for the user with this email address.
#[boxed]
pub async fn create(cx: &Context, email: &str, kind: MagicLinkKind) -> Result<Token> {
    let mut tx = cx.db.write().await?;
    let user = accounts::user_by_email(&mut tx, email).await?.ok_or(Error::NotFound)?;
    let token = create_in(cx, &mut tx, user, kind).await?;
    tx.commit().await?;
    Ok(token)
}

/// Creates a sign-in link that an operator hands to a member of the account that `actor` names.
/// Returns the member's email address and the link.
#[boxed]
pub async fn create_for_member(
    cx: &Context,
    actor: &Actor,
    user: UserId,
) -> Result<(String, Token)> {
    let mut tx = cx.db.write().await?;
    let email =
        accounts::member_email(&mut tx, actor.account, user).await?.ok_or(Error::NotFound)?;
    let token = create_in(cx, &mut tx, user, MagicLinkKind::SignIn).await?;
    audit::record(cx, &mut tx, actor, AuditAction::SignInLinkCreated, &email).await?;
    tx.commit().await?;
    Ok((email, token))
}

/// Creates a link within a transaction.
#[boxed]
pub async fn create_in(
    cx: &Context,
    tx: &mut Conn,
    user: UserId,
    kind: MagicLinkKind,
) -> Result<Token> {
    let token = cx.token()?;
    let now = cx.db.now();
    let life = match kind {
        MagicLinkKind::SignIn => SIGN_IN,
        MagicLinkKind::PasswordReset => RESET,
        MagicLinkKind::TwoFactor => SECOND_FACTOR,
        MagicLinkKind::EmailConfirmation => CONFIRMATION,
    };
    let link = MagicLink { user, kind, created_at: now, expires_at: now.after(life) };
    magic_links::insert(tx, &link, &token.hash()).await?;
    Ok(token)
}

/// Returns the path of a link.
pub fn path(kind: MagicLinkKind, token: &Token) -> String {
    let page = match kind {
        MagicLinkKind::SignIn => "sign-in",
        MagicLinkKind::PasswordReset => "reset",
        MagicLinkKind::TwoFactor => "sign-in/code",
        MagicLinkKind::EmailConfirmation => "confirm",
    };
    format!("/{page}/{}", token.reveal())
}

/// Returns the link with this secret.
///
/// # Errors
/// [`Error::NotFound`] when the link was used, has expired or is of another kind.
#[boxed]
pub async fn find_valid(
    cx: &Context,
    conn: &mut Conn,
    token: &Token,
    kind: MagicLinkKind,
) -> Result<MagicLink> {
    let found = magic_links::by_hash(conn, &token.hash()).await?;
    found.filter(|l| l.kind == kind && l.expires_at > cx.db.now()).ok_or(Error::NotFound)
}

/// Returns the email address of the link's user.
///
/// # Errors
/// Those of [`find_valid`].
#[boxed]
pub async fn email_of(cx: &Context, token: &Token, kind: MagicLinkKind) -> Result<String> {
    let mut conn = cx.db.read().await?;
    let link = find_valid(cx, &mut conn, token, kind).await?;
    Ok(users::by_id(&mut conn, link.user).await?.ok_or(Error::NotFound)?.email)
}

/// Uses a link up, starts a session and returns its secret.
///
/// # Errors
/// [`Error::NotFound`] when the link was used or has expired; [`Error::Unauthenticated`] when the
/// user belongs to no account any more, in which case the link is not used up.
#[boxed]
pub async fn sign_in(cx: &Context, link: &Token, origin: &SessionOrigin) -> Result<Token> {
    let mut tx = cx.db.write().await?;
    let taken = magic_links::take(&mut tx, &link.hash()).await?;
    let good = |l: &MagicLink| l.kind == MagicLinkKind::SignIn && l.expires_at > cx.db.now();
    let taken = taken.filter(good).ok_or(Error::NotFound)?;
    let token = sessions::start(
        cx,
        &mut tx,
        NewSession { user: taken.user, account: None, origin, method: SignInMethod::MagicLink },
    )
    .await?;
    notify(cx, &mut tx, taken.user).await?;
    tx.commit().await?;
    Ok(token)
}

/// Tells a user with two-factor authentication by mail that a sign-in link has passed it.
async fn notify(cx: &Context, tx: &mut Conn, user: UserId) -> Result<()> {
    let user = users::by_id(tx, user).await?.ok_or(Error::NotFound)?;
    if user.two_factor().is_none() {
        return Ok(());
    }
    let body = format!(
        "Somebody signed in to your account with a sign-in link, without your password and without a \
         two-factor code. Only the operator of this service creates such links.\n\nIf you did not ask \
         for one, ask the operator, and end the session:\n{}/settings/security\n",
        cx.settings().sign_up.base_url
    );
    let (kind, subject) = (MailKind::Notice, "Sign-in with a link of the operator");
    mails::send(cx, tx, NewMail { kind, recipient: &user.email, subject, body: &body }).await?;
    Ok(())
}
