//! How each node's line to each carrier is, as it was when it was last written down.

use crate::bulk::Bulk;
use crate::db::Conn;
use crate::error::Result;
use heliograph_domain::carrier::BindStatus;
use heliograph_domain::id::{CarrierId, NodeId};
use heliograph_domain::time::Timestamp;

const SAVE: Bulk = Bulk {
    each: "INSERT INTO bind_status (node, carrier, binds, bound, window_size, unanswered, throttled, last_error,
             last_error_at, at)
           VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)
           ON CONFLICT (node, carrier) DO UPDATE SET binds = excluded.binds, bound = excluded.bound,
             window_size = excluded.window_size, unanswered = excluded.unanswered, throttled = excluded.throttled,
             last_error = excluded.last_error, last_error_at = excluded.last_error_at, at = excluded.at",
    all: "INSERT INTO bind_status (node, carrier, binds, bound, window_size, unanswered, throttled, last_error,
             last_error_at, at)
          SELECT * FROM unnest($1::integer[], $2::smallint[], $3::integer[], $4::smallint[], $5::integer[],
             $6::integer[], $7::smallint[], $8::text[], $9::bigint[], $10::bigint[])
          ON CONFLICT (node, carrier) DO UPDATE SET binds = excluded.binds, bound = excluded.bound,
             window_size = excluded.window_size, unanswered = excluded.unanswered, throttled = excluded.throttled,
             last_error = excluded.last_error, last_error_at = excluded.last_error_at, at = excluded.at",
};

/// Writes down how a node's lines are at `at`.
///
/// # Errors
/// As any write.
pub async fn save(tx: &mut Conn, node: NodeId, all: &[BindStatus], at: Timestamp) -> Result<()> {
    let rows = all.iter().map(|s| {
        [
            node.0.into(),
            s.carrier.0.into(),
            s.binds.into(),
            s.bound.into(),
            i64::from(s.window).into(),
            i64::from(s.unanswered).into(),
            i16::from(s.throttled).into(),
            s.last_error.as_ref().map(|(why, _)| why.as_str()).into(),
            s.last_error.as_ref().map(|(_, at)| *at).into(),
            at.into(),
        ]
    });
    tx.bulk_execute(&SAVE, &rows.collect()).await.map(drop)
}

/// All lines of all nodes, by carrier and node, and when each was written down.
///
/// # Errors
/// As any read.
pub async fn all(conn: &mut Conn) -> Result<Vec<(NodeId, BindStatus, Timestamp)>> {
    let sql = "SELECT node, carrier, binds, bound, window_size, unanswered, throttled, last_error, last_error_at, at
        FROM bind_status ORDER BY carrier, node";
    conn.query(sql, &[], |r| {
        let status = BindStatus {
            carrier: CarrierId(r.small(1)?),
            binds: r.small(2)?,
            bound: r.small(3)?,
            window: r.small(4)?,
            unanswered: r.small(5)?,
            throttled: r.int(6)? != 0,
            last_error: r.opt_text(7)?.zip(r.opt_time(8)?),
        };
        Ok((NodeId(r.small(0)?), status, r.time(9)?))
    })
    .await
}

/// Takes away what a node wrote down.
///
/// # Errors
/// As any write.
pub async fn forget(tx: &mut Conn, node: NodeId) -> Result<u64> {
    tx.execute("DELETE FROM bind_status WHERE node = $1", &[node.0.into()]).await
}

/// Takes away what was written down before `at`.
///
/// # Errors
/// As any write.
pub async fn drop_old(tx: &mut Conn, at: Timestamp) -> Result<u64> {
    tx.execute("DELETE FROM bind_status WHERE at < $1", &[at.into()]).await
}
