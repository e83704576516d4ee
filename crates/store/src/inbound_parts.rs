//! Parts of messages that people sent, until all have come.

use crate::db::Conn;
use crate::error::Result;
use crate::row::Row;
use heliograph_domain::id::CarrierId;
use heliograph_domain::time::Timestamp;

/// What parts of one message have in common.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Group {
    /// Who brought them.
    pub carrier: CarrierId,
    /// Who sent them.
    pub from: String,
    /// To which number.
    pub to: String,
    /// The reference in their header.
    pub reference: u16,
    /// How many there are.
    pub total: u8,
}

/// One part.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Part {
    /// Which one, from 1.
    pub sequence: u8,
    /// What it says.
    pub text: String,
    /// As in an incoming message.
    pub label: Option<i64>,
    /// Whether its message has been put together.
    pub done: bool,
}

/// The parts of a group that have come, in order.
///
/// # Errors
/// As any read.
pub async fn of(tx: &mut Conn, group: &Group) -> Result<Vec<Part>> {
    let sql = "SELECT sequence, text, label, done FROM inbound_parts
        WHERE carrier = $1 AND sender = $2 AND recipient = $3 AND reference = $4 AND total = $5 ORDER BY sequence";
    tx.query(sql, &key(group), part).await
}

/// Keeps a part; one that is there already stays as it is.
///
/// # Errors
/// As any write.
pub async fn insert(tx: &mut Conn, group: &Group, part: &Part, at: Timestamp) -> Result<()> {
    let sql = "INSERT INTO inbound_parts (carrier, sender, recipient, reference, total, sequence, text, label, done, at)
        VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10) ON CONFLICT DO NOTHING";
    let params = [
        group.carrier.0.into(),
        group.from.as_str().into(),
        group.to.as_str().into(),
        group.reference.into(),
        i16::from(group.total).into(),
        i16::from(part.sequence).into(),
        part.text.as_str().into(),
        part.label.into(),
        i16::from(part.done).into(),
        at.into(),
    ];
    tx.execute(sql, &params).await.map(drop)
}

/// Marks a group as put together; the parts that were not yet, as they were, in any order: whoever gets them has the
/// message.
///
/// # Errors
/// As any write.
pub async fn finish(tx: &mut Conn, group: &Group) -> Result<Vec<Part>> {
    let sql = "UPDATE inbound_parts SET done = 1
        WHERE carrier = $1 AND sender = $2 AND recipient = $3 AND reference = $4 AND total = $5 AND done = 0
        RETURNING sequence, text, label, 0";
    tx.query(sql, &key(group), part).await
}

/// Forgets a group: its reference names another message now. The parts that were there, in any order.
///
/// # Errors
/// As any write.
pub async fn forget(tx: &mut Conn, group: &Group) -> Result<Vec<Part>> {
    let sql = "DELETE FROM inbound_parts
        WHERE carrier = $1 AND sender = $2 AND recipient = $3 AND reference = $4 AND total = $5
        RETURNING sequence, text, label, done";
    tx.query(sql, &key(group), part).await
}

fn part(r: &Row<'_>) -> Result<Part> {
    let (sequence, text, label) = (r.small(0)?, r.text(1)?, r.opt_int(2)?);
    Ok(Part { sequence, text, label, done: r.int(3)? != 0 })
}

fn key(group: &Group) -> [crate::value::Value<'_>; 5] {
    [
        group.carrier.0.into(),
        group.from.as_str().into(),
        group.to.as_str().into(),
        group.reference.into(),
        i16::from(group.total).into(),
    ]
}

/// Groups that wait since before `before` for parts that have not come, and those whose parts came over several
/// nodes at once, so that none saw them all; at most `limit`.
///
/// # Errors
/// As any read.
pub async fn overdue(conn: &mut Conn, before: Timestamp, limit: i64) -> Result<Vec<Group>> {
    let sql = "SELECT carrier, sender, recipient, reference, total FROM inbound_parts WHERE done = 0
        GROUP BY carrier, sender, recipient, reference, total HAVING count(*) = total OR min(at) < $1
        ORDER BY 1, 2, 3, 4, 5 LIMIT $2"; // in one order, or two nodes wait for each other
    conn.query(sql, &[before.into(), limit.into()], |r: &Row<'_>| {
        Ok(Group {
            carrier: CarrierId(r.small(0)?),
            from: r.text(1)?,
            to: r.text(2)?,
            reference: r.small(3)?,
            total: r.small(4)?,
        })
    })
    .await
}

/// Drops parts from before `before` whose message was put together; how many.
///
/// # Errors
/// As any write.
pub async fn drop_done(tx: &mut Conn, before: Timestamp) -> Result<u64> {
    let sql = "DELETE FROM inbound_parts WHERE at < $1 AND done = 1";
    tx.execute(sql, &[before.into()]).await
}
