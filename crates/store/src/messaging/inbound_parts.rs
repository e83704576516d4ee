//! Parts of inbound messages, kept until all parts have arrived and the message is assembled.

use crate::db::Conn;
use crate::db::field::Field;
use crate::db::record::{Column, Record, record};
use crate::db::row;
use crate::db::table::{Sql, Table, equals, names};
use crate::error::StoreResult;
use heliograph_domain::id::CarrierId;
use heliograph_domain::time::Timestamp;

record! {
    /// The fields that all parts of one message share.
    #[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
    pub struct PartGroup {
        /// The carrier that delivered the parts.
        pub carrier: CarrierId,
        /// The sender.
        pub from: String => sender,
        /// The number that the message was sent to.
        pub to: String => recipient,
        /// The reference in the concatenation header.
        pub reference: u16,
        /// The number of parts.
        pub total: u8,
    }
}

record! {
    /// One part.
    #[derive(Clone, PartialEq, Eq, Debug)]
    pub struct InboundPart {
        /// The position of the part, from 1.
        pub sequence: u8,
        /// The text.
        pub text: String,
        /// The label of the inbound message.
        pub label: Option<i64>,
        /// True if the message has been assembled.
        pub assembled: bool,
    }
}

/// The primary key ends with `sequence`; the statements here are about whole groups.
const PARTS: Table = Table { name: "inbound_parts", key: PartGroup::COLUMNS };

static LIST: Sql =
    Sql::new(|| PARTS.select_by(PartGroup::COLUMNS, InboundPart::COLUMNS, "sequence"));

/// Returns the parts of a group that have arrived, in order.
pub async fn list(tx: &mut Conn, group: &PartGroup) -> StoreResult<Vec<InboundPart>> {
    tx.query(&LIST, &group.values(), row::record).await
}

static INSERT: Sql = Sql::new(|| {
    let at = Column::parameter::<Timestamp>("at");
    let columns = [PartGroup::COLUMNS, InboundPart::COLUMNS, &[at]].concat();
    PARTS.insert_one(&columns, &[], "ON CONFLICT DO NOTHING")
});

/// Stores a part. A part that exists already stays as it is.
pub async fn insert(
    tx: &mut Conn,
    group: &PartGroup,
    part: &InboundPart,
    at: Timestamp,
) -> StoreResult<()> {
    let mut params = group.values();
    part.push(&mut params);
    params.push(at.value());
    tx.execute(&INSERT, &params).await.map(drop)
}

static MARK_ASSEMBLED: Sql = Sql::new(|| {
    format!(
        "UPDATE inbound_parts SET assembled = 1 WHERE {} AND assembled = 0 RETURNING sequence, text, label, 0",
        equals(PartGroup::COLUMNS)
    )
});

/// Marks a group as assembled. Returns, in any order and as they were, the parts that were not
/// marked yet: the caller that gets them has the message.
pub async fn mark_assembled(tx: &mut Conn, group: &PartGroup) -> StoreResult<Vec<InboundPart>> {
    tx.query(&MARK_ASSEMBLED, &group.values(), row::record).await
}

static DELETE: Sql = Sql::new(|| {
    format!(
        "DELETE FROM inbound_parts WHERE {} RETURNING {}",
        equals(PartGroup::COLUMNS),
        names(InboundPart::COLUMNS)
    )
});

/// Deletes a group, whose reference now names another message, and returns its parts in any order.
pub async fn delete_group(tx: &mut Conn, group: &PartGroup) -> StoreResult<Vec<InboundPart>> {
    tx.query(&DELETE, &group.values(), row::record).await
}

static OVERDUE: Sql = Sql::new(|| {
    let group = names(PartGroup::COLUMNS);
    // One order on all nodes prevents deadlocks.
    format!(
        "SELECT {group} FROM inbound_parts WHERE assembled = 0
         GROUP BY {group} HAVING count(*) = total OR min(at) < $1
         ORDER BY {group} LIMIT $2"
    )
});

/// Returns up to `limit` groups to assemble: groups that have waited since before `before` for
/// missing parts, and complete groups whose parts arrived on several nodes at once, so that none
/// saw them all.
pub async fn overdue(
    conn: &mut Conn,
    before: Timestamp,
    limit: i64,
) -> StoreResult<Vec<PartGroup>> {
    conn.query(&OVERDUE, &[before.value(), limit.into()], row::record).await
}

/// Deletes parts from before `before` whose message was assembled and returns how many there were.
pub async fn delete_assembled(tx: &mut Conn, before: Timestamp) -> StoreResult<u64> {
    let sql = "DELETE FROM inbound_parts WHERE at < $1 AND assembled = 1";
    tx.execute(sql, &[before.value()]).await
}
