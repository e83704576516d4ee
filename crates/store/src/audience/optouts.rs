//! Opt-out lists and the numbers on them.

use crate::db::Conn;
use crate::db::bulk::{Bulk, BulkQuery, Rows};
use crate::db::field::Field;
use crate::db::record::{Column, Record, columns, record};
use crate::db::row;
use crate::db::table::{Sql, Table, names};
use crate::error::StoreResult;
use heliograph_domain::account::Mode;
use heliograph_domain::id::{AccountId, OptoutListId};
use heliograph_domain::optout::{Optout, OptoutList};
use heliograph_domain::phone::Recipient;
use std::sync::LazyLock;

record! {
    for OptoutList { account, id, mode, name, standard => is_default, created_at }
}

record! {
    for Optout { number, source, message, originator, note, at => created_at }
}

const LISTS: Table = Table { name: "optout_lists", key: columns!(OptoutList: account, id) };

/// The key of `optouts`: a list and a number.
const KEY: &[Column] =
    &[Column::parameter::<OptoutListId>("list"), Column::parameter::<Recipient>("number")];
const OPTOUTS: Table = Table { name: "optouts", key: KEY };

static CREATE_LIST: LazyLock<Bulk> = LazyLock::new(|| {
    LISTS.insert(OptoutList::COLUMNS, &[], "ON CONFLICT (account, mode, name) DO NOTHING")
});

/// Creates a list. Returns false if the account has a list of this name in this mode.
pub async fn create_list(tx: &mut Conn, list: &OptoutList) -> StoreResult<bool> {
    Ok(tx.bulk_execute(&CREATE_LIST, &Rows::of(std::iter::once(list))).await? > 0)
}

/// Locks the lists of an account in one mode, so that their number and their names do not change
/// until the end of the transaction.
pub async fn lock_lists(tx: &mut Conn, (account, mode): (AccountId, Mode)) -> StoreResult<()> {
    let sql = "UPDATE optout_lists SET is_default = 1 WHERE account = $1 AND mode = $2 AND is_default = 1";
    tx.execute(sql, &[account.value(), mode.value()]).await.map(drop)
}

/// Renames a list, whose names are locked. Returns false if another list of the account has this
/// name in the same mode.
pub async fn rename_list(tx: &mut Conn, list: &OptoutList, name: &str) -> StoreResult<bool> {
    let sql = "UPDATE optout_lists SET name = $3 WHERE account = $1 AND id = $2 AND NOT EXISTS \
               (SELECT 1 FROM optout_lists o WHERE o.account = $1 AND o.mode = $4 AND o.name = $3 \
               AND o.id <> $2)";
    let params = [list.account.value(), list.id.value(), name.into(), list.mode.value()];
    Ok(tx.execute(sql, &params).await? > 0)
}

static LISTS_AFTER: Sql = Sql::new(|| {
    format!(
        "SELECT {} FROM optout_lists WHERE account = $1 AND mode = $2 AND id > $3 ORDER BY id LIMIT $4",
        names(OptoutList::COLUMNS)
    )
});

/// Returns up to `limit` lists of an account in one mode after `after`, oldest first.
pub async fn lists(
    conn: &mut Conn,
    (account, mode): (AccountId, Mode),
    after: OptoutListId,
    limit: i64,
) -> StoreResult<Vec<OptoutList>> {
    let params = [account.value(), mode.value(), after.value(), limit.into()];
    conn.query(&LISTS_AFTER, &params, row::record).await
}

static GET_LIST: Sql =
    Sql::new(|| LISTS.select_by(columns!(OptoutList: account, mode, id), OptoutList::COLUMNS, ""));

/// Returns a list of an account in one mode.
pub async fn get_list(
    conn: &mut Conn,
    (account, mode): (AccountId, Mode),
    id: OptoutListId,
) -> StoreResult<Option<OptoutList>> {
    conn.query_one(&GET_LIST, &[account.value(), mode.value(), id.value()], row::record).await
}

static DEFAULT_LIST: Sql = Sql::new(|| {
    format!(
        "SELECT {} FROM optout_lists WHERE account = $1 AND mode = $2 AND is_default = 1",
        names(OptoutList::COLUMNS)
    )
});

