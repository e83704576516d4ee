//! Sessions of the dashboard: starting, authenticating and ending them.

use crate::identity::mails;
use crate::kernel::audit::{self, Actor, AuditAction, SignInMethod};
use crate::kernel::caller::Caller;
use crate::kernel::context::Context;
use crate::kernel::error::{ConflictReason, Error, Result};
use async_recursion::async_recursion as boxed;
use heliograph_domain::account::{Mode, Role};
use heliograph_domain::id::{AccountId, SessionId, UserId};
use heliograph_domain::secret::Token;
use heliograph_domain::time::Timestamp;
use heliograph_store::Conn;
use heliograph_store::identity::accounts;
use heliograph_store::identity::invitations;
use heliograph_store::identity::magic_links;
use heliograph_store::identity::sessions;
pub use heliograph_store::identity::sessions::Session;
use heliograph_store::identity::sessions::SignedInSession;
use std::collections::HashSet;
use std::time::Duration;

/// The idle time after which a session ends: a week.
const IDLE: Duration = Duration::from_secs(7 * 86_400);
/// The longest lifetime of a session: 30 days.
const LIFE: Duration = Duration::from_secs(30 * 86_400);
/// The precision of a session's last use, so that not every page writes a row.
const SEEN: Duration = Duration::from_secs(60);
/// The number of characters kept of the browser's user agent.
const AGENT: usize = 200;

/// The user of an authenticated session.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct AuthenticatedUser {
    /// The session with its user and account.
    pub details: SignedInSession,
}

impl AuthenticatedUser {
    /// Returns the user as a caller of functions that API keys can use as well.
    pub fn caller(&self) -> Caller {
        Caller {
            account: self.details.session.account,
            mode: self.details.session.mode,
            scopes: self.details.role.scopes(),
            key: None,
            user: Some(self.details.session.user),
            currency: self.details.currency.clone(),
            optout_list: self.details.optout_list,
        }
    }

    /// Returns the user as the actor of audit log entries.
    pub fn actor(&self, address: &str) -> Actor {
        let session = &self.details.session;
        let address = address.to_owned();
        Actor { account: session.account, user: Some(session.user), address }
    }

    /// Returns [`Error::NotFound`] unless the user is an operator of the installation, which hides
    /// operator pages from others.
    pub const fn require_operator(&self) -> Result<()> {
        if self.details.operator { Ok(()) } else { Err(Error::NotFound) }
    }

    /// Returns the user as an operator acting on an account.
    pub fn operator_actor(&self, account: AccountId, address: &str) -> Actor {
        Actor { account, ..self.actor(address) }
    }

    /// Returns [`ConflictReason::EmailUnconfirmed`] if the user has to confirm the email address
    /// first, which is so where mail is configured.
    pub fn require_confirmed(&self, cx: &Context) -> Result<()> {
        match self.details.confirmed || !cx.settings().sign_up.mail_enabled {
            true => Ok(()),
            false => Err(Error::Conflict(ConflictReason::EmailUnconfirmed)),
        }
    }

    /// Returns whether the user needs two-factor authentication and does not have it: because the
    /// account requires it, or because the installation requires it of operators.
    pub fn lacks_two_factor(&self, cx: &Context) -> bool {
        let details = &self.details;
        let as_operator = details.operator && cx.settings().operator_two_factor;
        (details.two_factor_required || as_operator) && !details.two_factor
    }

    /// Returns [`Error::Scope`] unless the user may manage keys, webhooks and members.
    pub fn require_manager(&self) -> Result<()> {
        if self.details.role.manages() { Ok(()) } else { Err(Error::Scope("manage")) }
    }
}

/// The origin of a sign-in.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SessionOrigin {
    /// The network address.
    pub address: String,
    /// The browser's user agent.
    pub agent: String,
}

/// A session to start.
#[derive(Clone, Copy)]
pub struct NewSession<'a> {
    /// The user.
    pub user: UserId,
    /// The account; the user's first one if `None`.
    pub account: Option<AccountId>,
    /// The origin of the request.
    pub origin: &'a SessionOrigin,
    /// The method, for the audit log.
    pub method: SignInMethod,
}

