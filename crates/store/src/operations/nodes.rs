//! The ids of nodes, which own leases, and the nodes that serve requests.

use crate::db::Conn;
use crate::db::field::Field;
use crate::db::record::{columns, record};
use crate::db::row;
use crate::db::table::{Sql, Table, names};
use crate::error::{StoreError, StoreResult};
use heliograph_domain::id::NodeId;
use heliograph_domain::time::Timestamp;
use uuid::Uuid;

record! {
    /// A row of `nodes`.
    struct NodeRow {
        id: NodeId,
        identity: Uuid,
        started_at: Timestamp,
        serving_at: Timestamp,
        committed_at: Timestamp,
        heartbeat: i64,
    }
}

const NODES: Table = Table { name: "nodes", key: columns!(NodeRow: id) };

static INSERT: Sql = Sql::new(|| {
    let tail = format!(
        "ON CONFLICT (identity) DO UPDATE SET started_at = excluded.started_at RETURNING {}",
        names(NODES.key)
    );
    NODES.insert_one(columns!(NodeRow: identity, started_at), &[], &tail)
});

/// Returns the id of the node with this identity. A new node gets one.
pub async fn get_or_create(tx: &mut Conn, identity: Uuid, at: Timestamp) -> StoreResult<NodeId> {
    let found = tx.query_one(&INSERT, &[identity.value(), at.value()], row::get).await?;
    found.ok_or_else(|| StoreError::corrupt("an inserted node has no id"))
}

static SET_SERVING: Sql = Sql::new(|| NODES.update_one(columns!(NodeRow: serving_at)));

/// Records that a node serves requests at `at` and returns the number of nodes that have served
/// since `since`.
pub async fn record_serving(
    tx: &mut Conn,
    node: NodeId,
    (at, since): (Timestamp, Timestamp),
) -> StoreResult<i64> {
    tx.execute(&SET_SERVING, &[node.value(), at.value()]).await?;
    let sql = "SELECT count(*) FROM nodes WHERE serving_at > $1";
    Ok(tx.query_one(sql, &[since.value()], row::get).await?.unwrap_or(0))
}

/// Counts the heartbeat of a node, and returns the new value.
pub async fn beat(tx: &mut Conn, node: NodeId) -> StoreResult<i64> {
    let sql = "UPDATE nodes SET heartbeat = heartbeat + 1 WHERE id = $1 RETURNING heartbeat";
    let found = tx.query_one(sql, &[node.value()], row::get).await?;
    found.ok_or_else(|| StoreError::corrupt("this node is not registered"))
}

/// Returns the heartbeats of all nodes that may hold leases.
pub async fn heartbeats(conn: &mut Conn) -> StoreResult<Vec<(NodeId, i64)>> {
    let sql = "SELECT id, heartbeat FROM nodes WHERE heartbeat > 0";
    conn.query(sql, &[], |r| Ok((r.get()?, r.get()?))).await
}

/// Ends the heartbeat of a node if it still has this value. Returns whether it had.
pub async fn end_heartbeat(tx: &mut Conn, node: NodeId, value: i64) -> StoreResult<bool> {
    let sql = "UPDATE nodes SET heartbeat = 0 WHERE id = $1 AND heartbeat = $2";
    Ok(tx.execute(sql, &[node.value(), value.into()]).await? > 0)
}

static SET_COMMITTED: Sql = Sql::new(|| NODES.update_one(columns!(NodeRow: committed_at)));

/// Records that a node can commit, which is true once the transaction is committed.
pub async fn record_commit(tx: &mut Conn, node: NodeId, at: Timestamp) -> StoreResult<()> {
    tx.execute(&SET_COMMITTED, &[node.value(), at.value()]).await?;
    Ok(())
}

/// Returns the number of other Heliograph processes that are connected to this database. PostgreSQL
/// lists connections, SQLite does not: there it is always 0.
pub async fn count_other_connections(conn: &mut Conn) -> StoreResult<i64> {
    let sql = "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'heliograph'
        AND datname = current_database() AND pid <> pg_backend_pid()";
    match conn {
        Conn::Sqlite(_) => Ok(0),
        Conn::Postgres(_) => Ok(conn.query_one(sql, &[], row::get).await?.unwrap_or(0)),
    }
}
