//! A person's own password: setting the first one, and changing it.

use crate::audit;
use crate::context::Context;
use crate::error::{Error, Result};
use crate::passwords::Passwords;
use crate::sessions::{self, Visitor};
use heliograph_domain::password;
use heliograph_domain::secret::Token;
use heliograph_store::{one_time_links, users};

/// Changes the password of who is signed in and knows the one they have; `None` when they do not. All their other
/// sessions end, links that wait for them work no more, and theirs goes on with the secret that is given back.
///
/// # Errors
/// [`Error::Weak`].
pub async fn change(
    cx: &Context,
    passwords: &Passwords,
    (who, address): (&Visitor, &str),
    (old, new): (&str, &str),
) -> Result<Option<Token>> {
    let session = &who.signed.session;
    let user =
        users::by_id(&mut cx.db.read().await?, session.user).await?.ok_or(Error::NotFound)?;
    // Who never had one came in by a link, and has none to show.
    if user.password.is_some() && !passwords.verify(old, user.password.as_deref()).await? {
        return Ok(None);
    }
    password::judge(new, &user.email)?;
    let hash = passwords.hash(new).await?;
    let mut tx = cx.db.write().await?;
    users::set_password(&mut tx, user.id, &hash).await?;
    one_time_links::remove_of(&mut tx, user.id).await?;
    let token = sessions::rotate(cx, &mut tx, session).await?;
    audit::write(cx, &mut tx, &who.actor(address), ("password changed", "")).await?;
    tx.commit().await?;
    Ok(Some(token))
}
