//! API keys. Only their hashes are stored.

use crate::db::Conn;
use crate::db::bulk::{Bulk, BulkQuery};
use crate::db::field::Field;
use crate::db::record::{Column, Record, columns, record};
use crate::db::row::{self, Row};
use crate::db::table::{Sql, Table, names, qualified};
use crate::error::StoreResult;
use heliograph_domain::account::{Mode, Scopes};
use heliograph_domain::id::{AccountId, ApiKeyId, OptoutListId};
use heliograph_domain::secret::KeyHash;
use heliograph_domain::time::Timestamp;
use std::sync::LazyLock;

record! {
    /// An API key, without its hash.
    #[derive(Clone, PartialEq, Eq, Debug)]
    pub struct ApiKeyRecord {
        /// The key's id.
        pub id: ApiKeyId,
        /// The account.
        pub account: AccountId,
        /// The mode that the key has access to.
        pub mode: Mode,
        /// The permissions.
        pub scopes: Scopes,
        /// The name that the owner gave the key.
        pub name: String,
        /// The beginning of the key, by which its owner recognizes it.
        pub prefix: String,
        /// The time at which the key was created.
        pub created_at: Timestamp,
        /// The time at which the key was revoked.
        pub revoked_at: Option<Timestamp>,
        /// The time of the last request with the key, accurate to some seconds.
        pub last_used_at: Option<Timestamp>,
    }
}

const API_KEYS: Table = Table { name: "api_keys", key: columns!(ApiKeyRecord: id) };

static INSERT: Sql = Sql::new(|| {
    let hash = Column::parameter::<KeyHash>("hash");
    API_KEYS.insert_one(&[&[hash], ApiKeyRecord::COLUMNS].concat(), &[], "")
});

/// Stores a new key.
pub async fn insert(tx: &mut Conn, key: &ApiKeyRecord, hash: &KeyHash) -> StoreResult<()> {
    let mut params = vec![hash.value()];
    key.push(&mut params);
    tx.execute(&INSERT, &params).await.map(drop)
}

static BY_HASH: Sql = Sql::new(|| {
    format!(
        "SELECT {}, a.currency, l.id
         FROM api_keys k JOIN accounts a ON a.id = k.account
         JOIN optout_lists l ON l.account = k.account AND l.mode = k.mode AND l.is_default = 1
         WHERE k.hash = $1",
        qualified("k", ApiKeyRecord::COLUMNS)
    )
});

/// Returns the key with this hash, revoked or not, with its account's currency and default opt-out
/// list.
pub async fn by_hash(
    conn: &mut Conn,
    hash: &KeyHash,
) -> StoreResult<Option<(ApiKeyRecord, String, OptoutListId)>> {
    let read = |r: &mut Row<'_>| Ok((r.record()?, r.get()?, r.get()?));
    conn.query_one(&BY_HASH, &[hash.value()], read).await
}

static LIST: Sql =
    Sql::new(|| API_KEYS.select_by(columns!(ApiKeyRecord: account), ApiKeyRecord::COLUMNS, "id"));

/// Returns the keys of an account, oldest first.
pub async fn list(conn: &mut Conn, account: AccountId) -> StoreResult<Vec<ApiKeyRecord>> {
    conn.query(&LIST, &[account.value()], row::record).await
}

static NEWEST: Sql = Sql::new(|| {
    format!(
        "SELECT {} FROM api_keys
         WHERE account = $1 AND (revoked_at IS NOT NULL) = ($2 = 1) ORDER BY id DESC LIMIT $3",
        names(ApiKeyRecord::COLUMNS)
    )
});

/// Returns the newest `limit` keys of an account that are valid, or that were revoked.
pub async fn newest(
    conn: &mut Conn,
    account: AccountId,
    revoked: bool,
    limit: i64,
) -> StoreResult<Vec<ApiKeyRecord>> {
    conn.query(&NEWEST, &[account.value(), revoked.value(), limit.into()], row::record).await
}

static OWNER: Sql = Sql::new(|| API_KEYS.select_one(columns!(ApiKeyRecord: account)));

/// Returns the account of a key, for the operator.
pub async fn owner(conn: &mut Conn, id: ApiKeyId) -> StoreResult<Option<AccountId>> {
    conn.query_one(&OWNER, &[id.value()], row::get).await
}

static NAME: Sql = Sql::new(|| {
    API_KEYS.select_by(columns!(ApiKeyRecord: account, id), columns!(ApiKeyRecord: name), "")
});

/// Returns the name of an account's key, revoked or not.
pub async fn name(
    conn: &mut Conn,
    account: AccountId,
    id: ApiKeyId,
) -> StoreResult<Option<String>> {
    conn.query_one(&NAME, &[account.value(), id.value()], row::get).await
}

/// Revokes a key of an account from `at` on and returns its name. `None` when the key does not
/// exist or was revoked before.
pub async fn revoke(
    tx: &mut Conn,
    (account, id): (AccountId, ApiKeyId),
    at: Timestamp,
) -> StoreResult<Option<String>> {
    let sql = "UPDATE api_keys SET revoked_at = $3
        WHERE account = $1 AND id = $2 AND revoked_at IS NULL RETURNING name";
    tx.query_one(sql, &[account.value(), id.value(), at.value()], row::get).await
}

/// Revokes all keys of an account from `at` on and returns their number.
pub async fn revoke_all(tx: &mut Conn, account: AccountId, at: Timestamp) -> StoreResult<u64> {
    let sql = "UPDATE api_keys SET revoked_at = $2 WHERE account = $1 AND revoked_at IS NULL";
    tx.execute(sql, &[account.value(), at.value()]).await
}

static RECORD_USE: LazyLock<Bulk> = LazyLock::new(|| {
    Bulk::new(
        "UPDATE api_keys SET last_used_at = $2
         WHERE id = $1 AND coalesce(last_used_at, 0) < $2 AND (revoked_at IS NULL OR revoked_at > $2)",
        "UPDATE api_keys k SET last_used_at = v.at
         FROM (SELECT * FROM unnest($1::uuid[], $2::bigint[]) AS u (id, at) ORDER BY id) AS v
         WHERE k.id = v.id AND coalesce(k.last_used_at, 0) < v.at AND (k.revoked_at IS NULL OR k.revoked_at > v.at)",
    )
});

/// Records the time of the last use of keys. A later time that is known already stays.
pub async fn record_use(tx: &mut Conn, all: &[(ApiKeyId, Timestamp)]) -> StoreResult<()> {
    let rows = all.iter().map(|(id, at)| [id.value(), at.value()]);
    tx.bulk_execute(&RECORD_USE, &rows.collect()).await.map(drop)
}

static VALID: LazyLock<Bulk> = LazyLock::new(|| {
    let Bulk { each, all } = API_KEYS.select(columns!(ApiKeyRecord: id, scopes));
    Bulk::new(format!("{each} AND revoked_at IS NULL"), format!("{all} WHERE t.revoked_at IS NULL"))
});

/// Queries which of these keys are valid now, with their permissions.
pub fn valid(ids: &[ApiKeyId]) -> BulkQuery<'static, (ApiKeyId, Scopes)> {
    let rows = ids.iter().map(|id| [id.0.into()]).collect();
    BulkQuery { bulk: &VALID, rows, read: |r| Ok((r.get()?, r.get()?)) }
}
