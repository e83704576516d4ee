//! One-time links: how somebody comes in who has no password, or forgot it.

use crate::audit::{self, Actor};
use crate::context::Context;
use crate::error::{Error, Result};
use crate::sessions::{self, Origin};
use heliograph_domain::id::UserId;
use heliograph_domain::secret::Token;
pub use heliograph_store::one_time_links::{Kind, OneTimeLink};
use heliograph_store::{Conn, accounts, one_time_links, users};
use std::time::Duration;

/// How long a link works that the command line hands out: a day.
const SIGN_IN: Duration = Duration::from_secs(86_400);
/// How long a link for a new password works: an hour.
const RESET: Duration = Duration::from_secs(3_600);
/// How long a person may look for the app that shows the second factor.
const SECOND_FACTOR: Duration = Duration::from_secs(600);

/// Makes a link for the person with this address.
///
/// # Errors
/// [`Error::NotFound`] when there is no such person.
pub async fn make(cx: &Context, email: &str, kind: Kind) -> Result<Token> {
    let mut tx = cx.db.write().await?;
    let user = accounts::user(&mut tx, email).await?.ok_or(Error::NotFound)?;
    let token = add(cx, &mut tx, user, kind).await?;
    tx.commit().await?;
    Ok(token)
}

/// Makes a link for an operator to hand to somebody who belongs to the account that `actor` names; who that is, and
/// the link.
///
/// # Errors
/// [`Error::NotFound`] when the person does not belong to it.
pub async fn hand_out(cx: &Context, actor: &Actor, user: UserId) -> Result<(String, Token)> {
    let mut tx = cx.db.write().await?;
    let email = accounts::email_of(&mut tx, actor.account, user).await?.ok_or(Error::NotFound)?;
    let token = add(cx, &mut tx, user, Kind::SignIn).await?;
    audit::write(cx, &mut tx, actor, ("sign-in link made", &email)).await?;
    tx.commit().await?;
    Ok((email, token))
}

/// Makes a link in the transaction that decided so.
///
/// # Errors
/// As any write.
pub async fn add(cx: &Context, tx: &mut Conn, user: UserId, kind: Kind) -> Result<Token> {
    let (token, now) = (cx.token()?, cx.db.now());
    let life = match kind {
        Kind::SignIn => SIGN_IN,
        Kind::Reset => RESET,
        Kind::SecondFactor => SECOND_FACTOR,
    };
    let link = OneTimeLink { user, kind, created_at: now, expires_at: now.after(life) };
    one_time_links::insert(tx, &link, &token.hash()).await?;
    Ok(token)
}

/// Where a link leads.
pub fn path(kind: Kind, token: &Token) -> String {
    let page = match kind {
        Kind::SignIn => "sign-in",
        Kind::Reset => "reset",
        Kind::SecondFactor => "sign-in/code",
    };
    format!("/{page}/{}", token.reveal())
}

/// The link with this secret, as long as it works.
///
/// # Errors
/// [`Error::NotFound`] when it was used before, is for something else, or its time is over.
pub async fn look(cx: &Context, conn: &mut Conn, token: &Token, kind: Kind) -> Result<OneTimeLink> {
    let found = one_time_links::by_hash(conn, &token.hash()).await?;
    found.filter(|l| l.kind == kind && l.expires_at > cx.db.now()).ok_or(Error::NotFound)
}

/// Whose link this is.
///
/// # Errors
/// As [`look`].
pub async fn whose(cx: &Context, token: &Token, kind: Kind) -> Result<String> {
    let mut conn = cx.db.read().await?;
    let link = look(cx, &mut conn, token, kind).await?;
    Ok(users::by_id(&mut conn, link.user).await?.ok_or(Error::NotFound)?.email)
}

/// Uses a link up and begins a session; gives its secret.
///
/// # Errors
/// [`Error::NotFound`] when it was used before, or its time is over; [`Error::Unauthenticated`] for who belongs to no
/// account any more: it is not used up then.
pub async fn sign_in(cx: &Context, link: &Token, origin: &Origin) -> Result<Token> {
    let mut tx = cx.db.write().await?;
    let taken = one_time_links::take(&mut tx, &link.hash()).await?;
    let good = |l: &OneTimeLink| l.kind == Kind::SignIn && l.expires_at > cx.db.now();
    let taken = taken.filter(good).ok_or(Error::NotFound)?;
    let token =
        sessions::begin(cx, &mut tx, (taken.user, None), origin, "by a one-time link").await?;
    tx.commit().await?;
    Ok(token)
}
