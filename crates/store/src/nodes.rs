//! The small numbers by which nodes sign their leases.

use crate::db::Conn;
use crate::error::{Error, Result};
use heliograph_domain::id::NodeId;
use heliograph_domain::time::Timestamp;
use uuid::Uuid;

/// The number of the node with this identity, given to it now if it is new.
///
/// # Errors
/// As any write.
pub async fn number(tx: &mut Conn, identity: Uuid, at: Timestamp) -> Result<NodeId> {
    let sql = "INSERT INTO nodes (identity, started_at) VALUES ($1, $2)
        ON CONFLICT (identity) DO UPDATE SET started_at = excluded.started_at RETURNING id";
    let found =
        tx.query_one(sql, &[identity.into(), at.into()], |r| Ok(NodeId(r.small(0)?))).await?;
    found.ok_or_else(|| Error::corrupt("a node just named is gone"))
}

/// Notes that a node takes requests at `at`; how many nodes have taken some after `since`.
///
/// # Errors
/// As any write.
pub async fn asked(
    tx: &mut Conn,
    node: NodeId,
    (at, since): (Timestamp, Timestamp),
) -> Result<i64> {
    let sql = "UPDATE nodes SET asked_at = $2 WHERE id = $1";
    tx.execute(sql, &[node.0.into(), at.into()]).await?;
    let sql = "SELECT count(*) FROM nodes WHERE asked_at > $1";
    let found = tx.query_one(sql, &[since.into()], |r| r.int(0)).await?;
    Ok(found.unwrap_or(0))
}

/// How many other programs of ours are connected to this database, as far as it can tell: PostgreSQL lists them,
/// SQLite does not.
///
/// # Errors
/// As any read.
pub async fn others(conn: &mut Conn) -> Result<i64> {
    let sql = "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'heliograph'
        AND datname = current_database() AND pid <> pg_backend_pid()";
    match conn {
        Conn::Sqlite(_) => Ok(0),
        Conn::Postgres(_) => Ok(conn.query_one(sql, &[], |r| r.int(0)).await?.unwrap_or(0)),
    }
}
