//! Signing up: an account, its owner and their first session in one step.

use crate::accounts;
use crate::audit::{self, Actor};
use crate::context::Context;
use crate::error::{Error, Result};
use crate::passwords::Passwords;
use crate::sessions::{self, Origin};
use heliograph_domain::password;
use heliograph_domain::secret::Token;
use heliograph_store::users;

/// Opens an account; the secret of the session, or `None` when somebody has the address already.
///
/// # Errors
/// [`Error::NotFound`] where nobody may; [`Error::Weak`].
pub async fn open(
    cx: &Context,
    passwords: &Passwords,
    (email, password): (&str, &str),
    origin: &Origin,
) -> Result<Option<Token>> {
    let entrance = &cx.settings().entrance;
    if !entrance.open {
        return Err(Error::NotFound);
    }
    password::judge(password, email)?;
    let hash = passwords.hash(password).await?;
    let mut tx = cx.db.write().await?;
    let made = accounts::open(cx, &mut tx, email, (&entrance.currency, false)).await?;
    let Some((account, user)) = made else { return Ok(None) };
    users::set_password(&mut tx, user, &hash).await?;
    let actor = Actor { account, user: Some(user), address: origin.address.clone() };
    audit::write(cx, &mut tx, &actor, ("account opened", email)).await?;
    let token = sessions::begin(cx, &mut tx, (user, None), origin, "by signing up").await?;
    tx.commit().await?;
    Ok(Some(token))
}
