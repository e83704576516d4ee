//! Inbound phone numbers and the accounts that own them.

use crate::db::Conn;
use crate::db::field::Field;
use crate::db::record::{Record, columns, record};
use crate::db::row;
use crate::db::table::{Sql, Table, names};
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

static ASSIGN: Sql = Sql::new(|| {
    let tail = "ON CONFLICT (number) DO UPDATE SET account = excluded.account
        WHERE numbers.account <> excluded.account";
    NUMBERS.insert_one(NumberRow::COLUMNS, &[], tail)
});

/// Assigns a number to an account, whichever account had it before. Returns whether that changed
/// anything.
pub async fn assign(tx: &mut Conn, number: &str, account: AccountId) -> StoreResult<bool> {
    Ok(tx.execute(&ASSIGN, &[number.into(), account.value()]).await? > 0)
}

static LIST: Sql = Sql::new(|| format!("SELECT {} FROM numbers", names(NumberRow::COLUMNS)));

/// Returns all numbers with the accounts that own them.
pub async fn list(conn: &mut Conn) -> StoreResult<Vec<(String, AccountId)>> {
    conn.query(&LIST, &[], |r| {
        let NumberRow { number, account } = r.record()?;
        Ok((number, account))
    })
    .await
}

static OWNER: Sql = Sql::new(|| NUMBERS.select_one(columns!(NumberRow: account)));

/// Returns the account that owns a number.
pub async fn owner(conn: &mut Conn, number: &str) -> StoreResult<Option<AccountId>> {
    conn.query_one(&OWNER, &[number.into()], row::get).await
}
