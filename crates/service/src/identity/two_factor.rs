//! Two-factor authentication (TOTP): codes of an authenticator app, and recovery codes.

use crate::identity::passwords::Passwords;
use crate::kernel::audit::{self, Actor, AuditAction, SignInMethod};
use crate::kernel::context::Context;
use crate::kernel::error::{ConflictReason, Error, Result};
use async_recursion::async_recursion as boxed;
use heliograph_domain::id::UserId;
use heliograph_domain::recovery::{self, RecoveryCode};
use heliograph_domain::totp::TotpSecret;
use heliograph_store::Conn;
use heliograph_store::identity::recovery_codes;
use heliograph_store::identity::users;
use heliograph_store::identity::users::User;

/// The state of a user's two-factor authentication.
#[derive(Clone, Debug)]
pub enum TwoFactorState {
    /// Two-factor authentication is off.
    Off,
    /// Setup has begun; the app has to show its first code.
    Pending(TotpSecret),
    /// Two-factor authentication is on, with this number of recovery codes left.
    On(i64),
}

/// Returns the state of a user, and whether the user has a password.
#[boxed]
pub async fn state(cx: &Context, user: UserId) -> Result<(TwoFactorState, bool)> {
    let mut conn = cx.db.read().await?;
    let person = users::by_id(&mut conn, user).await?.ok_or(Error::NotFound)?;
    let state = match &person.totp {
        None => TwoFactorState::Off,
        Some(totp) if totp.step.is_none() => TwoFactorState::Pending(totp.secret.clone()),
        Some(_) => TwoFactorState::On(recovery_codes::count(&mut conn, user).await?),
    };
    Ok((state, person.password_hash.is_some()))
}

/// Verifies a TOTP or recovery code and uses it up; returns the method for the audit log.
#[boxed]
pub async fn verify_code(
    cx: &Context,
    tx: &mut Conn,
    user: &User,
    typed: &str,
) -> Result<Option<SignInMethod>> {
    let Some(totp) = user.two_factor() else { return Ok(None) };
    if let Some(step) = totp.secret.matching_step(typed, cx.db.now()) {
        let fresh = users::use_totp_step(tx, user.id, step).await?;
        return Ok(fresh.then_some(SignInMethod::AuthenticatorApp));
    }
    let Some(code) = RecoveryCode::parse(typed) else { return Ok(None) };
    let fresh = recovery_codes::consume(tx, user.id, &code.hash()).await?;
    Ok(fresh.then_some(SignInMethod::RecoveryCode))
}

/// Begins setup with a fresh secret; false when the password is wrong or the user has none.
///
/// # Errors
/// [`Error::Conflict`] when two-factor authentication is on.
#[boxed]
pub async fn begin_setup(
    cx: &Context,
    passwords: &Passwords,
    actor: &Actor,
    password: &str,
) -> Result<bool> {
    let Some(user) = with_password(cx, passwords, actor, password).await? else { return Ok(false) };
    let secret = TotpSecret::from_random(cx.random()?);
    let mut tx = cx.db.write().await?;
    if !users::set_totp_secret(&mut tx, user.id, &secret).await? {
        return Err(Error::Conflict(ConflictReason::TwoFactorEnabled));
    }
    tx.commit().await?;
    Ok(true)
}

/// Turns two-factor authentication on when the app's code is right. Returns the recovery codes,
/// which are shown only once; `None` when the code is wrong.
///
/// # Errors
/// [`Error::Conflict`] when setup has not begun.
#[boxed]
pub async fn confirm_setup(
    cx: &Context,
    actor: &Actor,
    code: &str,
) -> Result<Option<Vec<RecoveryCode>>> {
    let user = actor.user.ok_or(Error::NotFound)?;
    let codes = codes(cx)?;
    let mut tx = cx.db.write().await?;
    let person = users::by_id(&mut tx, user).await?.ok_or(Error::NotFound)?;
    let begun = person.totp.filter(|t| t.step.is_none());
    let begun = begun.ok_or(Error::Conflict(ConflictReason::TwoFactorNotPending))?;
    let Some(step) = begun.secret.matching_step(code, cx.db.now()) else { return Ok(None) };
    if !users::use_totp_step(&mut tx, user, step).await? {
        return Ok(None);
    }
    keep(&mut tx, user, &codes).await?;
    audit::record(cx, &mut tx, actor, AuditAction::TwoFactorEnabled, "").await?;
    tx.commit().await?;
    Ok(Some(codes))
}

/// Replaces the recovery codes; `None` when the password is wrong.
///
/// # Errors
/// [`Error::Conflict`] when two-factor authentication is off.
#[boxed]
pub async fn regenerate_recovery_codes(
    cx: &Context,
    passwords: &Passwords,
    actor: &Actor,
    password: &str,
) -> Result<Option<Vec<RecoveryCode>>> {
    let user = with_password(cx, passwords, actor, password).await?;
    let Some(user) = user else { return Ok(None) };
    if user.two_factor().is_none() {
        return Err(Error::Conflict(ConflictReason::TwoFactorDisabled));
    }
    let codes = codes(cx)?;
    let mut tx = cx.db.write().await?;
    keep(&mut tx, user.id, &codes).await?;
    audit::record(cx, &mut tx, actor, AuditAction::RecoveryCodesRenewed, "").await?;
    tx.commit().await?;
    Ok(Some(codes))
}

/// Turns two-factor authentication off; false when the password is wrong.
#[boxed]
pub async fn disable(
    cx: &Context,
    passwords: &Passwords,
    actor: &Actor,
    password: &str,
) -> Result<bool> {
    let Some(user) = with_password(cx, passwords, actor, password).await? else { return Ok(false) };
    let mut tx = cx.db.write().await?;
    users::clear_totp(&mut tx, user.id).await?;
    recovery_codes::replace(&mut tx, user.id, &[]).await?;
    audit::record(cx, &mut tx, actor, AuditAction::TwoFactorDisabled, "").await?;
    tx.commit().await?;
    Ok(true)
}

async fn with_password(
    cx: &Context,
    passwords: &Passwords,
    actor: &Actor,
    password: &str,
) -> Result<Option<User>> {
    let user = actor.user.ok_or(Error::NotFound)?;
    let user = users::by_id(&mut cx.db.read().await?, user).await?.ok_or(Error::NotFound)?;
    let right = passwords.verify(password, user.password_hash.as_deref()).await?;
    Ok(right.then_some(user))
}

fn codes(cx: &Context) -> Result<Vec<RecoveryCode>> {
    (0..recovery::COUNT).map(|_| Ok(RecoveryCode::from_random(&cx.random()?))).collect()
}

async fn keep(tx: &mut Conn, user: UserId, codes: &[RecoveryCode]) -> Result<()> {
    let hashes: Vec<_> = codes.iter().map(RecoveryCode::hash).collect();
    Ok(recovery_codes::replace(tx, user, &hashes).await?)
}