/// Returns the default list of an account in one mode.
pub async fn default_list(
    conn: &mut Conn,
    (account, mode): (AccountId, Mode),
) -> StoreResult<Option<OptoutList>> {
    conn.query_one(&DEFAULT_LIST, &[account.value(), mode.value()], row::record).await
}

/// Deletes a list with its numbers. False when the list does not exist or is the default.
pub async fn delete_list(tx: &mut Conn, account: AccountId, id: OptoutListId) -> StoreResult<bool> {
    let sql = "DELETE FROM optout_lists WHERE account = $1 AND id = $2 AND is_default = 0";
    let deleted = tx.execute(sql, &[account.value(), id.value()]).await? > 0;
    if deleted {
        tx.execute("DELETE FROM optouts WHERE list = $1", &[id.value()]).await?;
    }
    Ok(deleted)
}

static ADD: LazyLock<Bulk> = LazyLock::new(|| {
    let list = Column::parameter::<OptoutListId>("list");
    let columns = [&[list], Optout::COLUMNS].concat();
    let Bulk { each, all } =
        OPTOUTS.insert(&columns, &[], "ON CONFLICT DO NOTHING RETURNING list, number");
    // All nodes insert in the order of the key, so that they never deadlock.
    Bulk::new(each, all.replace("ON CONFLICT", "ORDER BY 1, 2 ON CONFLICT"))
});

/// Adds numbers to lists and returns those that are new. The evidence of the others stays as it
/// was.
pub async fn add(
    tx: &mut Conn,
    all: &[(OptoutListId, &Optout)],
) -> StoreResult<Vec<(OptoutListId, Recipient)>> {
    let rows = Rows::with(Optout::COLUMNS.len() + 1, all.iter(), |values, (list, optout)| {
        values.push(list.value());
        optout.push(values);
    });
    tx.bulk_query(&ADD, &rows, |r| Ok((r.get()?, r.get()?))).await
}

static REMOVE: Sql = Sql::new(|| OPTOUTS.delete_one());

/// Removes a number from a list. Returns whether it was there.
pub async fn remove(tx: &mut Conn, list: OptoutListId, number: Recipient) -> StoreResult<bool> {
    Ok(tx.execute(&REMOVE, &[list.value(), number.value()]).await? > 0)
}

static FIND: Sql = Sql::new(|| OPTOUTS.select_one(Optout::COLUMNS));

/// Returns a number on a list.
pub async fn find(
    conn: &mut Conn,
    list: OptoutListId,
    number: Recipient,
) -> StoreResult<Option<Optout>> {
    conn.query_one(&FIND, &[list.value(), number.value()], row::record).await
}

static LIST_NUMBERS: Sql = Sql::new(|| {
    format!(
        "SELECT {} FROM optouts WHERE list = $1 AND number > $2 ORDER BY number LIMIT $3",
        names(Optout::COLUMNS)
    )
});

/// Returns up to `limit` numbers on a list above `after`, in numeric order.
pub async fn list_numbers(
    conn: &mut Conn,
    list: OptoutListId,
    after: Recipient,
    limit: i64,
) -> StoreResult<Vec<Optout>> {
    conn.query(&LIST_NUMBERS, &[list.value(), after.value(), limit.into()], row::record).await
}

static LISTED: LazyLock<Bulk> = LazyLock::new(|| OPTOUTS.select(OPTOUTS.key));

/// Queries which of these numbers are on these lists.
pub fn listed(all: &[(OptoutListId, Recipient)]) -> BulkQuery<'static, (OptoutListId, Recipient)> {
    let rows = all.iter().map(|(list, number)| [list.0.into(), (*number).into()]).collect();
    BulkQuery { bulk: &LISTED, rows, read: |r| Ok((r.get()?, r.get()?)) }
}

/// Returns the number of entries on all lists of an account, counted up to `limit`.
pub async fn count(conn: &mut Conn, account: AccountId, limit: i64) -> StoreResult<i64> {
    let sql = "SELECT count(*) FROM (SELECT 1 FROM optout_lists l JOIN optouts o ON o.list = l.id
        WHERE l.account = $1 LIMIT $2) counted";
    Ok(conn.query_one(sql, &[account.value(), limit.into()], row::get).await?.unwrap_or(0))
}
