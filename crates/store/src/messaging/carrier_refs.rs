//! Matching of submit responses and delivery receipts by the carrier's message id and the
//! recipient. Either can arrive first.

mod reuse;

use crate::db::Conn;
use crate::db::bulk::{Bulk, Rows};
use crate::db::field::Field;
use crate::db::record::{Column, Record, columns, record};
use crate::db::row::{self, Row};
use crate::db::table::{Sql, Table, equals, joined, names, qualified, unnest};
use crate::db::value::Value;
use crate::error::{StoreError, StoreResult};
use heliograph_domain::id::{AccountId, CarrierId, MessageId, PartKey};
use heliograph_domain::phone::Recipient;
use heliograph_domain::receipt::{Receipt, ReceiptOutcome};
use heliograph_domain::time::Timestamp;
pub use reuse::{has_reused, take_reused};
use std::collections::btree_map::{BTreeMap, Entry};
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
        reuse: i16,
    }
}

record! {
    /// The columns of a row whose part and receipt are both known, without `receipt`.
    struct MatchedRow {
        receipt_code: Option<String>,
        account: AccountId,
        message: MessageId,
        part: u8,
    }
}

/// The column list that [`matched`] reads.
fn matched_columns() -> String {
    format!(
        "{}, message, receipt, {}",
        names(columns!(RefRow: carrier, smsc_id, recipient)),
        names(MatchedRow::COLUMNS)
    )
}

/// Reads the key of a row, and its two halves if both are known.
fn matched(r: &mut Row<'_>) -> StoreResult<(RefKey, Option<(PartKey, ReceiptOutcome)>)> {
    let key = read_key(r)?;
    let (message, receipt): (Option<MessageId>, Option<i16>) = (r.get()?, r.get()?);
    let (Some(_), Some(code)) = (message, receipt) else { return Ok((key, None)) };
    let row: MatchedRow = r.record()?;
    let outcome = ReceiptOutcome::from_parts(code, row.receipt_code);
    let outcome = outcome.ok_or_else(|| StoreError::corrupt("unknown receipt"))?;
    Ok((key, Some(((row.account, row.message, row.part), outcome))))
}

fn read_key(r: &mut Row<'_>) -> StoreResult<RefKey> {
    Ok(RefKey { carrier: r.get()?, smsc_id: r.get()?, recipient: r.get()? })
}

fn matches(found: Vec<(RefKey, Option<(PartKey, ReceiptOutcome)>)>) -> Vec<MatchedReceipt> {
    let matched = |(key, halves): (RefKey, Option<_>)| {
        halves.map(|(part, outcome)| MatchedReceipt { key, part, outcome })
    };
    found.into_iter().filter_map(matched).collect()
}

const REFS: Table =
    Table { name: "carrier_refs", key: columns!(RefRow: carrier, smsc_id, recipient, reuse) };

/// The constant of every inserted row: the newest part with its id and recipient.
const NEWEST: &[(&str, &str)] = &[("reuse", "0")];

/// The columns of an accepted part.
const ACCEPTED: &[Column] =
    columns!(RefRow: carrier, smsc_id, account, message, part, recipient, at);

/// Completes a row that has no part. A row of another part is left alone, and not returned.
static RECORD_ACCEPTED: LazyLock<Bulk> = LazyLock::new(|| {
    let tail = format!(
        "ON CONFLICT (carrier, smsc_id, recipient, reuse) DO UPDATE SET account = excluded.account,
           message = excluded.message, part = excluded.part, at = excluded.at
         WHERE carrier_refs.message IS NULL RETURNING {}",
        matched_columns()
    );
    REFS.insert(ACCEPTED, NEWEST, &tail)
});

/// A part with its receipt.
#[derive(Clone, Debug)]
pub struct MatchedReceipt {
    /// The id and the recipient.
    pub key: RefKey,
    /// The part.
    pub part: PartKey,
    /// The outcome.
    pub outcome: ReceiptOutcome,
}

/// The result of [`record_accepted`].
#[derive(Clone, Default, Debug)]
pub struct RecordedParts {
    /// The parts whose receipt had arrived already.
    pub matched: Vec<MatchedReceipt>,
    /// The carriers that gave the id of another message to the same recipient, once for each id.
    pub reused: Vec<CarrierId>,
}

/// Records accepted parts, in the order of their submission.
///
/// An id that a carrier gave to another part of the same message stands for all its parts. If it
/// gave the id to another message to the same recipient, receipts are for the newer part first.
pub async fn record_accepted(
    tx: &mut Conn,
    accepted: &[AcceptedPart],
    at: Timestamp,
) -> StoreResult<RecordedParts> {
    // PostgreSQL accepts each id once per statement, and one order on all nodes prevents deadlocks.
    let (mut first, mut again) = (BTreeMap::new(), Vec::new());
    for part in accepted {
        match first.entry((part.carrier, part.smsc_id.as_str(), part.recipient)) {
            Entry::Vacant(entry) => drop(entry.insert(part)),
            Entry::Occupied(_) => again.push(part),
        }
    }
    let found = tx.bulk_query(&RECORD_ACCEPTED, &parameters(first.values(), at), matched).await?;
    let mut conflicts = Vec::new();
    if found.len() < first.len() {
        for (key, _) in &found {
            first.remove(&(key.carrier, key.smsc_id.as_str(), key.recipient));
        }
        conflicts.extend(first.into_values());
    }
    conflicts.append(&mut again);
    let mut recorded = RecordedParts { matched: matches(found), reused: Vec::new() };
    delete(tx, &recorded.matched).await?;
    for part in conflicts {
        let late = reuse::record_accepted(tx, part, at).await?;
        recorded.reused.extend(late.then_some(part.carrier));
    }
    Ok(recorded)
}

