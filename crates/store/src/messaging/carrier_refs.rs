//! Matching of submit responses and delivery receipts by the carrier's message id. Either can
//! arrive first.

use crate::db::Conn;
use crate::db::bulk::{Bulk, Rows};
use crate::db::field::Field;
use crate::db::record::{Column, Record, columns, record};
use crate::db::row::Row;
use crate::db::table::{Table, equals, joined, names, qualified, unnest};
use crate::db::value::Value;
use crate::error::{StoreError, StoreResult};
use heliograph_domain::id::{AccountId, CarrierId, MessageId, PartKey};
use heliograph_domain::phone::Recipient;
use heliograph_domain::receipt::{Receipt, ReceiptOutcome};
use heliograph_domain::time::Timestamp;
use std::collections::BTreeMap;
use std::sync::LazyLock;

/// A part that a carrier accepted, with the id that the carrier gave it.
#[derive(Clone, Debug)]
pub struct AcceptedPart {
    /// The carrier.
    pub carrier: CarrierId,
    /// The carrier's id of the part.
    pub smsc_id: String,
    /// The part.
    pub part: PartKey,
    /// The recipient, which the receipt must name too.
    pub recipient: Recipient,
}

/// A delivery receipt, with the carrier's id of the part.
#[derive(Clone, Debug)]
pub struct StoredReceipt {
    /// The carrier.
    pub carrier: CarrierId,
    /// The carrier's id of the part.
    pub smsc_id: String,
    /// The recipient.
    pub recipient: Recipient,
    /// The outcome.
    pub outcome: ReceiptOutcome,
}

record! {
    /// A row of `carrier_refs`. The part, the receipt or both are known.
    struct RefRow {
        carrier: CarrierId,
        smsc_id: String,
        account: Option<AccountId>,
        message: Option<MessageId>,
        part: Option<u8>,
        recipient: Recipient,
        receipt: Option<i16>,
        receipt_code: Option<String>,
        at: Timestamp,
    }
}

record! {
    /// The columns of a row whose part and receipt are both known, without `receipt`.
    struct MatchedRow {
        receipt_code: Option<String>,
        carrier: CarrierId,
        smsc_id: String,
        account: AccountId,
        message: MessageId,
        part: u8,
    }
}

/// The column list that [`matched`] reads.
fn matched_columns() -> String {
    format!("message, receipt, {}", names(MatchedRow::COLUMNS))
}

/// Reads a row; `None` unless both halves are known.
fn matched(r: &mut Row<'_>) -> StoreResult<Option<MatchedReceipt>> {
    let (message, receipt): (Option<MessageId>, Option<i16>) = (r.get()?, r.get()?);
    let (Some(_), Some(code)) = (message, receipt) else { return Ok(None) };
    let row: MatchedRow = r.record()?;
    let outcome = ReceiptOutcome::from_parts(code, row.receipt_code);
    Ok(Some(MatchedReceipt {
        smsc_id: row.smsc_id,
        carrier: row.carrier,
        part: (row.account, row.message, row.part),
        outcome: outcome.ok_or_else(|| StoreError::corrupt("unknown receipt"))?,
    }))
}

const REFS: Table = Table { name: "carrier_refs", key: columns!(RefRow: carrier, smsc_id) };

/// The columns of an accepted part.
const ACCEPTED: &[Column] =
    columns!(RefRow: carrier, smsc_id, account, message, part, recipient, at);

static RECORD_ACCEPTED: LazyLock<Bulk> = LazyLock::new(|| {
    let tail = format!(
        "ON CONFLICT (carrier, smsc_id) DO UPDATE SET account = excluded.account, message = excluded.message,
           part = excluded.part, recipient = excluded.recipient, at = excluded.at,
           receipt = CASE WHEN carrier_refs.recipient = excluded.recipient THEN carrier_refs.receipt END
         RETURNING {}",
        matched_columns()
    );
    REFS.insert(ACCEPTED, &[], &tail)
});

/// A part with its receipt.
#[derive(Clone, Debug)]
pub struct MatchedReceipt {
    /// The carrier's id of the part.
    pub smsc_id: String,
    /// The carrier.
    pub carrier: CarrierId,
    /// The part.
    pub part: PartKey,
    /// The outcome.
    pub outcome: ReceiptOutcome,
}

