//! The parts of messages that have several: accepted by the carrier, and delivered.

use crate::db::Conn;
use crate::db::bulk::Bulk;
use crate::db::field::Field;
use crate::db::record::{Record, columns, record};
use crate::db::row::Row;
use crate::db::table::{Table, equals, joined, names, qualified, unnest};
use crate::db::value::Value;
use crate::error::StoreResult;
use heliograph_domain::id::{AccountId, MessageId, PartKey};
use std::sync::LazyLock;

record! {
    /// The key of a row of `parts`.
    struct PartColumns {
        account: AccountId,
        message: MessageId,
        part: u8,
    }
}

const PARTS: Table = Table { name: "parts", key: PartColumns::COLUMNS };

fn key((account, message, part): &PartKey) -> [Value<'_>; 3] {
    [account.value(), message.value(), part.value()]
}

fn read_key(r: &mut Row<'_>) -> StoreResult<PartKey> {
    let PartColumns { account, message, part } = r.record()?;
    Ok((account, message, part))
}

static RECORD_ACCEPTED: LazyLock<Bulk> = LazyLock::new(|| {
    let tail = format!("ON CONFLICT DO NOTHING RETURNING {}", names(PARTS.key));
    PARTS.insert(PARTS.key, &[("delivered", "0")], &tail)
});

/// Records parts that a carrier accepted and returns those that were not recorded before.
pub async fn record_accepted(tx: &mut Conn, parts: &[PartKey]) -> StoreResult<Vec<PartKey>> {
    tx.bulk_query(&RECORD_ACCEPTED, &parts.iter().map(key).collect(), read_key).await
}

static RECORD_DELIVERED: LazyLock<Bulk> = LazyLock::new(|| {
    Bulk::new(
        format!(
            "UPDATE parts SET delivered = 1 WHERE {} AND delivered = 0 RETURNING {}",
            equals(PARTS.key),
            names(PARTS.key)
        ),
        format!(
            "UPDATE parts p SET delivered = 1 FROM {} WHERE {} AND p.delivered = 0 RETURNING {}",
            unnest("v", PARTS.key),
            joined("p", "v", PARTS.key),
            qualified("p", PARTS.key)
        ),
    )
});

/// Records parts that were delivered and returns those that were not recorded as delivered before.
pub async fn record_delivered(tx: &mut Conn, parts: &[PartKey]) -> StoreResult<Vec<PartKey>> {
    tx.bulk_query(&RECORD_DELIVERED, &parts.iter().map(key).collect(), read_key).await
}

/// Records that all accepted parts of these messages were delivered.
pub async fn record_all_delivered(
    tx: &mut Conn,
    messages: &[(AccountId, MessageId)],
) -> StoreResult<()> {
    for (account, message) in messages {
        let sql = "UPDATE parts SET delivered = 1 WHERE account = $1 AND message = $2";
        tx.execute(sql, &[account.value(), message.value()]).await?;
    }
    Ok(())
}

/// The table by the first columns of its key.
const PARTS_OF_MESSAGE: Table =
    Table { name: PARTS.name, key: columns!(PartColumns: account, message) };

static ACCEPTED: LazyLock<Bulk> = LazyLock::new(|| PARTS_OF_MESSAGE.select(PARTS.key));

/// Returns the parts of these messages that the carrier has accepted.
pub async fn accepted(
    conn: &mut Conn,
    messages: &[(AccountId, MessageId)],
) -> StoreResult<Vec<PartKey>> {
    let rows = messages.iter().map(|(account, message)| [account.value(), message.value()]);
    conn.bulk_query(&ACCEPTED, &rows.collect(), read_key).await
}

/// Returns the parts of a message that the carrier has accepted, counted from 1, each with whether
/// it was delivered.
pub async fn list(
    conn: &mut Conn,
    account: AccountId,
    message: MessageId,
) -> StoreResult<Vec<(i16, bool)>> {
    let sql = "SELECT part, delivered FROM parts WHERE account = $1 AND message = $2 ORDER BY part";
    let params = [account.value(), message.value()];
    conn.query(sql, &params, |r| Ok((r.get()?, r.get()?))).await
}

static DELETE: LazyLock<Bulk> = LazyLock::new(|| PARTS_OF_MESSAGE.delete());

/// Deletes the parts of these messages of an account.
pub async fn delete(tx: &mut Conn, account: AccountId, messages: &[MessageId]) -> StoreResult<()> {
    let rows = messages.iter().map(|message| [account.value(), message.value()]);
    tx.pipeline(&DELETE, &rows.collect()).await
}
