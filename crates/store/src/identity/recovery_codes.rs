//! Recovery codes for two-factor authentication. Only hashes are stored, and each code works once.

use crate::db::Conn;
use crate::db::field::Field;
use crate::db::row;
use crate::error::StoreResult;
use heliograph_domain::id::UserId;
use heliograph_domain::recovery::CodeHash;

/// Replaces all codes of a user.
pub async fn replace(tx: &mut Conn, user: UserId, hashes: &[CodeHash]) -> StoreResult<()> {
    tx.execute("DELETE FROM recovery_codes WHERE user_id = $1", &[user.value()]).await?;
    for hash in hashes {
        let sql = "INSERT INTO recovery_codes (user_id, hash) VALUES ($1, $2)";
        tx.execute(sql, &[user.value(), hash.value()]).await?;
    }
    Ok(())
}

/// Uses up a code. False when the code does not exist or was used before.
pub async fn consume(tx: &mut Conn, user: UserId, hash: &CodeHash) -> StoreResult<bool> {
    let sql = "DELETE FROM recovery_codes WHERE user_id = $1 AND hash = $2";
    Ok(tx.execute(sql, &[user.value(), hash.value()]).await? > 0)
}

/// Returns the number of codes that a user has left.
pub async fn count(conn: &mut Conn, user: UserId) -> StoreResult<i64> {
    let sql = "SELECT count(*) FROM recovery_codes WHERE user_id = $1";
    Ok(conn.query_one(sql, &[user.value()], row::get).await?.unwrap_or(0))
}
