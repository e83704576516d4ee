//! Inbound phone numbers and the accounts that own them.

use crate::db::Conn;
use crate::db::field::Field;
use crate::db::record::{Record, columns, record};
use crate::db::row;
use crate::db::table::{Sql, Table};
use crate::error::StoreResult;
use heliograph_domain::id::AccountId;

record! {
    /// A row of `numbers`.
    struct NumberRow {
        number: String,
        account: AccountId,
    }
}

const NUMBERS: Table = Table { name: "numbers", key: columns!(NumberRow: number) };

static ASSIGN: Sql =
    Sql::new(|| NUMBERS.insert_one(NumberRow::COLUMNS, &[], "ON CONFLICT (number) DO NOTHING"));

/// Assigns a number to an account. False when the number is assigned already, to whichever account.
pub async fn assign(tx: &mut Conn, number: &str, account: AccountId) -> StoreResult<bool> {
    Ok(tx.execute(&ASSIGN, &[number.into(), account.value()]).await? > 0)
}

static REASSIGN: Sql = Sql::new(|| NUMBERS.update_one(columns!(NumberRow: account)));

/// Assigns an assigned number to another account. False when the number is not assigned.
pub async fn reassign(tx: &mut Conn, number: &str, account: AccountId) -> StoreResult<bool> {
    Ok(tx.execute(&REASSIGN, &[number.into(), account.value()]).await? > 0)
}

/// Returns all numbers with their accounts and the names of these, by number.
pub async fn list(conn: &mut Conn) -> StoreResult<Vec<(String, AccountId, String)>> {
    let sql = "SELECT n.number, a.id, a.name FROM numbers n JOIN accounts a ON a.id = n.account
        ORDER BY n.number";
    conn.query(sql, &[], |r| Ok((r.get()?, r.get()?, r.get()?))).await
}

static OWNER: Sql = Sql::new(|| NUMBERS.select_one(columns!(NumberRow: account)));

/// Returns the account that owns a number.
pub async fn owner(conn: &mut Conn, number: &str) -> StoreResult<Option<AccountId>> {
    conn.query_one(&OWNER, &[number.into()], row::get).await
}
