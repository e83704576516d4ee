//! Counters for pictures: how much of what happened in an hour, and of what is some days old, in a day.

use crate::bulk::Bulk;
use crate::db::Conn;
use crate::error::Result;
use crate::row::Row;
use heliograph_domain::account::Mode;
use heliograph_domain::id::AccountId;
use heliograph_domain::stats::{DAY, Measure, Tally};
use std::collections::BTreeMap;
use std::ops::Range;

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

/// One of an account's sums: mode, hour and measure, in the order in which rows are locked.
type Sum = (i16, i32, i16);

/// Puts the hours of whole days together: from then on the sums of a day stand at its first hour. `hours` begin and end
/// with a day. What a twin puts together at the same time counts once.
///
/// # Errors
/// As any write.
pub async fn fold(tx: &mut Conn, account: AccountId, hours: Range<i32>) -> Result<()> {
    let sql = "DELETE FROM stats
        WHERE account = $1 AND mode IN (0, 1) AND hour >= $2 AND hour < $3 AND hour % $4 <> 0
        RETURNING mode, hour, measure, total";
    let params = [account.0.into(), hours.start.into(), hours.end.into(), DAY.into()];
    let read = |r: &Row<'_>| Ok(((r.small(0)?, r.small(1)?, r.small(2)?), r.int(3)?));
    let taken: Vec<(Sum, i64)> = tx.query(sql, &params, read).await?;
    let mut days: BTreeMap<Sum, i64> = BTreeMap::new();
    for ((mode, hour, measure), n) in taken {
        *days.entry((mode, hour - hour % DAY, measure)).or_default() += n;
    }
    let row = |((mode, hour, measure), n): (Sum, i64)| {
        [account.0.into(), mode.into(), hour.into(), measure.into(), n.into()]
    };
    tx.bulk_ahead(&ADD, &days.into_iter().map(row).collect()).await
}

/// Drops what an account counted before an hour; how many rows.
///
/// # Errors
/// As any write.
pub async fn drop_old(tx: &mut Conn, account: AccountId, hour: i32) -> Result<u64> {
    let sql = "DELETE FROM stats WHERE account = $1 AND mode IN (0, 1) AND hour < $2";
    tx.execute(sql, &[account.0.into(), hour.into()]).await
}
