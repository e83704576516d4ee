//! The second factor: an app's codes, and codes on paper for when the app is gone.

use crate::audit::{self, Actor};
use crate::context::Context;
use crate::error::{Error, Result};
use crate::passwords::Passwords;
use heliograph_domain::id::UserId;
use heliograph_domain::recovery::{self, RecoveryCode};
use heliograph_domain::totp::TotpSecret;
use heliograph_store::users::User;
use heliograph_store::{Conn, recovery_codes, users};

/// How far somebody is with a second factor.
#[derive(Clone, Debug)]
pub enum State {
    /// There is none.
    Off,
    /// An app is to show its first code.
    Begun(TotpSecret),
    /// It is asked for at each sign-in; so many recovery codes are left.
    On(i64),
}

/// How far this person is, and whether they have a password.
///
/// # Errors
/// What keeps the database away.
pub async fn state(cx: &Context, user: UserId) -> Result<(State, bool)> {
    let mut conn = cx.db.read().await?;
    let person = users::by_id(&mut conn, user).await?.ok_or(Error::NotFound)?;
    let state = match &person.totp {
        None => State::Off,
        Some(totp) if totp.step.is_none() => State::Begun(totp.secret.clone()),
        Some(_) => State::On(recovery_codes::left(&mut conn, user).await?),
    };
    Ok((state, person.password.is_some()))
}

/// Whether what was typed is a code of this person, which is used up; which of the two it was.
///
/// # Errors
/// As any write.
pub async fn accept(
    cx: &Context,
    tx: &mut Conn,
    user: &User,
    typed: &str,
) -> Result<Option<&'static str>> {
    let Some(totp) = user.second_factor() else { return Ok(None) };
    if let Some(step) = totp.secret.step(typed, cx.db.now()) {
        let fresh = users::use_step(tx, user.id, step).await?;
        return Ok(fresh.then_some("by password and code"));
    }
    let Some(code) = RecoveryCode::parse(typed) else { return Ok(None) };
    let fresh = recovery_codes::take(tx, user.id, &code.hash()).await?;
    Ok(fresh.then_some("by password and recovery code"))
}

/// Begins with a fresh secret, for who knows the password; else false, also when there is no password beside which it
/// would be the second.
///
/// # Errors
/// [`Error::Conflict`] when there is a second factor already.
pub async fn begin(
    cx: &Context,
    passwords: &Passwords,
    actor: &Actor,
    password: &str,
) -> Result<bool> {
    let Some(user) = known(cx, passwords, actor, password).await? else { return Ok(false) };
    let secret = TotpSecret::from_random(cx.random()?);
    let mut tx = cx.db.write().await?;
    if !users::begin_totp(&mut tx, user.id, &secret).await? {
        return Err(Error::Conflict(
            "a second factor is on already: switch it off first".to_owned(),
        ));
    }
    tx.commit().await?;
    Ok(true)
}

/// Asks for the second factor from now on, since the app has shown a code of it. The recovery codes, shown only now;
/// `None` when the code is wrong.
///
/// # Errors
/// [`Error::Conflict`] when nothing was begun.
pub async fn confirm(cx: &Context, actor: &Actor, code: &str) -> Result<Option<Vec<RecoveryCode>>> {
    let user = actor.user.ok_or(Error::NotFound)?;
    let codes = codes(cx)?;
    let mut tx = cx.db.write().await?;
    let person = users::by_id(&mut tx, user).await?.ok_or(Error::NotFound)?;
    let begun = person.totp.filter(|t| t.step.is_none());
    let begun = begun.ok_or_else(|| Error::Conflict("there is nothing to confirm".to_owned()))?;
    let Some(step) = begun.secret.step(code, cx.db.now()) else { return Ok(None) };
    if !users::use_step(&mut tx, user, step).await? {
        return Ok(None);
    }
    keep(&mut tx, user, &codes).await?;
    audit::write(cx, &mut tx, actor, ("second factor on", "")).await?;
    tx.commit().await?;
    Ok(Some(codes))
}

/// Fresh recovery codes in the place of those that are left, for who knows the password; else `None`.
///
/// # Errors
/// [`Error::Conflict`] when there is no second factor.
pub async fn renew_codes(
    cx: &Context,
    passwords: &Passwords,
    actor: &Actor,
    password: &str,
) -> Result<Option<Vec<RecoveryCode>>> {
    let user = known(cx, passwords, actor, password).await?;
    let Some(user) = user else { return Ok(None) };
    if user.second_factor().is_none() {
        return Err(Error::Conflict("there is no second factor".to_owned()));
    }
    let codes = codes(cx)?;
    let mut tx = cx.db.write().await?;
    keep(&mut tx, user.id, &codes).await?;
    audit::write(cx, &mut tx, actor, ("recovery codes renewed", "")).await?;
    tx.commit().await?;
    Ok(Some(codes))
}

/// Does without a second factor, for who knows the password; else false.
///
/// # Errors
/// What keeps the database away.
pub async fn end(
    cx: &Context,
    passwords: &Passwords,
    actor: &Actor,
    password: &str,
) -> Result<bool> {
    let Some(user) = known(cx, passwords, actor, password).await? else { return Ok(false) };
    let mut tx = cx.db.write().await?;
    users::end_totp(&mut tx, user.id).await?;
    recovery_codes::replace(&mut tx, user.id, &[]).await?;
    audit::write(cx, &mut tx, actor, ("second factor off", "")).await?;
    tx.commit().await?;
    Ok(true)
}

async fn known(
    cx: &Context,
    passwords: &Passwords,
    actor: &Actor,
    password: &str,
) -> Result<Option<User>> {
    let user = actor.user.ok_or(Error::NotFound)?;
    let user = users::by_id(&mut cx.db.read().await?, user).await?.ok_or(Error::NotFound)?;
    let right = passwords.verify(password, user.password.as_deref()).await?;
    Ok(right.then_some(user))
}

fn codes(cx: &Context) -> Result<Vec<RecoveryCode>> {
    (0..recovery::COUNT).map(|_| Ok(RecoveryCode::from_random(&cx.random()?))).collect()
}

async fn keep(tx: &mut Conn, user: UserId, codes: &[RecoveryCode]) -> Result<()> {
    let hashes: Vec<_> = codes.iter().map(RecoveryCode::hash).collect();
    Ok(recovery_codes::replace(tx, user, &hashes).await?)
}
