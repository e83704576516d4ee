//! Counters of emails per day, which limit them.

use crate::db::Conn;
use crate::db::field::Field;
use crate::db::row;
use crate::error::StoreResult;

/// Counts an email of a day since 1970 and returns the number of emails with this subject of the
/// count, including this one.
pub async fn add(tx: &mut Conn, day: i64, subject: &str) -> StoreResult<i64> {
    let sql = "INSERT INTO mail_counts (day, subject, sent) VALUES ($1, $2, 1)
        ON CONFLICT (day, subject) DO UPDATE SET sent = mail_counts.sent + 1 RETURNING sent";
    Ok(tx.query_one(sql, &[day.value(), subject.into()], row::get).await?.unwrap_or(i64::MAX))
}

/// Deletes the counters of the days before `day`.
pub async fn delete_before(tx: &mut Conn, day: i64) -> StoreResult<u64> {
    tx.execute("DELETE FROM mail_counts WHERE day < $1", &[day.value()]).await
}
