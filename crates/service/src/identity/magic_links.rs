//! Magic links: single-use links for signing in without a password, and for other single steps.

use crate::identity::mails::{self, NewMail};
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
/// The time that a user has to enter a two-factor code.
const SECOND_FACTOR: Duration = Duration::from_secs(600);

/// Creates the first link of a new user, with this email address. Nobody is told; links for others
/// are created by [`create_by_operator`].
#[boxed]
pub async fn create(cx: &Context, email: &str, kind: MagicLinkKind) -> Result<Token> {
    let mut tx = cx.db.write().await?;
    let user = accounts::user_by_email(&mut tx, email).await?.ok_or(Error::NotFound)?;
    let token = create_in(cx, &mut tx, user, kind).await?;
    tx.commit().await?;
    Ok(token)
}

/// An operator who creates a link for somebody.
#[derive(Clone, Copy, Debug)]
pub struct LinkCreator<'a> {
    /// The operator; `None` at the command line.
    pub user: Option<UserId>,
    /// The network address.
    pub address: &'a str,
}

/// Creates a link that an operator hands to the person with this email address. The person is told
/// by mail, and by the audit log of each of their accounts: whoever has the link can use it.
///
/// # Errors
/// [`Error::NotFound`] when there is no such person.
pub async fn create_by_operator(
    cx: &Context,
    creator: LinkCreator<'_>,
    email: &str,
    kind: MagicLinkKind,
) -> Result<Token> {
    let mut tx = cx.db.write().await?;
    let user = accounts::user_by_email(&mut tx, email).await?.ok_or(Error::NotFound)?;
    let token = hand_out(cx, &mut tx, creator, LinkRecipient { user, email }, kind).await?;
    tx.commit().await?;
    Ok(token)
}

/// Does the same as [`create_by_operator`], with a sign-in link for a member of the account that
/// `actor` names. Returns the member's email address and the link.
#[boxed]
pub async fn create_for_member(
    cx: &Context,
    actor: &Actor,
    user: UserId,
) -> Result<(String, Token)> {
    let mut tx = cx.db.write().await?;
    let email =
        accounts::member_email(&mut tx, actor.account, user).await?.ok_or(Error::NotFound)?;
    let creator = LinkCreator { user: actor.user, address: &actor.address };
    let recipient = LinkRecipient { user, email: &email };
    let token = hand_out(cx, &mut tx, creator, recipient, MagicLinkKind::SignIn).await?;
    tx.commit().await?;
    Ok((email, token))
}

/// The person who gets a link of the operator.
#[derive(Clone, Copy)]
struct LinkRecipient<'a> {
    user: UserId,
    email: &'a str,
}

async fn hand_out(
    cx: &Context,
    tx: &mut Conn,
    creator: LinkCreator<'_>,
    recipient: LinkRecipient<'_>,
    kind: MagicLinkKind,
) -> Result<Token> {
    let LinkRecipient { user, email } = recipient;
    // An operator who signs in with their own link is nobody else.
    let by_operator = creator.user != Some(user) && !users::is_operator(tx, user).await?;
    let token = store(cx, tx, user, kind, by_operator).await?;
    let action = match kind {
        MagicLinkKind::PasswordReset => AuditAction::PasswordResetLinkCreated,
        MagicLinkKind::SignIn | MagicLinkKind::TwoFactor => AuditAction::SignInLinkCreated,
    };
    for (account, ..) in accounts::list_for_user(tx, user).await? {
        let actor = Actor { account, user: creator.user, address: creator.address.to_owned() };
        audit::record(cx, tx, &actor, action, email).await?;
    }
    if by_operator {
        mails::send(cx, tx, notice(email, kind, cx).as_mail(email)).await?;
    }
    Ok(token)
}

/// The text of the mail about a link.
struct Notice {
    subject: String,
    body: String,
}

impl Notice {
    fn as_mail<'a>(&'a self, recipient: &'a str) -> NewMail<'a> {
        NewMail { recipient, subject: &self.subject, body: &self.body }
    }
}

/// Returns the mail that tells a person about a link of the operator. It does not contain the link,
/// which the operator hands over.
fn notice(email: &str, kind: MagicLinkKind, cx: &Context) -> Notice {
    let (what, effect) = match kind {
        MagicLinkKind::PasswordReset => ("password reset link", "set a new password for you, once"),
        MagicLinkKind::SignIn | MagicLinkKind::TwoFactor => {
            ("sign-in link", "sign in as you once, without a password or two-factor code,")
        }
    };
    let life = match kind {
        MagicLinkKind::PasswordReset => "an hour",
        MagicLinkKind::SignIn | MagicLinkKind::TwoFactor => "a day",
    };
    let base = &cx.settings().sign_up.base_url;
    let body = format!(
        "The operator of {base} created a {what} for {email}. Whoever has the link can {effect} \
         within {life}.\n\nIf you did not ask for it, contact the operator. The audit log of your \
         account shows when the link was created and used:\n{base}/settings/audit-log\n"
    );
    Notice { subject: format!("The operator created a {what} for you"), body }
}

/// Creates a link within a transaction.
#[boxed]
pub async fn create_in(
    cx: &Context,
    tx: &mut Conn,
    user: UserId,
    kind: MagicLinkKind,
) -> Result<Token> {
    store(cx, tx, user, kind, false).await
}

async fn store(
    cx: &Context,
    tx: &mut Conn,
    user: UserId,
    kind: MagicLinkKind,
    by_operator: bool,
) -> Result<Token> {
    let token = cx.token()?;
    let now = cx.db.now();
    let life = match kind {
        MagicLinkKind::SignIn => SIGN_IN,
        MagicLinkKind::PasswordReset => RESET,
        MagicLinkKind::TwoFactor => SECOND_FACTOR,
    };
    let expires_at = now.after(life);
    let link = MagicLink { user, kind, created_at: now, expires_at, by_operator };
    magic_links::insert(tx, &link, &token.hash()).await?;
    Ok(token)
}

/// Returns the path of a link.
pub fn path(kind: MagicLinkKind, token: &Token) -> String {
    let page = match kind {
        MagicLinkKind::SignIn => "sign-in",
        MagicLinkKind::PasswordReset => "reset",
        MagicLinkKind::TwoFactor => "sign-in/code",
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
    let method =
        if taken.by_operator { SignInMethod::OperatorLink } else { SignInMethod::MagicLink };
    let new = NewSession { user: taken.user, account: None, origin, method };
    let token = sessions::start(cx, &mut tx, new).await?;
    tx.commit().await?;
    Ok(token)
}
