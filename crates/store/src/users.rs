//! People: how they prove who they are.

use crate::db::Conn;
use crate::error::{Error, Result};
use crate::row::Row;
use crate::sealing::{Place, Sealer};
use heliograph_domain::id::UserId;
use heliograph_domain::time::Timestamp;
use heliograph_domain::totp::TotpSecret;

/// A person who can sign in.
#[derive(Clone, Debug)]
pub struct User {
    /// Their id.
    pub id: UserId,
    /// Their address, lower-case.
    pub email: String,
    /// The hash of their password, if they have one.
    pub password: Option<String>,
    /// Their second factor, if they have begun with one.
    pub totp: Option<Totp>,
}

/// A second factor.
#[derive(Clone, Debug)]
pub struct Totp {
    /// What the app has, too.
    pub secret: TotpSecret,
    /// The last step that was used; nothing before the first code has confirmed that the app has the secret.
    pub step: Option<i64>,
}

impl User {
    /// The second factor that is asked for.
    pub fn second_factor(&self) -> Option<&Totp> {
        self.totp.as_ref().filter(|t| t.step.is_some())
    }
}

/// The person with this address.
///
/// # Errors
/// As any read.
pub async fn by_email(conn: &mut Conn, email: &str) -> Result<Option<User>> {
    let sql = "SELECT id, email, password, totp_secret, totp_step FROM users WHERE email = $1";
    let sealer = conn.sealer()?;
    conn.query_one(sql, &[email.into()], |r| user(r, &sealer)).await
}

/// The person with this id.
///
/// # Errors
/// As any read.
pub async fn by_id(conn: &mut Conn, id: UserId) -> Result<Option<User>> {
    let sql = "SELECT id, email, password, totp_secret, totp_step FROM users WHERE id = $1";
    let sealer = conn.sealer()?;
    conn.query_one(sql, &[id.0.into()], |r| user(r, &sealer)).await
}

/// Takes a person in whom nobody knew; false when somebody has the address.
///
/// # Errors
/// As any write.
pub async fn insert(tx: &mut Conn, id: UserId, email: &str, at: Timestamp) -> Result<bool> {
    let sql = "INSERT INTO users (id, email, operator, created_at) VALUES ($1, $2, 0, $3)
        ON CONFLICT (email) DO NOTHING";
    Ok(tx.execute(sql, &[id.0.into(), email.into(), at.into()]).await? > 0)
}

/// Keeps the hash of a new password.
///
/// # Errors
/// As any write.
pub async fn set_password(tx: &mut Conn, id: UserId, hash: &str) -> Result<()> {
    let sql = "UPDATE users SET password = $2 WHERE id = $1";
    tx.execute(sql, &[id.0.into(), hash.into()]).await.map(drop)
}

/// Begins with a second factor, which is asked for when a code has confirmed it. False when one is asked for already.
///
/// # Errors
/// As any write.
pub async fn begin_totp(tx: &mut Conn, id: UserId, secret: &TotpSecret) -> Result<bool> {
    let sealed = tx.sealer()?.seal(Place("users", &id.0), &secret.reveal())?;
    let sql = "UPDATE users SET totp_secret = $2 WHERE id = $1 AND totp_step IS NULL";
    Ok(tx.execute(sql, &[id.0.into(), sealed.as_str().into()]).await? > 0)
}

/// Uses a step up; false when it or a later one was used before.
///
/// # Errors
/// As any write.
pub async fn use_step(tx: &mut Conn, id: UserId, step: i64) -> Result<bool> {
    let sql = "UPDATE users SET totp_step = $2
        WHERE id = $1 AND totp_secret IS NOT NULL AND (totp_step IS NULL OR totp_step < $2)";
    Ok(tx.execute(sql, &[id.0.into(), step.into()]).await? > 0)
}

/// Does without a second factor.
///
/// # Errors
/// As any write.
pub async fn end_totp(tx: &mut Conn, id: UserId) -> Result<()> {
    let sql = "UPDATE users SET totp_secret = NULL, totp_step = NULL WHERE id = $1";
    tx.execute(sql, &[id.0.into()]).await.map(drop)
}

fn user(r: &Row<'_>, sealer: &Sealer) -> Result<User> {
    let id = UserId(r.uuid(0)?);
    let step = r.opt_int(4)?;
    let totp = |sealed: String| {
        let text = sealer.open(Place("users", &id.0), &sealed)?;
        let secret = TotpSecret::parse(&text).ok_or_else(|| Error::corrupt("bad second factor"))?;
        Ok(Totp { secret, step })
    };
    let totp = r.opt_text(3)?.map(totp).transpose()?;
    Ok(User { id, email: r.text(1)?, password: r.opt_text(2)?, totp })
}
