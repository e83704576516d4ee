//! Recovery codes, as hashes: each lets its owner in once.

use crate::db::Conn;
use crate::error::Result;
use crate::value::Value;
use heliograph_domain::id::UserId;
use heliograph_domain::recovery::CodeHash;

/// Puts these in the place of all that a person has.
///
/// # Errors
/// As any write.
pub async fn replace(tx: &mut Conn, user: UserId, hashes: &[CodeHash]) -> Result<()> {
    tx.execute("DELETE FROM recovery_codes WHERE member = $1", &[user.0.into()]).await?;
    for hash in hashes {
        let sql = "INSERT INTO recovery_codes (member, hash) VALUES ($1, $2)";
        tx.execute(sql, &[user.0.into(), Value::Bytes(hash)]).await?;
    }
    Ok(())
}

/// Uses a code up; false when it is none, or was used before.
///
/// # Errors
/// As any write.
pub async fn take(tx: &mut Conn, user: UserId, hash: &CodeHash) -> Result<bool> {
    let sql = "DELETE FROM recovery_codes WHERE member = $1 AND hash = $2";
    Ok(tx.execute(sql, &[user.0.into(), Value::Bytes(hash)]).await? > 0)
}

/// How many a person has left.
///
/// # Errors
/// As any read.
pub async fn left(conn: &mut Conn, user: UserId) -> Result<i64> {
    let sql = "SELECT count(*) FROM recovery_codes WHERE member = $1";
    Ok(conn.query_one(sql, &[user.0.into()], |r| r.int(0)).await?.unwrap_or(0))
}
