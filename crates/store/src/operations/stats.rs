//! Counters for charts: by hour, and by day once they are some days old.

use crate::db::Conn;
use crate::db::bulk::{Bulk, Rows};
use crate::db::field::Field;
use crate::db::record::{Record, columns, record};
use crate::db::row::Row;
use crate::db::table::{Table, names};
use crate::error::StoreResult;
use heliograph_domain::account::Mode;
use heliograph_domain::id::AccountId;
use heliograph_domain::stats::{HOURS_PER_DAY, Measure, Tally};
use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::LazyLock;

record! {
    /// A row of `stats`.
    struct StatRow {
        account: AccountId,
        mode: i16,
        hour: i32,
        measure: i16,
        total: i64,
    }
}

const STATS: Table = Table { name: "stats", key: columns!(StatRow: account, mode, hour, measure) };

static ADD: LazyLock<Bulk> = LazyLock::new(|| {
    let key = names(STATS.key);
    let tail = format!("ON CONFLICT ({key}) DO UPDATE SET total = stats.total + excluded.total");
    let Bulk { each, all } = STATS.insert(StatRow::COLUMNS, &[], &tail);
    // Rows are locked in the order of their keys, so that two nodes never deadlock.
    Bulk::new(each, all.replace("ON CONFLICT", &format!("ORDER BY {key} ON CONFLICT")))
});

/// Adds the counts of a transaction in one hour. Every node adds to the same rows, so this is the
/// last statement of a transaction; on PostgreSQL it is pipelined with the commit.
pub async fn add(tx: &mut Conn, hour: i32, tally: &Tally) -> StoreResult<()> {
    let row = |(account, mode, measure, total): (AccountId, Mode, i16, i64)| StatRow {
        account,
        mode: mode.code(),
        hour,
        measure,
        total,
    };
    let rows: Vec<_> = tally.iter().map(row).collect();
    tx.pipeline(&ADD, &Rows::of(rows.iter())).await
}

/// Returns the counts of an account from one hour on, by hour. Measures that only a newer version
/// knows are left out.
pub async fn since(
    conn: &mut Conn,
    (account, mode): (AccountId, Mode),
    hour: i32,
) -> StoreResult<Vec<(i32, Measure, i64)>> {
    let sql = "SELECT hour, measure, total FROM stats
        WHERE account = $1 AND mode = $2 AND hour >= $3 ORDER BY hour, measure";
    let params = [account.value(), mode.value(), hour.value()];
    let found = conn
        .query(sql, &params, |r| {
            let (hour, measure, total): (i32, i16, i64) = (r.get()?, r.get()?, r.get()?);
            Ok(Measure::from_code(measure).map(|measure| (hour, measure, total)))
        })
        .await?;
    Ok(found.into_iter().flatten().collect())
}

/// Folds the hours of whole days: from then on the total of a day is in its first hour. `hours`
/// begins and ends with a day. What another node folds at the same time counts once.
pub async fn fold_into_days(
    tx: &mut Conn,
    account: AccountId,
    hours: Range<i32>,
) -> StoreResult<()> {
    let sql = "DELETE FROM stats
        WHERE account = $1 AND mode IN (0, 1) AND hour >= $2 AND hour < $3 AND hour % $4 <> 0
        RETURNING mode, hour, measure, total";
    let params = [account.value(), hours.start.value(), hours.end.value(), HOURS_PER_DAY.into()];
    let read = |r: &mut Row<'_>| Ok((r.get()?, r.get()?, r.get()?, r.get()?));
    let deleted: Vec<(i16, i32, i16, i64)> = tx.query(sql, &params, read).await?;
    // The order of the key is the order in which rows are locked.
    let mut days: BTreeMap<(i16, i32, i16), i64> = BTreeMap::new();
    for (mode, hour, measure, total) in deleted {
        *days.entry((mode, hour - hour % HOURS_PER_DAY, measure)).or_default() += total;
    }
    let row = |((mode, hour, measure), total)| StatRow { account, mode, hour, measure, total };
    let rows: Vec<_> = days.into_iter().map(row).collect();
    tx.pipeline(&ADD, &Rows::of(rows.iter())).await
}

/// Deletes the counts of an account before an hour and returns how many rows there were.
pub async fn delete_older_than(tx: &mut Conn, account: AccountId, hour: i32) -> StoreResult<u64> {
    let sql = "DELETE FROM stats WHERE account = $1 AND mode IN (0, 1) AND hour < $2";
    tx.execute(sql, &[account.value(), hour.value()]).await
}
