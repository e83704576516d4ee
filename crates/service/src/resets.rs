//! New passwords for those who forgot theirs, by a link that works once.

use crate::audit::{self, Actor};
use crate::context::Context;
use crate::error::{Error, Result};
use crate::mails;
use crate::one_time_links::{self, Kind};
use crate::passwords::Passwords;
use crate::sessions::Origin;
use heliograph_domain::id::UserId;
use heliograph_domain::password;
use heliograph_domain::secret::Token;
use heliograph_store::{Conn, accounts, one_time_links as links, sessions, users};

/// Sends a link to this address, if somebody has it and mail can be sent. Who asks is told the same in any case.
///
/// # Errors
/// What keeps the database away.
pub async fn ask(cx: &Context, email: &str, origin: &Origin) -> Result<()> {
    let entrance = &cx.settings().entrance;
    let mut tx = cx.db.write().await?;
    let Some(user) = accounts::user(&mut tx, email).await?.filter(|_| entrance.mail) else {
        return Ok(());
    };
    let token = one_time_links::add(cx, &mut tx, user, Kind::Reset).await?;
    let link = format!("{}{}", entrance.base_url, one_time_links::path(Kind::Reset, &token));
    let body = format!(
        "Somebody, probably you, asked for a new password for {email}.\n\nChoose it here, within an hour:\n{link}\n\n\
         If it was not you, nothing has happened, and you need not do anything.\n"
    );
    mails::send(cx, &mut tx, email, ("Choose a new password", &body)).await?;
    note(cx, &mut tx, user, origin, ("password reset asked for", email)).await?;
    Ok(tx.commit().await?)
}

/// Whose password a link sets.
///
/// # Errors
/// [`Error::NotFound`] when it was used before, or its time is over.
pub async fn whose(cx: &Context, token: &Token) -> Result<String> {
    let mut conn = cx.db.read().await?;
    let link = one_time_links::look(cx, &mut conn, token, Kind::Reset).await?;
    Ok(users::by_id(&mut conn, link.user).await?.ok_or(Error::NotFound)?.email)
}

/// Sets a new password, ends all sessions, and uses up all links. A second factor stays, and is asked for at the next
/// sign-in.
///
/// # Errors
/// [`Error::Weak`]; [`Error::NotFound`] as above.
pub async fn set(
    cx: &Context,
    passwords: &Passwords,
    (token, password): (&Token, &str),
    origin: &Origin,
) -> Result<()> {
    password::judge(password, &whose(cx, token).await?)?;
    let hash = passwords.hash(password).await?;
    let mut tx = cx.db.write().await?;
    let link = one_time_links::look(cx, &mut tx, token, Kind::Reset).await?;
    links::take(&mut tx, &token.hash()).await?.ok_or(Error::NotFound)?;
    links::remove_of(&mut tx, link.user).await?;
    users::set_password(&mut tx, link.user, &hash).await?;
    sessions::end_others(&mut tx, link.user, None).await?;
    note(cx, &mut tx, link.user, origin, ("password reset", "")).await?;
    Ok(tx.commit().await?)
}

async fn note(
    cx: &Context,
    tx: &mut Conn,
    user: UserId,
    origin: &Origin,
    what: (&str, &str),
) -> Result<()> {
    for (account, ..) in accounts::of_user(tx, user).await?.into_iter().take(1) {
        let actor = Actor { account, user: Some(user), address: origin.address.clone() };
        audit::write(cx, tx, &actor, what).await?;
    }
    Ok(())
}
