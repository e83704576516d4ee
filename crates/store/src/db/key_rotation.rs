//! Replaces the sealing key: opens every sealed value with the old key and seals it with the new
//! one.

use crate::db::conn::Conn;
use crate::db::field::Field;
use crate::db::installation;
use crate::db::sealing::{Place, Sealer, SealingKey};
use crate::db::value::Value;
use crate::error::StoreResult;
use std::fmt::Display;
use uuid::Uuid;

/// The old key, with which the database is open, and the new one.
struct Keys<'a> {
    old: &'a Sealer,
    new: &'a Sealer,
}

/// Seals all secrets with `new` and returns their number. The caller stores the new key before the
/// commit, and no other process may use the database.
///
/// # Errors
/// [`crate::StoreError::Corrupt`] when a secret cannot be opened with the old key.
pub async fn rotate_sealing_key(tx: &mut Conn, new: &SealingKey) -> StoreResult<u64> {
    let (old, new) = (tx.sealer()?, Sealer::new(new)?);
    let keys = Keys { old: &old, new: &new };
    let mut count = 0;
    for column in ["secret", "old_secret"] {
        count += reseal::<i32>(tx, &keys, "endpoints", column).await?;
    }
    count += reseal::<Uuid>(tx, &keys, "users", "totp_secret").await?;
    count += reseal::<Uuid>(tx, &keys, "mails", "content").await?;
    installation::replace_proof(tx, &new).await?;
    Ok(count)
}

/// Seals the values of a column again; the key of the table is `id`.
async fn reseal<K: Field + Display + Sync + Send>(
    tx: &mut Conn,
    keys: &Keys<'_>,
    table: &'static str,
    column: &str,
) -> StoreResult<u64> {
    let sql = format!("SELECT id, {column} FROM {table} WHERE {column} IS NOT NULL ORDER BY id");
    let rows: Vec<(K, String)> = tx.query_made(&sql, &[], |r| Ok((r.get()?, r.get()?))).await?;
    let sql = format!("UPDATE {table} SET {column} = $2 WHERE id = $1");
    for (id, sealed) in &rows {
        let place = Place(table, id);
        let sealed = keys.new.seal(place, &keys.old.open(place, sealed)?)?;
        let params: [Value<'_>; 2] = [id.value(), sealed.value()];
        tx.execute_made(&sql, &params).await?;
    }
    Ok(rows.len() as u64)
}
