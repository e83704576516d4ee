//! Signing in by password, and by a code where a second factor is asked for.

use crate::audit::{self, Actor};
use crate::context::Context;
use crate::error::{Error, Result};
use crate::one_time_links::{self, Kind};
use crate::passwords::Passwords;
use crate::second_factor;
use crate::sessions::{self, Origin};
use heliograph_domain::id::UserId;
use heliograph_domain::secret::Token;
use heliograph_store::{Conn, accounts, one_time_links as links, users};

/// Where a right password leads.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Door {
    /// In: the secret of the session.
    In(Token),
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
    origin: &Origin,
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
        None => Door::In(sessions::begin(cx, &mut tx, user.id, origin, "by password").await?),
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
    origin: &Origin,
) -> Result<Option<Token>> {
    let mut tx = cx.db.write().await?;
    let link = one_time_links::look(cx, &mut tx, way, Kind::SecondFactor).await?;
    let user = users::by_id(&mut tx, link.user).await?.ok_or(Error::NotFound)?;
    let Some(how) = second_factor::accept(cx, &mut tx, &user, typed).await? else {
        failed(cx, &mut tx, user.id, origin, "wrong code").await?;
        tx.commit().await?;
        return Ok(None);
    };
    links::take(&mut tx, &way.hash()).await?.ok_or(Error::NotFound)?;
    let token = sessions::begin(cx, &mut tx, user.id, origin, how).await?;
    tx.commit().await?;
    Ok(Some(token))
}

/// Whose code is asked for.
///
/// # Errors
/// As [`by_code`].
pub async fn whose(cx: &Context, way: &Token) -> Result<String> {
    let mut conn = cx.db.read().await?;
    let link = one_time_links::look(cx, &mut conn, way, Kind::SecondFactor).await?;
    Ok(users::by_id(&mut conn, link.user).await?.ok_or(Error::NotFound)?.email)
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
