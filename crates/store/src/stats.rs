//! Counters for pictures: how much of what happened in an hour.

use crate::bulk::Bulk;
use crate::db::Conn;
use crate::error::Result;
use heliograph_domain::account::Mode;
use heliograph_domain::id::AccountId;
use heliograph_domain::stats::{Measure, Tally};

const ADD: Bulk = Bulk {
    each: "INSERT INTO stats (account, mode, hour, measure, total) VALUES ($1, $2, $3, $4, $5)
           ON CONFLICT (account, mode, hour, measure) DO UPDATE SET total = stats.total + excluded.total",
    // Locked in the order of their keys, so that two nodes never wait for each other.
    all: "INSERT INTO stats (account, mode, hour, measure, total)
          SELECT * FROM unnest($1::bigint[], $2::smallint[], $3::integer[], $4::smallint[], $5::bigint[])
            AS v (account, mode, hour, measure, total)
          ORDER BY account, mode, hour, measure
          ON CONFLICT (account, mode, hour, measure) DO UPDATE SET total = stats.total + excluded.total",
};

/// Adds what a transaction counted in one hour. The last thing that it does: every node adds to the same rows, and on
/// PostgreSQL this travels with the commit.
///
/// # Errors
/// As any write.
pub async fn add(tx: &mut Conn, hour: i32, tally: &Tally) -> Result<()> {
    let rows = tally.iter().map(|(account, mode, measure, n)| {
        [account.0.into(), mode.code().into(), hour.into(), measure.into(), n.into()]
    });
    tx.bulk_ahead(&ADD, &rows.collect()).await
}

/// What an account counted from one hour on, by hour. What only a newer version counts is left out.
///
/// # Errors
/// As any read.
pub async fn since(
    conn: &mut Conn,
    (account, mode): (AccountId, Mode),
    hour: i32,
) -> Result<Vec<(i32, Measure, i64)>> {
    let sql = "SELECT hour, measure, total FROM stats
        WHERE account = $1 AND mode = $2 AND hour >= $3 ORDER BY hour, measure";
    let params = [account.0.into(), mode.code().into(), hour.into()];
    let found = conn
        .query(sql, &params, |r| {
            let (hour, total) = (r.small(0)?, r.int(2)?);
            Ok(Measure::from_code(r.small(1)?).map(|measure| (hour, measure, total)))
        })
        .await?;
    Ok(found.into_iter().flatten().collect())
}

/// Drops what an account counted before an hour; how many rows.
///
/// # Errors
/// As any write.
pub async fn drop_old(tx: &mut Conn, account: AccountId, hour: i32) -> Result<u64> {
    let sql = "DELETE FROM stats WHERE account = $1 AND mode IN (0, 1) AND hour < $2";
    tx.execute(sql, &[account.0.into(), hour.into()]).await
}
