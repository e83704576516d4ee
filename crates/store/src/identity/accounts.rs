//! Accounts.

use crate::db::Conn;
use crate::db::field::Field;
use crate::db::record::{Record, columns, record};
use crate::db::row::{self, Row};
use crate::db::table::{Sql, Table, names};
use crate::error::{StoreError, StoreResult};
use heliograph_domain::account::Role;
use heliograph_domain::id::{AccountId, UserId};
use heliograph_domain::money::Amount;
use heliograph_domain::time::Timestamp;

record! {
    /// An account.
    #[derive(Clone, PartialEq, Eq, Debug)]
    pub struct Account {
        /// The account's id.
        pub id: AccountId,
        /// The name: the email address of the person who opened the account, until they change it.
        pub name: String,
        /// The currency, ISO 4217.
        pub currency: String,
        /// The amount that can be spent.
        pub available: Amount,
        /// The amount that is reserved for messages on their way.
        pub reserved: Amount,
        /// The time at which the account was opened.
        pub created_at: Timestamp,
    }
}

const ACCOUNTS: Table = Table { name: "accounts", key: columns!(Account: id) };

static INSERT: Sql = Sql::new(|| {
    ACCOUNTS.insert_one(columns!(Account: name, currency, created_at), &[], "RETURNING id")
});

/// Creates an account without members and returns its id.
pub async fn insert(
    tx: &mut Conn,
    name: &str,
    currency: &str,
    at: Timestamp,
) -> StoreResult<AccountId> {
    let params = [name.into(), currency.into(), at.value()];
    let id = tx.query_one(&INSERT, &params, row::get).await?;
    id.ok_or_else(|| StoreError::corrupt("an inserted account has no id"))
}

static ALL: Sql =
    Sql::new(|| format!("SELECT {} FROM accounts ORDER BY id", names(Account::COLUMNS)));

/// Returns all accounts, oldest first.
pub async fn all(conn: &mut Conn) -> StoreResult<Vec<Account>> {
    conn.query(&ALL, &[], row::record).await
}

static SEARCH: Sql = Sql::new(|| {
    format!(
        "SELECT {} FROM accounts a
         WHERE id > $1 AND (CAST(id AS text) = $4 OR lower(name) LIKE $3 ESCAPE '!' OR EXISTS (
             SELECT 1 FROM memberships m JOIN users u ON u.id = m.user_id
             WHERE m.account = a.id AND u.email LIKE $3 ESCAPE '!'))
         ORDER BY id LIMIT $2",
        names(Account::COLUMNS)
    )
});

/// Returns up to `limit` accounts after `after`, oldest first, whose ID is `part`, or whose name or a
/// member's email address contains it. It is lower-case.
pub async fn search(
    conn: &mut Conn,
    part: &str,
    after: AccountId,
    limit: i64,
) -> StoreResult<Vec<Account>> {
    let literal = part.replace('!', "!!").replace('%', "!%").replace('_', "!_");
    let pattern = format!("%{literal}%");
    let params = [after.value(), limit.into(), pattern.value(), part.into()];
    conn.query(&SEARCH, &params, row::record).await
}

static BY_ID: Sql = Sql::new(|| ACCOUNTS.select_one(Account::COLUMNS));

/// Returns the account with this id.
pub async fn by_id(conn: &mut Conn, id: AccountId) -> StoreResult<Option<Account>> {
    conn.query_one(&BY_ID, &[id.value()], row::record).await
}

/// Returns the accounts of a user, with their names and the user's role in each.
pub async fn list_for_user(
    conn: &mut Conn,
    user: UserId,
) -> StoreResult<Vec<(AccountId, String, Role)>> {
    let sql = "SELECT a.id, a.name, m.role FROM memberships m JOIN accounts a ON a.id = m.account
        WHERE m.user_id = $1 ORDER BY a.id";
    conn.query(sql, &[user.value()], |r| Ok((r.get()?, r.get()?, r.get()?))).await
}

/// Returns the user with this email address.
pub async fn user_by_email(conn: &mut Conn, email: &str) -> StoreResult<Option<UserId>> {
    let sql = "SELECT id FROM users WHERE email = $1";
    conn.query_one(sql, &[email.into()], row::get).await
}

/// Returns the email address of a member of an account.
pub async fn member_email(
    conn: &mut Conn,
    id: AccountId,
    user: UserId,
) -> StoreResult<Option<String>> {
    let sql = "SELECT u.email FROM memberships m JOIN users u ON u.id = m.user_id
        WHERE m.account = $1 AND m.user_id = $2";
    conn.query_one(sql, &[id.value(), user.value()], row::get).await
}

static CURRENCY: Sql = Sql::new(|| ACCOUNTS.select_one(columns!(Account: currency)));

/// Returns the currency of an account, ISO 4217.
pub async fn currency(conn: &mut Conn, id: AccountId) -> StoreResult<Option<String>> {
    conn.query_one(&CURRENCY, &[id.value()], row::get).await
}

static BALANCE: Sql = Sql::new(|| ACCOUNTS.select_one(columns!(Account: available, reserved)));

/// Returns the balance of an account: available and reserved.
pub async fn balance(conn: &mut Conn, id: AccountId) -> StoreResult<Option<(Amount, Amount)>> {
    conn.query_one(&BALANCE, &[id.value()], |r| Ok((r.get()?, r.get()?))).await
}

/// The onboarding steps that an account has completed, in either mode.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct FirstSteps {
    /// An API key exists.
    pub key: bool,
    /// A message exists.
    pub message: bool,
    /// A webhook endpoint exists.
    pub webhook: bool,
}

/// Returns the onboarding steps that an account has completed.
pub async fn first_steps(conn: &mut Conn, id: AccountId) -> StoreResult<FirstSteps> {
    let sql =
        "SELECT CASE WHEN EXISTS (SELECT 1 FROM api_keys WHERE account = $1) THEN 1 ELSE 0 END,
            CASE WHEN EXISTS (SELECT 1 FROM messages WHERE account = $1) THEN 1 ELSE 0 END,
            CASE WHEN EXISTS (SELECT 1 FROM endpoints WHERE account = $1) THEN 1 ELSE 0 END";
    let read =
        |r: &mut Row<'_>| Ok(FirstSteps { key: r.get()?, message: r.get()?, webhook: r.get()? });
    let found = conn.query_one(sql, &[id.value()], read).await?;
    Ok(found.unwrap_or(FirstSteps { key: false, message: false, webhook: false }))
}

/// Marks an account as opened by signing up, and not by the operator.
pub async fn mark_self_registered(tx: &mut Conn, id: AccountId) -> StoreResult<()> {
    let sql = "UPDATE accounts SET self_registered = 1 WHERE id = $1";
    tx.execute(sql, &[id.value()]).await.map(drop)
}

/// Returns whether an account was opened by signing up.
pub async fn is_self_registered(conn: &mut Conn, id: AccountId) -> StoreResult<bool> {
    let sql = "SELECT self_registered FROM accounts WHERE id = $1";
    let found: Option<i16> = conn.query_one(sql, &[id.value()], row::get).await?;
    Ok(found.is_some_and(|flag| flag != 0))
}

/// Returns the account after this one.
pub async fn next(conn: &mut Conn, after: AccountId) -> StoreResult<Option<AccountId>> {
    let sql = "SELECT id FROM accounts WHERE id > $1 ORDER BY id LIMIT 1";
    conn.query_one(sql, &[after.value()], row::get).await
}
