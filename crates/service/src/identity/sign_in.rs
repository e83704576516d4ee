//! Signing in with a password and, where it is on, two-factor authentication.

use crate::identity::magic_links::{self, MagicLinkKind};
use crate::identity::members::{self, InvitedUser};
use crate::identity::passwords::{Credentials, Passwords};
use crate::identity::sessions::{self, NewSession, SessionOrigin};
use crate::identity::two_factor;
use crate::kernel::audit::{self, AuditAction, SignInFailure, SignInMethod};
use crate::kernel::context::Context;
use crate::kernel::error::{Error, Result};
use crate::kernel::security_log::SecurityEvent;
use heliograph_domain::id::UserId;
use heliograph_domain::secret::Token;
use heliograph_store::Conn;
use heliograph_store::identity::accounts;
use heliograph_store::identity::magic_links as links;
use heliograph_store::identity::users;
use heliograph_store::identity::users::User;

/// A completed sign-in.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SignedIn {
    /// The secret of the session.
    pub session: Token,
    /// True if the user joined the inviting account by signing in, having had no account left.
    pub joined: bool,
}

/// The origin of the request, and the invitation link it came from, if any. The invitation is
/// accepted at once by a user who was removed from their last account; other users are asked after
/// signing in.
#[derive(Clone, Copy)]
pub struct SignInContext<'a> {
    /// The origin of the request.
    pub origin: &'a SessionOrigin,
    /// The token of the invitation link.
    pub invitation: Option<&'a Token>,
}

/// The next step after a correct password.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum PasswordStep {
    /// The sign-in is complete.
    SignedIn(SignedIn),
    /// A two-factor code is required: the secret to continue with.
    TwoFactor(Token),
}

/// Checks an email address and a password; `None` when they are incorrect, whichever is wrong.
///
/// # Errors
/// [`Error::Unauthenticated`] when the user belongs to no account any more; [`Error::Overloaded`].
pub async fn by_password(
    cx: &Context,
    passwords: &Passwords,
    credentials: Credentials<'_>,
    from: SignInContext<'_>,
) -> Result<Option<PasswordStep>> {
    let user = users::by_email(&mut cx.db.read().await?, credentials.email).await?;
    // Also for unknown users, so that the response takes the same time.
    let hash = user.as_ref().and_then(|u| u.password_hash.as_deref());
    let right = passwords.verify(credentials.password, hash).await?;
    let Some(user) = user else {
        let (event, reason) = (AuditAction::SignInFailed.code(), "unknown_user");
        let client = &*from.origin.address;
        SecurityEvent { event, client, reason, ..Default::default() }.refused();
        return Ok(None);
    };
    let mut tx = cx.db.write().await?;
    if !right {
        failed(cx, &mut tx, user.id, from.origin, SignInFailure::WrongPassword).await?;
        tx.commit().await?;
        return Ok(None);
    }
    let step = match user.two_factor() {
        Some(_) => PasswordStep::TwoFactor(
            magic_links::create_in(cx, &mut tx, user.id, MagicLinkKind::TwoFactor).await?,
        ),
        None => {
            PasswordStep::SignedIn(enter(cx, &mut tx, &user, from, SignInMethod::Password).await?)
        }
    };
    tx.commit().await?;
    Ok(Some(step))
}

/// Checks a two-factor code after a correct password; `None` when it is wrong or was used before.
///
/// # Errors
/// [`Error::NotFound`] when the time ran out and the sign-in has to start again.
pub async fn by_code(
    cx: &Context,
    challenge: &Token,
    typed: &str,
    from: SignInContext<'_>,
) -> Result<Option<SignedIn>> {
    let mut tx = cx.db.write().await?;
    let link = magic_links::find_valid(cx, &mut tx, challenge, MagicLinkKind::TwoFactor).await?;
    let user = users::by_id(&mut tx, link.user).await?.ok_or(Error::NotFound)?;
    let Some(method) = two_factor::verify_code(cx, &mut tx, &user, typed).await? else {
        failed(cx, &mut tx, user.id, from.origin, SignInFailure::WrongCode).await?;
        tx.commit().await?;
        return Ok(None);
    };
    links::take(&mut tx, &challenge.hash()).await?.ok_or(Error::NotFound)?;
    let entered = enter(cx, &mut tx, &user, from, method).await?;
    tx.commit().await?;
    Ok(Some(entered))
}

async fn enter(
    cx: &Context,
    tx: &mut Conn,
    user: &User,
    from: SignInContext<'_>,
    method: SignInMethod,
) -> Result<SignedIn> {
    let account = match from.invitation {
        Some(token) if accounts::list_for_user(tx, user.id).await?.is_empty() => {
            members::accept_invitation_as(
                cx,
                tx,
                InvitedUser { id: user.id, email: &user.email },
                &from.origin.address,
                token,
            )
            .await?
        }
        _ => None,
    };
    let session =
        sessions::start(cx, tx, NewSession { user: user.id, account, origin: from.origin, method })
            .await?;
    Ok(SignedIn { session, joined: account.is_some() })
}

/// Writes a failed sign-in to the audit log.
async fn failed(
    cx: &Context,
    tx: &mut Conn,
    user: UserId,
    origin: &SessionOrigin,
    reason: SignInFailure,
) -> Result<()> {
    if let Some(actor) = sessions::first_actor(tx, user, origin).await? {
        audit::record(cx, tx, &actor, AuditAction::SignInFailed, reason.code()).await?;
    }
    Ok(())
}