/// Records accepted parts and returns those whose receipt had arrived already. When a carrier uses
/// an id again, it names the newer part.
pub async fn record_accepted(
    tx: &mut Conn,
    accepted: &[AcceptedPart],
    at: Timestamp,
) -> StoreResult<Vec<MatchedReceipt>> {
    // PostgreSQL accepts each id once per statement, and one order on all nodes prevents deadlocks.
    let newest: BTreeMap<_, _> =
        accepted.iter().map(|a| ((a.carrier, a.smsc_id.as_str()), a)).collect();
    let rows = newest.values().map(|a| {
        let (account, message, part) = &a.part;
        [
            a.carrier.value(),
            a.smsc_id.value(),
            account.value(),
            message.value(),
            part.value(),
            a.recipient.value(),
            at.value(),
        ]
    });
    let found = tx.bulk_query(&RECORD_ACCEPTED, &rows.collect(), matched).await?;
    let matched: Vec<_> = found.into_iter().flatten().collect();
    delete(tx, &matched).await?;
    Ok(matched)
}

static DELETE: LazyLock<Bulk> = LazyLock::new(|| REFS.delete());

async fn delete(tx: &mut Conn, matched: &[MatchedReceipt]) -> StoreResult<()> {
    let rows = matched.iter().map(|m| [m.carrier.value(), m.smsc_id.value()]);
    tx.bulk_execute(&DELETE, &rows.collect()).await.map(drop)
}

static TAKE_MATCHING: LazyLock<Bulk> = LazyLock::new(|| {
    let by = columns!(RefRow: carrier, smsc_id, recipient);
    let returned = columns!(RefRow: carrier, smsc_id, account, message, part);
    Bulk::new(
        format!(
            "DELETE FROM carrier_refs
             WHERE carrier = $1 AND smsc_id = $2 AND recipient = $3 AND message IS NOT NULL RETURNING {}",
            names(returned)
        ),
        format!(
            "DELETE FROM carrier_refs r USING {} WHERE {} AND r.message IS NOT NULL RETURNING {}",
            unnest("v", by),
            joined("r", "v", by),
            qualified("r", returned)
        ),
    )
});

/// Deletes and returns the parts that these names (carrier, id, recipient) refer to. Names without
/// a part are left out.
pub async fn take_matching(
    tx: &mut Conn,
    names: &[(CarrierId, &str, Recipient)],
) -> StoreResult<Vec<(CarrierId, String, PartKey)>> {
    let rows = names.iter().map(|(carrier, id, to)| [carrier.value(), (*id).into(), to.value()]);
    tx.bulk_query(&TAKE_MATCHING, &rows.collect(), |r| {
        Ok((r.get()?, r.get()?, (r.get()?, r.get()?, r.get()?)))
    })
    .await
}

static RECORD_RECEIPTS: LazyLock<Bulk> = LazyLock::new(|| {
    let columns = columns!(RefRow: carrier, smsc_id, recipient, receipt, receipt_code, at);
    let tail = format!(
        "ON CONFLICT (carrier, smsc_id) DO UPDATE SET receipt = excluded.receipt,
           receipt_code = excluded.receipt_code
         WHERE carrier_refs.recipient = excluded.recipient RETURNING {}",
        matched_columns()
    );
    let Bulk { each, all } = REFS.insert(columns, &[], &tail);
    let distinct = all.replacen("SELECT *", "SELECT DISTINCT ON (carrier, smsc_id) *", 1);
    Bulk::new(each, distinct)
});

/// Stores receipts whose part is not known yet. Returns those whose part another node has recorded
/// since it was looked up.
pub async fn record_receipts(
    tx: &mut Conn,
    receipts: &[StoredReceipt],
    at: Timestamp,
) -> StoreResult<Vec<MatchedReceipt>> {
    let rows = Rows::with(6, receipts.iter(), |values, r| {
        let (code, carrier_code) = r.outcome.to_parts();
        values.extend([r.carrier.value(), r.smsc_id.value(), r.recipient.value()]);
        values.extend([Value::from(code), carrier_code.into(), at.into()]);
    });
    let found = tx.bulk_query(&RECORD_RECEIPTS, &rows, matched).await?;
    let matched: Vec<_> = found.into_iter().flatten().collect();
    delete(tx, &matched).await?;
    Ok(matched)
}

