//! Idempotency keys: what a client already asked for, and what was made of it.

use crate::bulk::Bulk;
use crate::db::Conn;
use crate::error::Result;
use heliograph_domain::account::Mode;
use heliograph_domain::id::AccountId;
use heliograph_domain::time::Timestamp;
use uuid::Uuid;

/// The scope of a key, and the key.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Key {
    /// Whose.
    pub account: AccountId,
    /// In which mode.
    pub mode: Mode,
    /// For which method and path: the number of [`crate::idempotency::SEND_SMS`] and its like.
    pub route: i16,
    /// What the client wrote.
    pub key: String,
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

/// What a key stands for.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Record {
    /// SHA-256 of the request's body.
    pub fingerprint: Vec<u8>,
    /// The id of what was made.
    pub made: Uuid,
    /// What was answered, where that can't be rendered from what was made.
    pub answer: Option<String>,
}

const INSERT: Bulk = Bulk {
    each: "INSERT INTO idempotency (account, mode, route, key, fingerprint, made, created_at)
           VALUES ($1, $2, $3, $4, $5, $6, $7) ON CONFLICT DO NOTHING RETURNING made",
    all: "INSERT INTO idempotency (account, mode, route, key, fingerprint, made, created_at)
          SELECT * FROM unnest($1::bigint[], $2::smallint[], $3::smallint[], $4::text[], $5::bytea[], $6::uuid[],
            $7::bigint[])
          ORDER BY 1, 2, 3, 4 ON CONFLICT DO NOTHING RETURNING made",
};

/// Notes keys that are new; gives back what those make. The others were used before: see [`find`].
///
/// # Errors
/// [`crate::Error::Conflict`] when another node has used one and does not end its transaction in time.
pub async fn insert(
    tx: &mut Conn,
    keys: &[(&Key, &[u8; 32], Uuid)],
    at: Timestamp,
) -> Result<Vec<Uuid>> {
    let rows = keys.iter().map(|(k, fingerprint, made)| {
        [
            k.account.0.into(),
            k.mode.code().into(),
            k.route.into(),
            k.key.as_str().into(),
            crate::value::Value::Bytes(fingerprint.as_slice()),
            (*made).into(),
            at.into(),
        ]
    });
    tx.bulk_query(&INSERT, &rows.collect(), |r| r.uuid(0)).await
}

/// What a key stands for.
///
/// # Errors
/// As any read.
pub async fn find(conn: &mut Conn, key: &Key) -> Result<Option<Record>> {
    let sql = "SELECT fingerprint, made, answer FROM idempotency
        WHERE account = $1 AND mode = $2 AND route = $3 AND key = $4";
    let params =
        [key.account.0.into(), key.mode.code().into(), key.route.into(), key.key.as_str().into()];
    conn.query_one(sql, &params, |r| {
        Ok(Record { fingerprint: r.bytes(0)?, made: r.uuid(1)?, answer: r.opt_text(2)? })
    })
    .await
}

/// Notes a key together with what was answered; false when it was used before.
///
/// # Errors
/// As [`insert`].
pub async fn keep(
    tx: &mut Conn,
    (key, fingerprint): (&Key, &[u8; 32]),
    (made, answer): (Uuid, &str),
    at: Timestamp,
) -> Result<bool> {
    if insert(tx, &[(key, fingerprint, made)], at).await?.is_empty() {
        return Ok(false);
    }
    let sql = "UPDATE idempotency SET answer = $5
        WHERE account = $1 AND mode = $2 AND route = $3 AND key = $4";
    let params = [
        key.account.0.into(),
        key.mode.code().into(),
        key.route.into(),
        key.key.as_str().into(),
        answer.into(),
    ];
    tx.execute(sql, &params).await?;
    Ok(true)
}

const FORGET: Bulk = Bulk {
    each: "DELETE FROM idempotency WHERE account = $1 AND mode = $2 AND route = $3 AND key = $4",
    all: "DELETE FROM idempotency i
          USING unnest($1::bigint[], $2::smallint[], $3::smallint[], $4::text[]) AS v (account, mode, route, key)
          WHERE i.account = v.account AND i.mode = v.mode AND i.route = v.route AND i.key = v.key",
};

/// Frees keys whose request was refused after all.
///
/// # Errors
/// As any write.
pub async fn forget(tx: &mut Conn, keys: &[&Key]) -> Result<()> {
    let rows = keys
        .iter()
        .map(|k| [k.account.0.into(), k.mode.code().into(), k.route.into(), k.key.as_str().into()]);
    tx.bulk_execute(&FORGET, &rows.collect()).await.map(drop)
}

/// Drops the keys that are older than `before`; how many.
///
/// # Errors
/// As any write.
pub async fn drop_old(tx: &mut Conn, before: Timestamp) -> Result<u64> {
    tx.execute("DELETE FROM idempotency WHERE created_at < $1", &[before.into()]).await
}
