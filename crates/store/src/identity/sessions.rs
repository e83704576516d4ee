//! Dashboard sessions.

use crate::db::Conn;
use crate::db::field::Field;
use crate::db::record::{Record, columns, record};
use crate::db::row;
use crate::db::table::{Sql, Table, qualified};
use crate::error::StoreResult;
use heliograph_domain::account::{Mode, Role};
use heliograph_domain::id::{AccountId, OptoutListId, SessionId, UserId};
use heliograph_domain::money::Amount;
use heliograph_domain::secret::TokenHash;
use heliograph_domain::time::Timestamp;

record! {
    /// A session, without its token.
    #[derive(Clone, PartialEq, Eq, Debug)]
    pub struct Session {
        /// The session's id.
        pub id: SessionId,
        /// The user.
        pub user: UserId => user_id,
        /// The account that the session shows.
        pub account: AccountId,
        /// The mode that the session shows.
        pub mode: Mode,
        /// The time of the sign-in.
        pub created_at: Timestamp,
        /// The time of the last request, accurate to some minutes.
        pub seen_at: Timestamp,
        /// The IP address of the sign-in.
        pub address: String,
        /// The user agent of the sign-in.
        pub agent: String,
        /// True if the session began with a sign-in link that an operator created for somebody
        /// else.
        pub by_operator: bool,
    }
}

/// A session with what every page needs to know about its user and account.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SignedInSession {
    /// The session.
    pub session: Session,
    /// The user's email address.
    pub email: String,
    /// The user's name.
    pub name: Option<String>,
    /// True if the user is an operator of the installation.
    pub operator: bool,
    /// The user's role in the account.
    pub role: Role,
    /// The account's name.
    pub account_name: String,
    /// The account's currency, ISO 4217.
    pub currency: String,
    /// The account's available balance.
    pub available: Amount,
    /// The account's default opt-out list in the session's mode.
    pub optout_list: OptoutListId,
}

record! {
    /// The key of a session.
    struct SessionKey {
        hash: TokenHash,
    }
}

const SESSIONS: Table = Table { name: "sessions", key: SessionKey::COLUMNS };

static INSERT: Sql =
    Sql::new(|| SESSIONS.insert_one(&[SessionKey::COLUMNS, Session::COLUMNS].concat(), &[], ""));

/// Stores a session.
pub async fn insert(tx: &mut Conn, session: &Session, hash: &TokenHash) -> StoreResult<()> {
    let mut params = vec![hash.value()];
    session.push(&mut params);
    tx.execute(&INSERT, &params).await.map(drop)
}

static BY_HASH: Sql = Sql::new(|| {
    format!(
        "SELECT {}, u.email, u.name, u.operator, m.role, a.name, a.currency, a.available, l.id
         FROM sessions s JOIN users u ON u.id = s.user_id
         JOIN memberships m ON m.user_id = s.user_id AND m.account = s.account
         JOIN accounts a ON a.id = s.account
         JOIN optout_lists l ON l.account = s.account AND l.mode = s.mode AND l.is_default = 1
         WHERE s.hash = $1",
        qualified("s", Session::COLUMNS)
    )
});

/// Returns the session with this token hash, if its user is still a member of the account.
pub async fn by_hash(conn: &mut Conn, hash: &TokenHash) -> StoreResult<Option<SignedInSession>> {
    conn.query_one(&BY_HASH, &[hash.value()], |r| {
        Ok(SignedInSession {
            session: r.record()?,
            email: r.get()?,
            name: r.get()?,
            operator: r.get()?,
            role: r.get()?,
            account_name: r.get()?,
            currency: r.get()?,
            available: r.get()?,
            optout_list: r.get()?,
        })
    })
    .await
}

static LIST: Sql = Sql::new(|| {
    SESSIONS.select_by(columns!(Session: user => user_id), Session::COLUMNS, "id DESC")
});

/// Returns the sessions of a user, newest first.
pub async fn list(conn: &mut Conn, user: UserId) -> StoreResult<Vec<Session>> {
    conn.query(&LIST, &[user.value()], row::record).await
}

/// Returns the sessions that show an account, of members of it, that were used after `seen` and
/// began after `begun`.
pub async fn viewers(
    conn: &mut Conn,
    account: AccountId,
    seen: Timestamp,
    begun: Timestamp,
) -> StoreResult<Vec<SessionId>> {
    let sql = "SELECT s.id FROM sessions s
        JOIN memberships m ON m.user_id = s.user_id AND m.account = s.account
        WHERE s.account = $1 AND s.seen_at > $2 AND s.created_at > $3";
    conn.query(sql, &[account.value(), seen.value(), begun.value()], row::get).await
}

static SET_SEEN: Sql = Sql::new(|| SESSIONS.update_one(columns!(Session: seen_at)));

/// Records the time of a request.
pub async fn touch(tx: &mut Conn, hash: &TokenHash, at: Timestamp) -> StoreResult<()> {
    tx.execute(&SET_SEEN, &[hash.value(), at.value()]).await.map(drop)
}

/// Switches a session to another account or mode.
pub async fn set_account(
    tx: &mut Conn,
    (user, id): (UserId, SessionId),
    (account, mode): (AccountId, Mode),
) -> StoreResult<()> {
    let sql = "UPDATE sessions SET account = $3, mode = $4 WHERE user_id = $1 AND id = $2";
    let params = [user.value(), id.value(), account.value(), mode.value()];
    tx.execute(sql, &params).await.map(drop)
}

static DELETE: Sql = Sql::new(|| SESSIONS.delete_by(columns!(Session: user => user_id, id)));

/// Deletes a session of a user. Returns whether it existed.
pub async fn delete(tx: &mut Conn, user: UserId, id: SessionId) -> StoreResult<bool> {
    Ok(tx.execute(&DELETE, &[user.value(), id.value()]).await? > 0)
}

/// Deletes all sessions of a user except `keep` and returns how many there were.
pub async fn delete_others(
    tx: &mut Conn,
    user: UserId,
    keep: Option<SessionId>,
) -> StoreResult<u64> {
    let sql = "DELETE FROM sessions WHERE user_id = $1 AND id <> $2";
    let keep = keep.map_or(uuid::Uuid::nil(), |k| k.0);
    tx.execute(sql, &[user.value(), keep.value()]).await
}

/// Deletes the sessions that were last used before `seen` or began before `begun`.
pub async fn delete_expired(tx: &mut Conn, seen: Timestamp, begun: Timestamp) -> StoreResult<u64> {
    let sql = "DELETE FROM sessions WHERE seen_at < $1 OR created_at < $2";
    tx.execute(sql, &[seen.value(), begun.value()]).await
}