/// Identifies a receipt that waits for its submit response.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct RefKey {
    /// The carrier.
    pub carrier: CarrierId,
    /// The carrier's id of the part.
    pub smsc_id: String,
    /// The recipient.
    pub recipient: Recipient,
}

/// Returns whether receipts wait for their submit response that arrived since `since`.
pub async fn has_early_receipts(tx: &mut Conn, since: Timestamp) -> StoreResult<bool> {
    let sql = "SELECT 1 FROM carrier_refs WHERE message IS NULL AND at >= $1 LIMIT 1";
    let found = tx.query_one(sql, &[since.value()], |_| Ok(())).await?;
    Ok(found.is_some())
}

static TAKE_EARLY: LazyLock<Bulk> = LazyLock::new(|| {
    let by = columns!(RefRow: carrier, smsc_id, recipient);
    let since = Column::parameter::<Timestamp>("since");
    let returned = columns!(RefRow: carrier, smsc_id, recipient, receipt, receipt_code);
    Bulk::new(
        format!(
            "DELETE FROM carrier_refs WHERE {} AND message IS NULL AND at >= $4 RETURNING {}",
            equals(by),
            names(returned)
        ),
        format!(
            "DELETE FROM carrier_refs r USING {} WHERE {} AND r.message IS NULL AND r.at >= v.since RETURNING {}",
            unnest("v", &[by, &[since][..]].concat()),
            joined("r", "v", by),
            qualified("r", returned)
        ),
    )
});

/// Deletes and returns the receipts with these names that arrived since `since` and wait for their
/// submit response.
pub async fn take_early_receipts(
    tx: &mut Conn,
    names: &[&RefKey],
    since: Timestamp,
) -> StoreResult<Vec<(RefKey, ReceiptOutcome)>> {
    let rows = names
        .iter()
        .map(|n| [n.carrier.value(), n.smsc_id.value(), n.recipient.value(), since.value()]);
    tx.bulk_query(&TAKE_EARLY, &rows.collect(), |r| {
        let name = RefKey { carrier: r.get()?, smsc_id: r.get()?, recipient: r.get()? };
        let outcome = ReceiptOutcome::from_parts(r.get()?, r.get()?);
        Ok((name, outcome.ok_or_else(|| StoreError::corrupt("unknown receipt"))?))
    })
    .await
}

/// Returns up to `limit` parts that were accepted before `before` and whose message expired before
/// it too: their receipts will not come any more.
pub async fn overdue(
    conn: &mut Conn,
    before: Timestamp,
    limit: i64,
) -> StoreResult<Vec<(CarrierId, String, Recipient)>> {
    let sql = "SELECT r.carrier, r.smsc_id, r.recipient FROM carrier_refs r CROSS JOIN messages m
        WHERE r.at < $1 AND m.account = r.account AND m.id = r.message AND m.expires_at < $1 LIMIT $2";
    let read = |r: &mut Row<'_>| Ok((r.get()?, r.get()?, r.get()?));
    conn.query(sql, &[before.value(), limit.into()], read).await
}

/// Returns up to `limit` receipts that arrived since `since` and have no part yet, oldest first.
pub async fn unmatched_receipts(
    conn: &mut Conn,
    since: Timestamp,
    limit: i64,
) -> StoreResult<Vec<(CarrierId, Receipt)>> {
    let sql = "SELECT carrier, smsc_id, recipient, receipt, receipt_code FROM carrier_refs
        WHERE message IS NULL AND at >= $1 ORDER BY at LIMIT $2";
    conn.query(sql, &[since.value(), limit.into()], |r| {
        let (carrier, smsc_id, recipient) = (r.get()?, r.get()?, r.get()?);
        let outcome = ReceiptOutcome::from_parts(r.get()?, r.get()?);
        let outcome = outcome.ok_or_else(|| StoreError::corrupt("unknown receipt"))?;
        Ok((carrier, Receipt { smsc_id, recipient, destination: None, outcome }))
    })
    .await
}

/// Deletes receipts that arrived before `before` and never found their part. Returns how many there
/// were.
pub async fn delete_unmatched(tx: &mut Conn, before: Timestamp) -> StoreResult<u64> {
    let sql = "DELETE FROM carrier_refs WHERE message IS NULL AND at < $1";
    tx.execute(sql, &[before.value()]).await
}
