//! Numbers: who receives what is written to them.

use crate::db::Conn;
use crate::error::Result;
use heliograph_domain::id::AccountId;

/// Gives a number to an account, whoever had it before; whether that changed anything.
///
/// # Errors
/// As any write.
pub async fn assign(tx: &mut Conn, number: &str, account: AccountId) -> Result<bool> {
    let sql = "INSERT INTO numbers (number, account) VALUES ($1, $2)
        ON CONFLICT (number) DO UPDATE SET account = excluded.account WHERE numbers.account <> excluded.account";
    Ok(tx.execute(sql, &[number.into(), account.0.into()]).await? > 0)
}

/// Whose a number is.
///
/// # Errors
/// As any read.
pub async fn owner(conn: &mut Conn, number: &str) -> Result<Option<AccountId>> {
    let sql = "SELECT account FROM numbers WHERE number = $1";
    conn.query_one(sql, &[number.into()], |r| Ok(AccountId(r.int(0)?))).await
}
