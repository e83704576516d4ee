//! Idempotency keys, with what their requests created and the stored answers for a replay.

use crate::db::Conn;
use crate::db::bulk::Bulk;
use crate::db::field::Field;
use crate::db::record::{Record, columns, record};
use crate::db::row;
use crate::db::table::{Sql, Table};
use crate::error::StoreResult;
use heliograph_domain::account::Mode;
use heliograph_domain::id::AccountId;
use heliograph_domain::time::Timestamp;
use std::sync::LazyLock;
use uuid::Uuid;

record! {
    /// An idempotency key with its scope. The same key in another scope is another key.
    #[derive(Clone, PartialEq, Eq, Hash, Debug)]
    pub struct ScopedKey {
        /// The account.
        pub account: AccountId,
        /// Live or test mode.
        pub mode: Mode,
        /// The method and path: [`SEND_SMS`] or another number of this module.
        pub route: i16,
        /// The key that the client sent.
        pub key: String,
    }
}

/// `POST /v1/send/sms`.
pub const SEND_SMS: i16 = 1;

/// `POST /v1/optout-lists`.
pub const OPTOUT_LISTS: i16 = 2;
/// `POST /v1/optout-lists/{id}/numbers`.
pub const OPTOUT_NUMBERS: i16 = 3;
/// `POST /v1/optout-lists/{id}/numbers/import`.
pub const OPTOUT_IMPORT: i16 = 4;

/// `POST /settings/api-keys`, in the dashboard.
pub const API_KEYS: i16 = 10;
/// `POST /settings/webhooks`, in the dashboard.
pub const ENDPOINTS: i16 = 11;
/// `POST /settings/webhooks/{id}/replay`, in the dashboard.
pub const REPLAYS: i16 = 12;
/// `POST /settings/webhooks/{id}/rotate`, in the dashboard.
pub const ROTATIONS: i16 = 13;

record! {
    /// The stored result of the first request with a key.
    #[derive(Clone, PartialEq, Eq, Debug)]
    pub struct IdempotencyRecord {
        /// The SHA-256 hash of the request body.
        pub fingerprint: Vec<u8>,
        /// The id of the resource that the request created.
        pub resource: Uuid,
        /// The stored answer, where it cannot be rendered again from the resource.
        pub response: Option<String>,
    }
}

record! {
    /// The column that retention uses.
    struct Age {
        created_at: Timestamp,
    }
}

const IDEMPOTENCY: Table = Table { name: "idempotency", key: ScopedKey::COLUMNS };

static INSERT: LazyLock<Bulk> = LazyLock::new(|| {
    let record = columns!(IdempotencyRecord: fingerprint, resource);
    let columns = [IDEMPOTENCY.key, record, Age::COLUMNS].concat();
    let Bulk { each, all } =
        IDEMPOTENCY.insert(&columns, &[], "ON CONFLICT DO NOTHING RETURNING resource");
    // All nodes insert in the order of the keys, so that they never deadlock.
    Bulk::new(each, all.replace("ON CONFLICT", "ORDER BY 1, 2, 3, 4 ON CONFLICT"))
});

/// Stores keys that are new and returns their resources. The other keys were used before: see
/// [`find`].
///
/// # Errors
/// [`crate::StoreError::Conflict`] when another node has used a key and does not end its
/// transaction in time.
pub async fn insert(
    tx: &mut Conn,
    keys: &[(&ScopedKey, &[u8; 32], Uuid)],
    at: Timestamp,
) -> StoreResult<Vec<Uuid>> {
    let rows = keys.iter().map(|(k, fingerprint, resource)| {
        [
            k.account.value(),
            k.mode.value(),
            k.route.value(),
            k.key.value(),
            fingerprint.value(),
            resource.value(),
            at.value(),
        ]
    });
    tx.bulk_query(&INSERT, &rows.collect(), row::get).await
}

static FIND: Sql = Sql::new(|| IDEMPOTENCY.select_one(IdempotencyRecord::COLUMNS));

/// Returns the stored result of a key.
pub async fn find(conn: &mut Conn, key: &ScopedKey) -> StoreResult<Option<IdempotencyRecord>> {
    conn.query_one(&FIND, &key.values(), row::record).await
}

static SET_RESPONSE: Sql =
    Sql::new(|| IDEMPOTENCY.update_one(columns!(IdempotencyRecord: response)));

/// Stores a key with the answer to its request. False when the key was used before.
pub async fn insert_with_response(
    tx: &mut Conn,
    (key, fingerprint): (&ScopedKey, &[u8; 32]),
    (resource, response): (Uuid, &str),
    at: Timestamp,
) -> StoreResult<bool> {
    if insert(tx, &[(key, fingerprint, resource)], at).await?.is_empty() {
        return Ok(false);
    }
    let mut params = key.values();
    params.push(response.into());
    tx.execute(&SET_RESPONSE, &params).await?;
    Ok(true)
}

static DELETE: LazyLock<Bulk> = LazyLock::new(|| IDEMPOTENCY.delete());

/// Deletes keys whose request was rejected after all.
pub async fn delete(tx: &mut Conn, keys: &[&ScopedKey]) -> StoreResult<()> {
    let rows =
        keys.iter().map(|k| [k.account.value(), k.mode.value(), k.route.value(), k.key.value()]);
    tx.bulk_execute(&DELETE, &rows.collect()).await.map(drop)
}

/// Deletes the keys that are older than `before` and returns how many there were.
pub async fn delete_older_than(tx: &mut Conn, before: Timestamp) -> StoreResult<u64> {
    tx.execute("DELETE FROM idempotency WHERE created_at < $1", &[before.value()]).await
}
