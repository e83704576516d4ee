//! Invitations: people who were asked to join an account.

use crate::db::Conn;
use crate::error::{Error, Result};
use crate::row::Row;
use crate::value::Value;
use heliograph_domain::account::Role;
use heliograph_domain::id::{AccountId, InvitationId};
use heliograph_domain::secret::TokenHash;
use heliograph_domain::time::Timestamp;

/// An invitation, less its secret.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Invitation {
    /// Its id.
    pub id: InvitationId,
    /// To which account.
    pub account: AccountId,
    /// Who is asked, lower-case.
    pub email: String,
    /// What they will be.
    pub role: Role,
    /// When they were asked.
    pub created_at: Timestamp,
    /// From when on it does not hold any more.
    pub expires_at: Timestamp,
}

/// Keeps an invitation, in the place of any other of this person to this account.
///
/// # Errors
/// As any write.
pub async fn insert(tx: &mut Conn, i: &Invitation, hash: &TokenHash) -> Result<()> {
    let sql = "DELETE FROM invitations WHERE account = $1 AND email = $2 AND expires_at > $3";
    let params = [i.account.0.into(), i.email.as_str().into(), i.created_at.into()];
    tx.execute(sql, &params).await?;
    let sql = "INSERT INTO invitations (hash, id, account, email, role, created_at, expires_at)
        VALUES ($1, $2, $3, $4, $5, $6, $7)";
    let params = [
        Value::Bytes(hash),
        i.id.0.into(),
        i.account.0.into(),
        i.email.as_str().into(),
        i.role.code().into(),
        i.created_at.into(),
        i.expires_at.into(),
    ];
    tx.execute(sql, &params).await.map(drop)
}

/// The invitations of an account, the oldest first.
///
/// # Errors
/// As any read.
pub async fn of(conn: &mut Conn, account: AccountId) -> Result<Vec<Invitation>> {
    let sql = "SELECT id, account, email, role, created_at, expires_at FROM invitations
        WHERE account = $1 ORDER BY id";
    conn.query(sql, &[account.0.into()], invitation).await
}

/// The invitation with this secret, and what the account is called.
///
/// # Errors
/// As any read.
pub async fn by_hash(conn: &mut Conn, hash: &TokenHash) -> Result<Option<(Invitation, String)>> {
    let sql = "SELECT i.id, i.account, i.email, i.role, i.created_at, i.expires_at, a.name
        FROM invitations i JOIN accounts a ON a.id = i.account WHERE i.hash = $1";
    conn.query_one(sql, &[Value::Bytes(hash)], |r| Ok((invitation(r)?, r.text(6)?))).await
}

/// Takes an invitation back; who was asked. Its row stays until it is swept away, so that the same form, sent again,
/// does not bring it back.
///
/// # Errors
/// As any write.
pub async fn withdraw(
    tx: &mut Conn,
    account: AccountId,
    id: InvitationId,
) -> Result<Option<String>> {
    let sql = "UPDATE invitations SET expires_at = created_at WHERE account = $1 AND id = $2
        AND expires_at > created_at RETURNING email";
    tx.query_one(sql, &[account.0.into(), id.0.into()], |r| r.text(0)).await
}

/// Uses an invitation up; who was asked.
///
/// # Errors
/// As any write.
pub async fn remove(tx: &mut Conn, account: AccountId, id: InvitationId) -> Result<Option<String>> {
    let sql = "DELETE FROM invitations WHERE account = $1 AND id = $2 RETURNING email";
    tx.query_one(sql, &[account.0.into(), id.0.into()], |r| r.text(0)).await
}

/// Takes away those whose time is over.
///
/// # Errors
/// As any write.
pub async fn expire(tx: &mut Conn, now: Timestamp) -> Result<u64> {
    tx.execute("DELETE FROM invitations WHERE expires_at <= $1", &[now.into()]).await
}

fn invitation(r: &Row<'_>) -> Result<Invitation> {
    Ok(Invitation {
        id: InvitationId(r.uuid(0)?),
        account: AccountId(r.int(1)?),
        email: r.text(2)?,
        role: Role::from_code(r.small(3)?).ok_or_else(|| Error::corrupt("unknown role"))?,
        created_at: r.time(4)?,
        expires_at: r.time(5)?,
    })
}
