//! Signing up: creates an account, its owner and the first session in one transaction.

use crate::identity::accounts;
use crate::identity::passwords::{Credentials, Passwords};
use crate::identity::sessions::{self, NewSession, SessionOrigin};
use crate::kernel::audit::{self, Actor, AuditAction, SignInMethod};
use crate::kernel::context::Context;
use crate::kernel::error::{Error, Result};
use heliograph_domain::password;
use heliograph_domain::secret::Token;
use heliograph_store::identity::users;

/// Creates an account and returns the secret of the session; `None` when the email address is
/// taken.
///
/// # Errors
/// [`Error::NotFound`] when signing up is off; [`Error::WeakPassword`].
pub async fn create_account(
    cx: &Context,
    passwords: &Passwords,
    credentials: Credentials<'_>,
    origin: &SessionOrigin,
) -> Result<Option<Token>> {
    let Credentials { email, password } = credentials;
    let entrance = &cx.settings().sign_up;
    if !entrance.enabled {
        return Err(Error::NotFound);
    }
    password::check(password, email)?;
    let hash = passwords.hash(password).await?;
    let mut tx = cx.db.write().await?;
    let made = accounts::create_in(cx, &mut tx, email, &entrance.currency, false).await?;
    let Some((account, user)) = made else { return Ok(None) };
    heliograph_store::identity::accounts::mark_self_registered(&mut tx, account).await?;
    users::set_password(&mut tx, user, &hash).await?;
    let actor = Actor { account, user: Some(user), address: origin.address.clone() };
    audit::record(cx, &mut tx, &actor, AuditAction::AccountOpened, email).await?;
    let token = sessions::start(
        cx,
        &mut tx,
        NewSession { user, account: None, origin, method: SignInMethod::SignUp },
    )
    .await?;
    tx.commit().await?;
    Ok(Some(token))
}
