//! Two-factor authentication (TOTP): codes of an authenticator app, and recovery codes.

use crate::identity::mails::{self, MailKind, NewMail};
use crate::identity::passwords::Passwords;
use crate::identity::sessions::AuthenticatedUser;
use crate::kernel::audit::{self, Actor, AuditAction, SignInMethod};
use crate::kernel::context::Context;
use crate::kernel::error::{ConflictReason, Error, Result};
use async_recursion::async_recursion as boxed;
use heliograph_domain::account::Role;
use heliograph_domain::id::UserId;
use heliograph_domain::recovery::{self, RecoveryCode};
use heliograph_domain::totp::TotpSecret;
use heliograph_store::Conn;
use heliograph_store::identity::accounts;
use heliograph_store::identity::recovery_codes;
use heliograph_store::identity::users;
use heliograph_store::identity::users::{User, UserTotp};
use std::time::Duration;

/// The time within which the first code has to confirm a new secret.
const SETUP: Duration = Duration::from_secs(15 * 60);
/// The number of wrong codes after which further ones are delayed.
const FREE_TRIES: i64 = 5;
/// The first delay; it doubles with each wrong code up to [`LONGEST_DELAY`].
const FIRST_DELAY: Duration = Duration::from_secs(30);
const LONGEST_DELAY: Duration = Duration::from_secs(3_600);

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

/// Returns the state of a user, and whether the user has a password. A setup is pending only in the
/// session that began it, so that nobody is shown the secret of somebody else.
#[boxed]
pub async fn state(cx: &Context, who: &AuthenticatedUser) -> Result<(TwoFactorState, bool)> {
    let user = who.details.session.user;
    let mut conn = cx.db.read().await?;
    let person = users::by_id(&mut conn, user).await?.ok_or(Error::NotFound)?;
    let state = match &person.totp {
        Some(totp) if totp.step.is_some() => {
            TwoFactorState::On(recovery_codes::count(&mut conn, user).await?)
        }
        Some(totp) if is_pending(cx, totp, who) => TwoFactorState::Pending(totp.secret.clone()),
        _ => TwoFactorState::Off,
    };
    Ok((state, person.password_hash.is_some()))
}

/// Returns whether this session has begun the setup a short time ago.
fn is_pending(cx: &Context, totp: &UserTotp, who: &AuthenticatedUser) -> bool {
    let begun = totp.begun.filter(|_| totp.step.is_none());
    begun.is_some_and(|(session, at)| {
        session == who.details.session.id && cx.db.now() < at.after(SETUP)
    })
}

/// The result of a try at a two-factor code.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum CodeTry {
    /// The code is right; the method is for the audit log.
    Right(SignInMethod),
    /// The code is wrong or was used before.
    Wrong,
    /// The code was not checked: there were too many wrong ones, and the next try is allowed then.
    Wait(Duration),
}

/// Checks a two-factor code and counts wrong ones in the user's row, so that the count holds for all
/// nodes and after restarts. After some wrong codes the delay grows, and the user gets a mail.
#[boxed]
pub(crate) async fn try_code(
    cx: &Context,
    tx: &mut Conn,
    user: &User,
    typed: &str,
) -> Result<CodeTry> {
    let now = cx.db.now();
    let Some(tries) = users::count_code_try(tx, user.id, now).await? else {
        let until = users::codes_after(tx, user.id).await?;
        return Ok(CodeTry::Wait(until.map_or(Duration::ZERO, |until| until.since(now))));
    };
    if let Some(method) = verify_code(cx, tx, user, typed).await? {
        users::forget_code_tries(tx, user.id).await?;
        return Ok(CodeTry::Right(method));
    }
    if let Some(delay) = delay(tries) {
        users::delay_codes(tx, user.id, Some(now.after(delay))).await?;
    }
    if tries % FREE_TRIES == 0 {
        warn(cx, tx, user, tries).await?;
    }
    Ok(CodeTry::Wrong)
}

/// Returns the delay after this number of wrong codes.
fn delay(tries: i64) -> Option<Duration> {
    let doublings = tries.saturating_sub(FREE_TRIES).min(16);
    let doublings = u32::try_from(doublings).ok()?;
    Some(FIRST_DELAY.saturating_mul(1 << doublings).min(LONGEST_DELAY))
}

