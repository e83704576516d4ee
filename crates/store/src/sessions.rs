//! Sessions: who is signed in, from where, and what they look at.

use crate::db::Conn;
use crate::error::{Error, Result};
use crate::row::Row;
use crate::value::Value;
use heliograph_domain::account::{Mode, Role};
use heliograph_domain::id::{AccountId, OptoutListId, SessionId, UserId};
use heliograph_domain::money::Amount;
use heliograph_domain::secret::TokenHash;
use heliograph_domain::time::Timestamp;

/// A session as its owner sees it in a list.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Session {
    /// Its id.
    pub id: SessionId,
    /// Whose.
    pub user: UserId,
    /// The account that is looked at.
    pub account: AccountId,
    /// The world that is looked at.
    pub mode: Mode,
    /// When its owner signed in.
    pub created_at: Timestamp,
    /// When its owner last asked for something, within some minutes.
    pub seen_at: Timestamp,
    /// The address from which they signed in.
    pub address: String,
    /// What their browser calls itself.
    pub agent: String,
}

/// A session with all that a page needs to know of who looks at it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Signed {
    /// The session.
    pub session: Session,
    /// The person's address.
    pub email: String,
    /// The person's name, if they gave one.
    pub name: Option<String>,
    /// The person operates the installation.
    pub operator: bool,
    /// What the person may do in the account.
    pub role: Role,
    /// What the account is called.
    pub account_name: String,
    /// Its currency, ISO 4217.
    pub currency: String,
    /// What it can spend.
    pub available: Amount,
    /// Its default opt-out list in the session's mode.
    pub optout_list: OptoutListId,
}

/// Begins a session.
///
/// # Errors
/// As any write.
pub async fn insert(tx: &mut Conn, s: &Session, hash: &TokenHash) -> Result<()> {
    let sql = "INSERT INTO sessions (hash, id, member, account, mode, created_at, seen_at, address, agent)
        VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)";
    let params = [
        Value::Bytes(hash),
        s.id.0.into(),
        s.user.0.into(),
        s.account.0.into(),
        s.mode.code().into(),
        s.created_at.into(),
        s.seen_at.into(),
        s.address.as_str().into(),
        s.agent.as_str().into(),
    ];
    tx.execute(sql, &params).await.map(drop)
}

/// The session with this secret, if its owner still belongs to the account.
///
/// # Errors
/// As any read.
pub async fn by_hash(conn: &mut Conn, hash: &TokenHash) -> Result<Option<Signed>> {
    let sql =
        "SELECT s.id, s.member, s.account, s.mode, s.created_at, s.seen_at, s.address, s.agent,
            u.email, u.name, u.operator, m.role, a.name, a.currency, a.available, l.id
        FROM sessions s JOIN users u ON u.id = s.member
        JOIN memberships m ON m.member = s.member AND m.account = s.account
        JOIN accounts a ON a.id = s.account
        JOIN optout_lists l ON l.account = s.account AND l.mode = s.mode AND l.standard = 1
        WHERE s.hash = $1";
    conn.query_one(sql, &[Value::Bytes(hash)], signed).await
}

/// A person's sessions, the newest first.
///
/// # Errors
/// As any read.
pub async fn of(conn: &mut Conn, user: UserId) -> Result<Vec<Session>> {
    let sql = "SELECT id, member, account, mode, created_at, seen_at, address, agent FROM sessions
        WHERE member = $1 ORDER BY id DESC";
    conn.query(sql, &[user.0.into()], session).await
}

/// Notes that its owner is there.
///
/// # Errors
/// As any write.
pub async fn seen(tx: &mut Conn, hash: &TokenHash, at: Timestamp) -> Result<()> {
    let sql = "UPDATE sessions SET seen_at = $2 WHERE hash = $1";
    tx.execute(sql, &[Value::Bytes(hash), at.into()]).await.map(drop)
}

/// Notes which account and which world its owner looks at.
///
/// # Errors
/// As any write.
pub async fn look_at(
    tx: &mut Conn,
    (user, id): (UserId, SessionId),
    (account, mode): (AccountId, Mode),
) -> Result<()> {
    let sql = "UPDATE sessions SET account = $3, mode = $4 WHERE member = $1 AND id = $2";
    let params = [user.0.into(), id.0.into(), account.0.into(), mode.code().into()];
    tx.execute(sql, &params).await.map(drop)
}

/// Ends one of a person's sessions; whether there was such a one.
///
/// # Errors
/// As any write.
pub async fn end(tx: &mut Conn, user: UserId, id: SessionId) -> Result<bool> {
    let sql = "DELETE FROM sessions WHERE member = $1 AND id = $2";
    Ok(tx.execute(sql, &[user.0.into(), id.0.into()]).await? > 0)
}

/// Ends all of a person's sessions but `keep`; how many.
///
/// # Errors
/// As any write.
pub async fn end_others(tx: &mut Conn, user: UserId, keep: Option<SessionId>) -> Result<u64> {
    let sql = "DELETE FROM sessions WHERE member = $1 AND id <> $2";
    let keep = keep.map_or(uuid::Uuid::nil(), |k| k.0);
    tx.execute(sql, &[user.0.into(), keep.into()]).await
}

/// Takes away sessions whose owners have not been there since `seen`, or that began before `begun`.
///
/// # Errors
/// As any write.
pub async fn expire(tx: &mut Conn, seen: Timestamp, begun: Timestamp) -> Result<u64> {
    let sql = "DELETE FROM sessions WHERE seen_at < $1 OR created_at < $2";
    tx.execute(sql, &[seen.into(), begun.into()]).await
}

fn session(r: &Row<'_>) -> Result<Session> {
    Ok(Session {
        id: SessionId(r.uuid(0)?),
        user: UserId(r.uuid(1)?),
        account: AccountId(r.int(2)?),
        mode: Mode::from_code(r.small(3)?).ok_or_else(|| Error::corrupt("unknown mode"))?,
        created_at: r.time(4)?,
        seen_at: r.time(5)?,
        address: r.text(6)?,
        agent: r.text(7)?,
    })
}

fn signed(r: &Row<'_>) -> Result<Signed> {
    Ok(Signed {
        session: session(r)?,
        email: r.text(8)?,
        name: r.opt_text(9)?,
        operator: r.int(10)? != 0,
        role: Role::from_code(r.small(11)?).ok_or_else(|| Error::corrupt("unknown role"))?,
        account_name: r.text(12)?,
        currency: r.text(13)?,
        available: Amount(r.int(14)?),
        optout_list: OptoutListId(r.uuid(15)?),
    })
}
