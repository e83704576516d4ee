//! Signing in by password, and by a code where a second factor is asked for.

use crate::audit::{self, Actor};
use crate::context::Context;
use crate::error::{Error, Result};
use crate::one_time_links::{self, Kind};
use crate::passwords::Passwords;
use crate::people;
use crate::second_factor;
use crate::sessions::{self, Origin};
use heliograph_domain::id::UserId;
use heliograph_domain::secret::Token;
use heliograph_store::users::User;
use heliograph_store::{Conn, accounts, one_time_links as links, users};

/// Somebody who is in.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Entered {
    /// The secret of the session.
    pub session: Token,
    /// By signing in they joined the account to which they were invited: they had none any more.
    pub joined: bool,
}

/// Whence somebody comes: from where, and by the link of which invitation, if any. It takes in who was taken out of their
/// last account and has no other way back; all others are asked once they are in.
pub type Comes<'a> = (&'a Origin, Option<&'a Token>);

/// Where a right password leads.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Door {
    /// In.
    In(Entered),
    /// To the second factor: the secret with which to go on.
    Code(Token),
}

/// Looks at an address and a password; `None` when they do not belong together, whatever is wrong with them.
///
/// # Errors
/// [`Error::Unauthenticated`] for who belongs to no account any more; [`Error::Overloaded`].
pub async fn by_password(
    cx: &Context,
    passwords: &Passwords,
    (email, password): (&str, &str),
    (origin, invitation): Comes<'_>,
) -> Result<Option<Door>> {
    let user = users::by_email(&mut cx.db.read().await?, email).await?;
    // Also for nobody, so that an answer takes as long.
    let hash = user.as_ref().and_then(|u| u.password.as_deref());
    let right = passwords.verify(password, hash).await?;
    let Some(user) = user else { return Ok(None) };
    let mut tx = cx.db.write().await?;
    if !right {
        failed(cx, &mut tx, user.id, origin, "wrong password").await?;
        tx.commit().await?;
        return Ok(None);
    }
    let door = match user.second_factor() {
        Some(_) => Door::Code(one_time_links::add(cx, &mut tx, user.id, Kind::SecondFactor).await?),
        None => Door::In(enter(cx, &mut tx, &user, (origin, invitation), "by password").await?),
    };
    tx.commit().await?;
    Ok(Some(door))
}

/// Looks at a code of whose password was right; `None` when it is wrong, or was used before.
///
/// # Errors
/// [`Error::NotFound`] when too much time went by: they begin again.
pub async fn by_code(
    cx: &Context,
    way: &Token,
    typed: &str,
    (origin, invitation): Comes<'_>,
) -> Result<Option<Entered>> {
    let mut tx = cx.db.write().await?;
    let link = one_time_links::look(cx, &mut tx, way, Kind::SecondFactor).await?;
    let user = users::by_id(&mut tx, link.user).await?.ok_or(Error::NotFound)?;
    let Some(how) = second_factor::accept(cx, &mut tx, &user, typed).await? else {
        failed(cx, &mut tx, user.id, origin, "wrong code").await?;
        tx.commit().await?;
        return Ok(None);
    };
    links::take(&mut tx, &way.hash()).await?.ok_or(Error::NotFound)?;
    let entered = enter(cx, &mut tx, &user, (origin, invitation), how).await?;
    tx.commit().await?;
    Ok(Some(entered))
}

async fn enter(
    cx: &Context,
    tx: &mut Conn,
    user: &User,
    (origin, invitation): Comes<'_>,
    how: &str,
) -> Result<Entered> {
    let account = match invitation {
        Some(token) if accounts::of_user(tx, user.id).await?.is_empty() => {
            people::join_as(cx, tx, (user.id, &user.email), &origin.address, token).await?
        }
        _ => None,
    };
    let session = sessions::begin(cx, tx, (user.id, account), origin, how).await?;
    Ok(Entered { session, joined: account.is_some() })
}

/// Writes down that somebody tried to be this person.
async fn failed(
    cx: &Context,
    tx: &mut Conn,
    user: UserId,
    origin: &Origin,
    why: &str,
) -> Result<()> {
    for (account, ..) in accounts::of_user(tx, user).await?.into_iter().take(1) {
        let actor = Actor { account, user: Some(user), address: origin.address.clone() };
        audit::write(cx, tx, &actor, ("sign-in failed", why)).await?;
    }
    Ok(())
}