/// Starts a session of an authenticated user within a transaction and returns its secret; the
/// account is the user's first one if none is given.
///
/// # Errors
/// [`Error::Unauthenticated`] when the user belongs to no account.
pub async fn start(cx: &Context, tx: &mut Conn, new: NewSession<'_>) -> Result<Token> {
    let NewSession { user, account, origin, method } = new;
    let account = match account {
        Some(account) => account,
        None => accounts::list_for_user(tx, user).await?.first().ok_or(Error::Unauthenticated)?.0,
    };
    let token = cx.token()?;
    let (id, now) = cx.next_id();
    let session = Session {
        id: SessionId(id),
        user,
        account,
        mode: Mode::Test,
        created_at: now,
        seen_at: now,
        address: origin.address.clone(),
        agent: origin.agent.chars().take(AGENT).collect(),
        by_operator: method == SignInMethod::OperatorLink,
    };
    sessions::insert(tx, &session, &token.hash()).await?;
    let actor = Actor { account, user: Some(user), address: origin.address.clone() };
    audit::record(cx, tx, &actor, AuditAction::SignedIn, method.code()).await?;
    Ok(token)
}

/// Returns the user as the actor of an audit log entry in their first account; `None` when they
/// belong to no account.
#[boxed]
pub async fn first_actor(
    conn: &mut Conn,
    user: UserId,
    origin: &SessionOrigin,
) -> Result<Option<Actor>> {
    let accounts = accounts::list_for_user(conn, user).await?;
    let address = &origin.address;
    Ok(accounts.first().map(|(account, ..)| Actor {
        account: *account,
        user: Some(user),
        address: address.clone(),
    }))
}

/// Gives the session a fresh secret and ends all other sessions of the user, so that stolen
/// sessions do not survive a change of credentials.
#[boxed]
pub async fn rotate(cx: &Context, tx: &mut Conn, session: &Session) -> Result<Token> {
    let token = cx.token()?;
    let (id, _) = cx.next_id();
    let fresh = Session { id: SessionId(id), ..session.clone() };
    sessions::insert(tx, &fresh, &token.hash()).await?;
    sessions::delete_others(tx, session.user, Some(fresh.id)).await?;
    Ok(token)
}

/// Ends all other sessions of the user and returns their number.
#[boxed]
pub async fn end_others(cx: &Context, who: &AuthenticatedUser, actor: &Actor) -> Result<u64> {
    let session = &who.details.session;
    let mut tx = cx.db.write().await?;
    let ended = sessions::delete_others(&mut tx, session.user, Some(session.id)).await?;
    if ended > 0 {
        audit::record(cx, &mut tx, actor, AuditAction::OtherSessionsEnded, &ended.to_string())
            .await?;
    }
    tx.commit().await?;
    Ok(ended)
}

/// Returns the user of a session.
///
/// # Errors
/// [`Error::Unauthenticated`] when the session does not exist or has ended.
#[boxed]
pub async fn authenticate(cx: &Context, token: &Token) -> Result<AuthenticatedUser> {
    let now = cx.db.now();
    let hash = token.hash();
    let found = sessions::by_hash(&mut cx.db.read().await?, &hash).await?;
    let alive = |s: &SignedInSession| {
        now < s.session.seen_at.after(IDLE) && now < s.session.created_at.after(LIFE)
    };
    let signed = found.filter(alive).ok_or(Error::Unauthenticated)?;
    if now >= signed.session.seen_at.after(SEEN) {
        let mut tx = cx.db.write().await?;
        sessions::touch(&mut tx, &hash, now).await?;
        tx.commit().await?;
    }
    Ok(AuthenticatedUser { details: signed })
}

/// Returns the sessions that show an account, so that their pages may learn of its changes.
#[boxed]
pub async fn viewers(cx: &Context, account: AccountId) -> Result<HashSet<SessionId>> {
    let now = cx.db.now();
    let mut conn = cx.db.read().await?;
    let all = sessions::viewers(&mut conn, account, now.before(IDLE), now.before(LIFE)).await?;
    Ok(all.into_iter().collect())
}

