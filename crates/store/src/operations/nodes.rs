//! The ids of nodes, which own leases, and the nodes that serve requests.

use crate::db::Conn;
use crate::db::field::Field;
use crate::db::row;
use crate::error::{StoreError, StoreResult};
use heliograph_domain::id::NodeId;
use heliograph_domain::time::Timestamp;
use uuid::Uuid;

/// Returns the id of the node with this identity. A new node gets one.
pub async fn get_or_create(tx: &mut Conn, identity: Uuid, at: Timestamp) -> StoreResult<NodeId> {
    let sql = "INSERT INTO nodes (identity, started_at) VALUES ($1, $2)
        ON CONFLICT (identity) DO UPDATE SET started_at = excluded.started_at RETURNING id";
    let found = tx.query_one(sql, &[identity.value(), at.value()], row::get).await?;
    found.ok_or_else(|| StoreError::corrupt("an inserted node has no id"))
}

/// Records that a node serves requests at `at` and returns the number of nodes that have served
/// since `since`.
pub async fn record_serving(
    tx: &mut Conn,
    node: NodeId,
    (at, since): (Timestamp, Timestamp),
) -> StoreResult<i64> {
    let sql = "UPDATE nodes SET serving_at = $2 WHERE id = $1";
    tx.execute(sql, &[node.value(), at.value()]).await?;
    let sql = "SELECT count(*) FROM nodes WHERE serving_at > $1";
    Ok(tx.query_one(sql, &[since.value()], row::get).await?.unwrap_or(0))
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