/// Tells the user by mail about wrong codes.
async fn warn(cx: &Context, tx: &mut Conn, user: &User, tries: i64) -> Result<()> {
    let body = format!(
        "Somebody entered your password, and then {tries} wrong two-factor codes in a row. Further codes \
         are delayed.\n\nIf it was not you, your password is known to somebody else. Choose a new one:\n\
         {}/reset\n",
        cx.settings().sign_up.base_url
    );
    let (kind, subject) = (MailKind::Notice, "Wrong two-factor codes for your account");
    mails::send(cx, tx, NewMail { kind, recipient: &user.email, subject, body: &body }).await?;
    Ok(())
}

/// Requires two-factor authentication of all members of the user's account, or no longer does.
///
/// # Errors
/// [`Error::Scope`] unless the user is an owner; [`Error::Conflict`] when the user does not have it.
#[boxed]
pub async fn require_of_members(
    cx: &Context,
    who: &AuthenticatedUser,
    actor: &Actor,
    required: bool,
) -> Result<()> {
    if who.details.role != Role::Owner {
        return Err(Error::Scope("owner"));
    }
    if required && !who.details.two_factor {
        return Err(Error::Conflict(ConflictReason::TwoFactorMissing));
    }
    let mut tx = cx.db.write().await?;
    accounts::require_two_factor(&mut tx, actor.account, required).await?;
    let action = match required {
        true => AuditAction::TwoFactorRequired,
        false => AuditAction::TwoFactorOptional,
    };
    audit::record(cx, &mut tx, actor, action, "").await?;
    Ok(tx.commit().await?)
}

/// Verifies a TOTP or recovery code and uses it up; returns the method for the audit log.
#[boxed]
async fn verify_code(
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

/// Begins setup with a fresh secret, which the first code has to confirm in the same session; false when the password is wrong or the user has none.
///
/// # Errors
/// [`Error::Conflict`] when two-factor authentication is on.
#[boxed]
pub async fn begin_setup(
    cx: &Context,
    passwords: &Passwords,
    who: &AuthenticatedUser,
    password: &str,
) -> Result<bool> {
    let session = &who.details.session;
    let user = with_password(cx, passwords, session.user, password).await?;
    let Some(user) = user else { return Ok(false) };
    let secret = TotpSecret::from_random(cx.random()?);
    let mut tx = cx.db.write().await?;
    let begun = (session.id, cx.db.now());
    if !users::set_totp_secret(&mut tx, user.id, &secret, begun).await? {
        return Err(Error::Conflict(ConflictReason::TwoFactorEnabled));
    }
    tx.commit().await?;
    Ok(true)
}

/// Turns two-factor authentication on when the app's code is right. Returns the recovery codes,
/// which are shown only once; `None` when the code is wrong.
///
/// # Errors
/// [`Error::Conflict`] when this session has not begun the setup, or too long ago.
#[boxed]
pub async fn confirm_setup(
    cx: &Context,
    who: &AuthenticatedUser,
    actor: &Actor,
    code: &str,
) -> Result<Option<Vec<RecoveryCode>>> {
    let user = who.details.session.user;
    let codes = codes(cx)?;
    let mut tx = cx.db.write().await?;
    let person = users::by_id(&mut tx, user).await?.ok_or(Error::NotFound)?;
    let begun = person.totp.filter(|totp| is_pending(cx, totp, who));
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
    let user = actor.user.ok_or(Error::NotFound)?;
    let user = with_password(cx, passwords, user, password).await?;
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
    let user = actor.user.ok_or(Error::NotFound)?;
    let user = with_password(cx, passwords, user, password).await?;
    let Some(user) = user else { return Ok(false) };
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
    user: UserId,
    password: &str,
) -> Result<Option<User>> {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_delay_after_wrong_codes_grows_up_to_an_hour() {
        let seconds = |tries| delay(tries).map(|delay| delay.as_secs());
        assert_eq!([1, 4].map(seconds), [None; 2]);
        assert_eq!([5, 6, 7].map(seconds), [Some(30), Some(60), Some(120)]);
        assert_eq!([12, 1_000, i64::MAX].map(seconds), [Some(3_600); 3]);
    }
}
