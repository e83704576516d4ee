//! Links that let one person in, one time.

use crate::db::Conn;
use crate::error::{Error, Result};
use crate::row::Row;
use crate::value::Value;
use heliograph_domain::id::UserId;
use heliograph_domain::secret::TokenHash;
use heliograph_domain::time::Timestamp;

/// What a link is for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// Signs in.
    SignIn,
    /// Sets a new password.
    Reset,
    /// Goes on with the second factor, after the password was right.
    SecondFactor,
}

impl Kind {
    const fn code(self) -> i16 {
        match self {
            Self::SignIn => 0,
            Self::Reset => 1,
            Self::SecondFactor => 2,
        }
    }

    const fn from_code(code: i16) -> Option<Self> {
        match code {
            0 => Some(Self::SignIn),
            1 => Some(Self::Reset),
            2 => Some(Self::SecondFactor),
            _ => None,
        }
    }
}

/// A link, less its secret.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct OneTimeLink {
    /// Whom it lets in.
    pub user: UserId,
    /// What it is for.
    pub kind: Kind,
    /// When it was made.
    pub created_at: Timestamp,
    /// From when on it does not work any more.
    pub expires_at: Timestamp,
}

/// Keeps a link.
///
/// # Errors
/// As any write.
pub async fn insert(tx: &mut Conn, link: &OneTimeLink, hash: &TokenHash) -> Result<()> {
    let sql = "INSERT INTO one_time_links (hash, member, kind, created_at, expires_at)
        VALUES ($1, $2, $3, $4, $5)";
    let params = [
        Value::Bytes(hash),
        link.user.0.into(),
        link.kind.code().into(),
        link.created_at.into(),
        link.expires_at.into(),
    ];
    tx.execute(sql, &params).await.map(drop)
}

/// The link with this secret.
///
/// # Errors
/// As any read.
pub async fn by_hash(conn: &mut Conn, hash: &TokenHash) -> Result<Option<OneTimeLink>> {
    let sql = "SELECT member, kind, created_at, expires_at FROM one_time_links WHERE hash = $1";
    conn.query_one(sql, &[Value::Bytes(hash)], link).await
}

/// Uses a link up; `None` when there is none such, or it was used before.
///
/// # Errors
/// As any write.
pub async fn take(tx: &mut Conn, hash: &TokenHash) -> Result<Option<OneTimeLink>> {
    let sql =
        "DELETE FROM one_time_links WHERE hash = $1 RETURNING member, kind, created_at, expires_at";
    tx.query_one(sql, &[Value::Bytes(hash)], link).await
}

/// Takes away all of a person's links: after one was used, or the password changed.
///
/// # Errors
/// As any write.
pub async fn remove_of(tx: &mut Conn, user: UserId) -> Result<u64> {
    tx.execute("DELETE FROM one_time_links WHERE member = $1", &[user.0.into()]).await
}

/// Takes away links whose time is over.
///
/// # Errors
/// As any write.
pub async fn expire(tx: &mut Conn, now: Timestamp) -> Result<u64> {
    tx.execute("DELETE FROM one_time_links WHERE expires_at <= $1", &[now.into()]).await
}

fn link(r: &Row<'_>) -> Result<OneTimeLink> {
    Ok(OneTimeLink {
        user: UserId(r.uuid(0)?),
        kind: Kind::from_code(r.small(1)?).ok_or_else(|| Error::corrupt("unknown link"))?,
        created_at: r.time(2)?,
        expires_at: r.time(3)?,
    })
}