/// Switches the session to another account or mode.
///
/// # Errors
/// [`Error::NotFound`] when the user does not belong to that account; [`Error::Conflict`] for live
/// mode before the user has confirmed the email address.
#[boxed]
pub async fn switch_to(
    cx: &Context,
    who: &AuthenticatedUser,
    account: AccountId,
    mode: Mode,
) -> Result<()> {
    if mode == Mode::Live {
        who.require_confirmed(cx)?;
    }
    let session = &who.details.session;
    let mut tx = cx.db.write().await?;
    let all = accounts::list_for_user(&mut tx, session.user).await?;
    if !all.iter().any(|(id, ..)| *id == account) {
        return Err(Error::NotFound);
    }
    sessions::set_account(&mut tx, (session.user, session.id), (account, mode)).await?;
    Ok(tx.commit().await?)
}

/// Returns the accounts of a user.
#[boxed]
pub async fn accounts(
    cx: &Context,
    who: &AuthenticatedUser,
) -> Result<Vec<(AccountId, String, Role)>> {
    Ok(accounts::list_for_user(&mut cx.db.read().await?, who.details.session.user).await?)
}

/// Returns the sessions of a user, the newest first.
#[boxed]
pub async fn list(cx: &Context, who: &AuthenticatedUser) -> Result<Vec<Session>> {
    let now = cx.db.now();
    let mut all = sessions::list(&mut cx.db.read().await?, who.details.session.user).await?;
    all.retain(|s| now < s.seen_at.after(IDLE) && now < s.created_at.after(LIFE));
    Ok(all)
}

/// Ends one of the user's sessions.
#[boxed]
pub async fn end(cx: &Context, actor: &Actor, id: SessionId) -> Result<()> {
    let user = actor.user.ok_or(Error::NotFound)?;
    let mut tx = cx.db.write().await?;
    if !sessions::delete(&mut tx, user, id).await? {
        return Err(Error::NotFound);
    }
    audit::record(cx, &mut tx, actor, AuditAction::SessionEnded, &id.to_string()).await?;
    Ok(tx.commit().await?)
}

/// Ends the session that a browser had before it signed in again.
#[boxed]
pub async fn end_previous(cx: &Context, previous: &Token) -> Result<()> {
    let mut tx = cx.db.write().await?;
    sessions::delete_by_hash(&mut tx, &previous.hash()).await?;
    Ok(tx.commit().await?)
}

/// Ends all sessions of a member of the account that `actor` names, for operators, and invalidates
/// the member's links. Returns the email address and the number of sessions.
///
/// # Errors
/// [`Error::NotFound`] when the user is no member of the account.
#[boxed]
pub async fn end_all_of_member(cx: &Context, actor: &Actor, user: UserId) -> Result<(String, u64)> {
    let mut tx = cx.db.write().await?;
    let email =
        accounts::member_email(&mut tx, actor.account, user).await?.ok_or(Error::NotFound)?;
    let ended = sessions::delete_others(&mut tx, user, None).await?;
    magic_links::delete_for_user(&mut tx, user).await?;
    audit::record(cx, &mut tx, actor, AuditAction::MemberSessionsEnded, &email).await?;
    tx.commit().await?;
    Ok((email, ended))
}

/// Deletes expired sessions, magic links and invitations, and old counters of mails.
#[boxed]
pub async fn delete_expired(cx: &Context) -> Result<()> {
    let now = cx.db.now();
    let before = |age: Duration| {
        Timestamp(now.millis() - i64::try_from(age.as_millis()).unwrap_or(i64::MAX))
    };
    let mut tx = cx.db.write().await?;
    sessions::delete_expired(&mut tx, before(IDLE), before(LIFE)).await?;
    magic_links::delete_expired(&mut tx, now).await?;
    invitations::delete_expired(&mut tx, now).await?;
    mails::delete_old_counts(cx, &mut tx).await?;
    Ok(tx.commit().await?)
}