/// Returns the parameters of [`RECORD_ACCEPTED`].
fn parameters<'a>(
    parts: impl ExactSizeIterator<Item = &'a &'a AcceptedPart>,
    at: Timestamp,
) -> Rows<'a> {
    Rows::with(ACCEPTED.len(), parts, |values, a| {
        let (account, message, part) = &a.part;
        values.extend([a.carrier.value(), a.smsc_id.value(), account.value(), message.value()]);
        values.extend([part.value(), a.recipient.value(), at.into()]);
    })
}

static DELETE: LazyLock<Bulk> = LazyLock::new(|| REFS.delete());

/// Deletes the newest rows of these matches.
async fn delete(tx: &mut Conn, matched: &[MatchedReceipt]) -> StoreResult<()> {
    let rows = matched.iter().map(|m| {
        let RefKey { carrier, smsc_id, recipient } = &m.key;
        [carrier.value(), smsc_id.value(), recipient.value(), 0_i16.into()]
    });
    tx.bulk_execute(&DELETE, &rows.collect()).await.map(drop)
}

static TAKE_MATCHING: LazyLock<Bulk> = LazyLock::new(|| {
    let by = columns!(RefRow: carrier, smsc_id, recipient);
    let returned = columns!(RefRow: carrier, smsc_id, recipient, account, message, part);
    Bulk::new(
        format!(
            "DELETE FROM carrier_refs WHERE {} AND reuse = 0 AND message IS NOT NULL RETURNING {}",
            equals(by),
            names(returned)
        ),
        format!(
            "DELETE FROM carrier_refs r USING {}
             WHERE {} AND r.reuse = 0 AND r.message IS NOT NULL RETURNING {}",
            unnest("v", by),
            joined("r", "v", by),
            qualified("r", returned)
        ),
    )
});

/// Reads a key and its part.
fn key_and_part(r: &mut Row<'_>) -> StoreResult<(RefKey, PartKey)> {
    Ok((read_key(r)?, (r.get()?, r.get()?, r.get()?)))
}

/// Deletes and returns the newest parts that these names refer to. Names without a part are left
/// out.
pub async fn take_matching(
    tx: &mut Conn,
    names: &[&RefKey],
) -> StoreResult<Vec<(RefKey, PartKey)>> {
    let rows = names.iter().map(|n| [n.carrier.value(), n.smsc_id.value(), n.recipient.value()]);
    tx.bulk_query(&TAKE_MATCHING, &rows.collect(), key_and_part).await
}

static RECORD_RECEIPTS: LazyLock<Bulk> = LazyLock::new(|| {
    let columns = columns!(RefRow: carrier, smsc_id, recipient, receipt, receipt_code, at);
    let tail = format!(
        "ON CONFLICT (carrier, smsc_id, recipient, reuse) DO UPDATE SET receipt = excluded.receipt,
           receipt_code = excluded.receipt_code RETURNING {}",
        matched_columns()
    );
    let Bulk { each, all } = REFS.insert(columns, NEWEST, &tail);
    let distinct =
        all.replacen("SELECT *", "SELECT DISTINCT ON (carrier, smsc_id, recipient) *", 1);
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
    let matched = matches(tx.bulk_query(&RECORD_RECEIPTS, &rows, matched).await?);
    delete(tx, &matched).await?;
    Ok(matched)
}

/// Identifies parts and receipts that belong together.
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
        let name = read_key(r)?;
        let outcome = ReceiptOutcome::from_parts(r.get()?, r.get()?);
        Ok((name, outcome.ok_or_else(|| StoreError::corrupt("unknown receipt"))?))
    })
    .await
}

record! {
    /// The key of a part whose receipt is overdue.
    #[derive(Clone, PartialEq, Eq, Debug)]
    pub struct OverduePart {
        carrier: CarrierId,
        smsc_id: String,
        recipient: Recipient,
        reuse: i16,
    }
}

static OVERDUE: Sql = Sql::new(|| {
    format!(
        "SELECT {} FROM carrier_refs r CROSS JOIN messages m
         WHERE r.at < $1 AND m.account = r.account AND m.id = r.message AND m.expires_at < $1 LIMIT $2",
        qualified("r", OverduePart::COLUMNS)
    )
});

/// Returns up to `limit` parts that were accepted before `before` and whose message expired before
/// it too: their receipts will not come any more.
pub async fn overdue(
    conn: &mut Conn,
    before: Timestamp,
    limit: i64,
) -> StoreResult<Vec<OverduePart>> {
    conn.query(&OVERDUE, &[before.value(), limit.into()], row::record).await
}

static TAKE_OVERDUE: LazyLock<Bulk> = LazyLock::new(|| {
    let returned = columns!(RefRow: carrier, smsc_id, recipient, account, message, part);
    Bulk::new(
        format!(
            "DELETE FROM carrier_refs WHERE {} AND message IS NOT NULL RETURNING {}",
            equals(REFS.key),
            names(returned)
        ),
        format!(
            "DELETE FROM carrier_refs r USING {} WHERE {} AND r.message IS NOT NULL RETURNING {}",
            unnest("v", REFS.key),
            joined("r", "v", REFS.key),
            qualified("r", returned)
        ),
    )
});

/// Deletes and returns those of these parts that still have no receipt.
pub async fn take_overdue(tx: &mut Conn, parts: &[&OverduePart]) -> StoreResult<Vec<PartKey>> {
    let rows = Rows::of(parts.iter().copied());
    let taken = tx.bulk_query(&TAKE_OVERDUE, &rows, key_and_part).await?;
    Ok(taken.into_iter().map(|(_, part)| part).collect())
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
