//! Recovery codes for two-factor authentication. Only hashes are stored, and each code works once.

use crate::db::Conn;
use crate::db::bulk::{Bulk, Rows};
use crate::db::field::Field;
use crate::db::record::{Record, columns, record};
use crate::db::row;
use crate::db::table::{Sql, Table};
use crate::error::StoreResult;
use heliograph_domain::id::UserId;
use heliograph_domain::recovery::CodeHash;
use std::sync::LazyLock;

record! {
    /// A row of `recovery_codes`.
    struct RecoveryCodeRow {
        user: UserId => user_id,
        hash: CodeHash,
    }
}

const RECOVERY_CODES: Table =
    Table { name: "recovery_codes", key: columns!(RecoveryCodeRow: user => user_id, hash) };

static INSERT: LazyLock<Bulk> =
    LazyLock::new(|| RECOVERY_CODES.insert(RecoveryCodeRow::COLUMNS, &[], ""));

static DELETE_ALL: Sql =
    Sql::new(|| RECOVERY_CODES.delete_by(columns!(RecoveryCodeRow: user => user_id)));

/// Replaces all codes of a user.
pub async fn replace(tx: &mut Conn, user: UserId, hashes: &[CodeHash]) -> StoreResult<()> {
    tx.execute(&DELETE_ALL, &[user.value()]).await?;
    let codes: Vec<_> = hashes.iter().map(|hash| RecoveryCodeRow { user, hash: *hash }).collect();
    tx.bulk_execute(&INSERT, &Rows::of(codes.iter())).await.map(drop)
}

static DELETE: Sql = Sql::new(|| RECOVERY_CODES.delete_one());

/// Uses up a code. False when the code does not exist or was used before.
pub async fn consume(tx: &mut Conn, user: UserId, hash: &CodeHash) -> StoreResult<bool> {
    Ok(tx.execute(&DELETE, &[user.value(), hash.value()]).await? > 0)
}

/// Returns the number of codes that a user has left.
pub async fn count(conn: &mut Conn, user: UserId) -> StoreResult<i64> {
    let sql = "SELECT count(*) FROM recovery_codes WHERE user_id = $1";
    Ok(conn.query_one(sql, &[user.value()], row::get).await?.unwrap_or(0))
}
