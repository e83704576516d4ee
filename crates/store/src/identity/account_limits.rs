//! The limits that the operator has set for single accounts.

use crate::db::Conn;
use crate::db::field::Field;
use crate::db::record::{Record, columns, record};
use crate::db::row;
use crate::db::table::{Sql, Table, names};
use crate::error::StoreResult;
use heliograph_domain::account_limit::AccountLimit;
use heliograph_domain::id::AccountId;

record! {
    /// A row of `account_limits`.
    struct AccountLimitRow {
        account: AccountId,
        name: String,
        value: i64,
    }
}

const ACCOUNT_LIMITS: Table =
    Table { name: "account_limits", key: columns!(AccountLimitRow: account, name) };

static SET: Sql = Sql::new(|| {
    let tail = "ON CONFLICT (account, name) DO UPDATE SET value = excluded.value";
    ACCOUNT_LIMITS.insert_one(AccountLimitRow::COLUMNS, &[], tail)
});

/// Sets a limit of an account; 0 means no limit.
pub async fn set(
    tx: &mut Conn,
    account: AccountId,
    limit: AccountLimit,
    value: u32,
) -> StoreResult<()> {
    let value = i64::from(value);
    tx.execute(&SET, &[account.value(), limit.name().into(), value.value()]).await.map(drop)
}

static CLEAR: Sql = Sql::new(|| ACCOUNT_LIMITS.delete_one());

/// Gives an account the default of a limit again.
pub async fn clear(tx: &mut Conn, account: AccountId, limit: AccountLimit) -> StoreResult<()> {
    tx.execute(&CLEAR, &[account.value(), limit.name().into()]).await.map(drop)
}

static ALL: Sql =
    Sql::new(|| format!("SELECT {} FROM account_limits", names(AccountLimitRow::COLUMNS)));

/// Returns the limits that differ from the defaults, of all accounts. Limits that only a newer
/// version knows are left out.
pub async fn all(conn: &mut Conn) -> StoreResult<Vec<(AccountId, AccountLimit, u32)>> {
    let rows: Vec<AccountLimitRow> = conn.query(&ALL, &[], row::record).await?;
    let known = |row: AccountLimitRow| {
        let value = u32::try_from(row.value).unwrap_or(u32::MAX);
        Some((row.account, AccountLimit::from_name(&row.name)?, value))
    };
    Ok(rows.into_iter().filter_map(known).collect())
}
