//! API keys: only their hashes, and who may do what with them.

use crate::bulk::{Ask, Bulk};
use crate::db::Conn;
use crate::error::{Error, Result};
use crate::row::Row;
use crate::value::Value;
use heliograph_domain::account::{Mode, Scopes};
use heliograph_domain::id::{AccountId, ApiKeyId, OptoutListId};
use heliograph_domain::secret::KeyHash;
use heliograph_domain::time::Timestamp;

/// A key as it is stored.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ApiKey {
    /// Its id.
    pub id: ApiKeyId,
    /// Whose it is.
    pub account: AccountId,
    /// What it sees.
    pub mode: Mode,
    /// What it may do.
    pub scopes: Scopes,
    /// What its owner calls it.
    pub name: String,
    /// When it was made.
    pub created_at: Timestamp,
    /// When it was revoked.
    pub revoked_at: Option<Timestamp>,
    /// When a request came with it last, to some seconds.
    pub last_used_at: Option<Timestamp>,
}

/// Stores a new key.
///
/// # Errors
/// As any write.
pub async fn insert(tx: &mut Conn, key: &ApiKey, hash: &KeyHash) -> Result<()> {
    let sql = "INSERT INTO api_keys (id, account, mode, scopes, name, hash, created_at)
        VALUES ($1, $2, $3, $4, $5, $6, $7)";
    let params = [
        key.id.0.into(),
        key.account.0.into(),
        key.mode.code().into(),
        key.scopes.bits().into(),
        key.name.as_str().into(),
        Value::Bytes(hash),
        key.created_at.into(),
    ];
    tx.execute(sql, &params).await.map(drop)
}

/// The key with this hash, revoked or not, its account's currency and default opt-out list.
///
/// # Errors
/// As any read.
pub async fn by_hash(
    conn: &mut Conn,
    hash: &KeyHash,
) -> Result<Option<(ApiKey, String, OptoutListId)>> {
    let sql = "SELECT k.id, k.account, k.mode, k.scopes, k.name, k.created_at, k.revoked_at, k.last_used_at,
          a.currency, l.id
        FROM api_keys k JOIN accounts a ON a.id = k.account
        JOIN optout_lists l ON l.account = k.account AND l.mode = k.mode AND l.standard = 1
        WHERE k.hash = $1";
    let read = |r: &Row<'_>| Ok((key(r)?, r.text(8)?, OptoutListId(r.uuid(9)?)));
    conn.query_one(sql, &[Value::Bytes(hash)], read).await
}

/// The keys of an account, the oldest first.
///
/// # Errors
/// As any read.
pub async fn of(conn: &mut Conn, account: AccountId) -> Result<Vec<ApiKey>> {
    let sql =
        "SELECT id, account, mode, scopes, name, created_at, revoked_at, last_used_at FROM api_keys
        WHERE account = $1 ORDER BY id";
    conn.query(sql, &[account.0.into()], key).await
}

/// The newest keys of an account that are valid, or that were revoked; at most `limit`.
///
/// # Errors
/// As any read.
pub async fn newest(
    conn: &mut Conn,
    account: AccountId,
    revoked: bool,
    limit: i64,
) -> Result<Vec<ApiKey>> {
    let sql =
        "SELECT id, account, mode, scopes, name, created_at, revoked_at, last_used_at FROM api_keys
        WHERE account = $1 AND (revoked_at IS NOT NULL) = ($2 = 1) ORDER BY id DESC LIMIT $3";
    let params = [account.0.into(), i16::from(revoked).into(), limit.into()];
    conn.query(sql, &params, key).await
}

/// Whose a key is, for the operator.
///
/// # Errors
/// As any read.
pub async fn owner(conn: &mut Conn, id: ApiKeyId) -> Result<Option<AccountId>> {
    let sql = "SELECT account FROM api_keys WHERE id = $1";
    conn.query_one(sql, &[id.0.into()], |r| r.int(0).map(AccountId)).await
}

/// What an account called one of its keys, revoked or not.
///
/// # Errors
/// As any read.
pub async fn name(conn: &mut Conn, account: AccountId, id: ApiKeyId) -> Result<Option<String>> {
    let sql = "SELECT name FROM api_keys WHERE id = $1 AND account = $2";
    conn.query_one(sql, &[id.0.into(), account.0.into()], |r| r.text(0)).await
}

/// Revokes a key of an account from `at` on; what it is called, or nothing when there is no such key, or it was revoked
/// before.
///
/// # Errors
/// As any write.
pub async fn revoke(
    tx: &mut Conn,
    (account, id): (AccountId, ApiKeyId),
    at: Timestamp,
) -> Result<Option<String>> {
    let sql = "UPDATE api_keys SET revoked_at = $3
        WHERE account = $1 AND id = $2 AND revoked_at IS NULL RETURNING name";
    tx.query_one(sql, &[account.0.into(), id.0.into(), at.into()], |r| r.text(0)).await
}

const USED: Bulk = Bulk {
    each: "UPDATE api_keys SET last_used_at = $2
           WHERE id = $1 AND coalesce(last_used_at, 0) < $2 AND (revoked_at IS NULL OR revoked_at > $2)",
    all: "UPDATE api_keys k SET last_used_at = v.at
          FROM (SELECT * FROM unnest($1::uuid[], $2::bigint[]) AS u (id, at) ORDER BY id) AS v
          WHERE k.id = v.id AND coalesce(k.last_used_at, 0) < v.at AND (k.revoked_at IS NULL OR k.revoked_at > v.at)",
};

/// Notes when keys were used last; what is known to be later stays.
///
/// # Errors
/// As any write.
pub async fn used(tx: &mut Conn, all: &[(ApiKeyId, Timestamp)]) -> Result<()> {
    let rows = all.iter().map(|(id, at)| [id.0.into(), (*at).into()]);
    tx.bulk_execute(&USED, &rows.collect()).await.map(drop)
}

const VALID: Bulk = Bulk {
    each: "SELECT id, scopes FROM api_keys WHERE id = $1 AND revoked_at IS NULL",
    all: "SELECT k.id, k.scopes FROM unnest($1::uuid[]) AS v (id) JOIN api_keys k ON k.id = v.id
          WHERE k.revoked_at IS NULL",
};

/// Those of these keys that are valid now, with what they may do.
pub fn valid(ids: &[ApiKeyId]) -> Ask<'static, (ApiKeyId, Scopes), 1> {
    let rows = ids.iter().map(|id| [id.0.into()]).collect();
    let read = |r: &Row<'_>| Ok((ApiKeyId(r.uuid(0)?), Scopes::from_bits(r.small(1)?)));
    Ask { bulk: &VALID, rows, read }
}

fn key(r: &Row<'_>) -> Result<ApiKey> {
    Ok(ApiKey {
        id: ApiKeyId(r.uuid(0)?),
        account: AccountId(r.int(1)?),
        mode: Mode::from_code(r.small(2)?).ok_or_else(|| Error::corrupt("unknown mode"))?,
        scopes: Scopes::from_bits(r.small(3)?),
        name: r.text(4)?,
        created_at: r.time(5)?,
        revoked_at: r.opt_time(6)?,
        last_used_at: r.opt_time(7)?,
    })
}
