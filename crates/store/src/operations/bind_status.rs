//! The last saved status of each node's binds to each carrier.

use crate::db::Conn;
use crate::db::bulk::{Bulk, Rows};
use crate::db::field::Field;
use crate::db::record::{Record, columns, record};
use crate::db::table::{Sql, Table, names};
use crate::error::{StoreError, StoreResult};
use heliograph_domain::carrier::BindStatus;
use heliograph_domain::id::{CarrierId, NodeId};
use heliograph_domain::time::Timestamp;
use std::sync::LazyLock;

record! {
    /// A row of `bind_status`.
    struct StatusRow {
        node: NodeId,
        carrier: CarrierId,
        binds: i32,
        bound: u16,
        window: u32 => window_size,
        unanswered: u32,
        throttled: bool,
        last_error: Option<String>,
        last_error_at: Option<Timestamp>,
        at: Timestamp,
    }
}

const BIND_STATUS: Table = Table { name: "bind_status", key: columns!(StatusRow: node, carrier) };

static SAVE: LazyLock<Bulk> = LazyLock::new(|| {
    let key = BIND_STATUS.key;
    let others = StatusRow::COLUMNS.iter().skip(key.len());
    let set = others.map(|c| format!("{0} = excluded.{0}", c.name)).collect::<Vec<_>>().join(", ");
    let tail = format!("ON CONFLICT ({}) DO UPDATE SET {set}", names(key));
    BIND_STATUS.insert(StatusRow::COLUMNS, &[], &tail)
});

/// Saves the status of a node's binds at `at`.
pub async fn save(
    tx: &mut Conn,
    node: NodeId,
    all: &[BindStatus],
    at: Timestamp,
) -> StoreResult<()> {
    let row = |s: &BindStatus| StatusRow {
        node,
        carrier: s.carrier,
        binds: s.binds.into(),
        bound: s.bound,
        window: s.window,
        unanswered: s.unanswered,
        throttled: s.throttled,
        last_error: s.last_error.as_ref().map(|(error, _)| error.clone()),
        last_error_at: s.last_error.as_ref().map(|(_, at)| *at),
        at,
    };
    let rows: Vec<_> = all.iter().map(row).collect();
    tx.bulk_execute(&SAVE, &Rows::of(rows.iter())).await.map(drop)
}

static LIST: Sql = Sql::new(|| {
    format!("SELECT {} FROM bind_status ORDER BY carrier, node", names(StatusRow::COLUMNS))
});

/// Returns the status of all binds of all nodes, by carrier and node, each with the time at which
/// it was saved.
pub async fn list(conn: &mut Conn) -> StoreResult<Vec<(NodeId, BindStatus, Timestamp)>> {
    conn.query(&LIST, &[], |r| {
        let row: StatusRow = r.record()?;
        let status = BindStatus {
            carrier: row.carrier,
            binds: row.binds.try_into().map_err(StoreError::corrupt)?,
            bound: row.bound,
            window: row.window,
            unanswered: row.unanswered,
            throttled: row.throttled,
            last_error: row.last_error.zip(row.last_error_at),
        };
        Ok((row.node, status, row.at))
    })
    .await
}

/// Deletes the status that a node saved.
pub async fn delete_for_node(tx: &mut Conn, node: NodeId) -> StoreResult<u64> {
    tx.execute("DELETE FROM bind_status WHERE node = $1", &[node.value()]).await
}

/// Deletes the status that was saved before `at`.
pub async fn delete_older_than(tx: &mut Conn, at: Timestamp) -> StoreResult<u64> {
    tx.execute("DELETE FROM bind_status WHERE at < $1", &[at.value()]).await
}
