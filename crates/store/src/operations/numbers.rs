//! Inbound phone numbers and the accounts that own them.

use crate::db::Conn;
use crate::db::field::Field;
use crate::db::row;
use crate::error::StoreResult;
use heliograph_domain::id::AccountId;

/// Assigns a number to an account, whichever account had it before. Returns whether that changed
/// anything.
pub async fn assign(tx: &mut Conn, number: &str, account: AccountId) -> StoreResult<bool> {
    let sql = "INSERT INTO numbers (number, account) VALUES ($1, $2)
        ON CONFLICT (number) DO UPDATE SET account = excluded.account WHERE numbers.account <> excluded.account";
    Ok(tx.execute(sql, &[number.into(), account.value()]).await? > 0)
}

/// Returns the account that owns a number.
pub async fn owner(conn: &mut Conn, number: &str) -> StoreResult<Option<AccountId>> {
    let sql = "SELECT account FROM numbers WHERE number = $1";
    conn.query_one(sql, &[number.into()], row::get).await
}
