//! Accounts, the people who belong to them, and their balances.

use crate::bulk::Bulk;
use crate::db::Conn;
use crate::error::{Error, Result};
use crate::row::Row;
use heliograph_domain::account::Role;
use heliograph_domain::id::{AccountId, UserId};
use heliograph_domain::money::Amount;
use heliograph_domain::time::Timestamp;
use std::collections::BTreeSet;

/// An account as the command line lists it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Account {
    /// Its number.
    pub id: AccountId,
    /// Its name: the address of the person who opened it, until they change it.
    pub name: String,
    /// ISO 4217.
    pub currency: String,
    /// What can be spent.
    pub available: Amount,
    /// What is set aside for messages on their way.
    pub reserved: Amount,
    /// When it was opened.
    pub created_at: Timestamp,
}

/// Opens an account for a person, who becomes a user if they were none.
///
/// # Errors
/// As any write.
pub async fn create(
    tx: &mut Conn,
    owner: (UserId, &str),
    currency: &str,
    operator: bool,
    at: Timestamp,
) -> Result<Option<AccountId>> {
    let (user, email) = owner;
    let fresh = tx
        .execute(
            "INSERT INTO users (id, email, operator, created_at) VALUES ($1, $2, $3, $4) ON CONFLICT (email) DO NOTHING",
            &[user.0.into(), email.into(), i16::from(operator).into(), at.into()],
        )
        .await?;
    if fresh == 0 {
        return Ok(None);
    }
    let id = tx
        .query_one(
            "INSERT INTO accounts (name, currency, created_at) VALUES ($1, $2, $3) RETURNING id",
            &[email.into(), currency.into(), at.into()],
            |r| Ok(AccountId(r.int(0)?)),
        )
        .await?;
    let Some(account) = id else { return Ok(None) };
    tx.execute(
        "INSERT INTO memberships (account, member, role) VALUES ($1, $2, $3)",
        &[account.0.into(), user.0.into(), Role::Owner.code().into()],
    )
    .await?;
    Ok(Some(account))
}

/// All accounts, the oldest first.
///
/// # Errors
/// As any read.
pub async fn all(conn: &mut Conn) -> Result<Vec<Account>> {
    let sql =
        "SELECT id, name, currency, available, reserved, created_at FROM accounts ORDER BY id";
    conn.query(sql, &[], account).await
}

/// Accounts that come after `after`, the oldest first: those whose name, or the address of one of whose people, has
/// `part` in it. `part` is lower-case.
///
/// # Errors
/// As any read.
pub async fn page(
    conn: &mut Conn,
    part: &str,
    after: AccountId,
    limit: i64,
) -> Result<Vec<Account>> {
    let sql = "SELECT id, name, currency, available, reserved, created_at FROM accounts a
        WHERE id > $1 AND (lower(name) LIKE $3 ESCAPE '!' OR EXISTS (
            SELECT 1 FROM memberships m JOIN users u ON u.id = m.member
            WHERE m.account = a.id AND u.email LIKE $3 ESCAPE '!'))
        ORDER BY id LIMIT $2";
    let literal = part.replace('!', "!!").replace('%', "!%").replace('_', "!_");
    let pattern = format!("%{literal}%");
    conn.query(sql, &[after.0.into(), limit.into(), pattern.as_str().into()], account).await
}

/// The account of the person with this address.
///
/// # Errors
/// As any read.
pub async fn by_email(conn: &mut Conn, email: &str) -> Result<Option<Account>> {
    let sql = "SELECT a.id, a.name, a.currency, a.available, a.reserved, a.created_at
        FROM users u JOIN memberships m ON m.member = u.id JOIN accounts a ON a.id = m.account
        WHERE u.email = $1 ORDER BY a.id LIMIT 1";
    conn.query_one(sql, &[email.into()], account).await
}

/// The accounts that a person belongs to, with their names and what the person may do there.
///
/// # Errors
/// As any read.
pub async fn of_user(conn: &mut Conn, user: UserId) -> Result<Vec<(AccountId, String, Role)>> {
    let sql = "SELECT a.id, a.name, m.role FROM memberships m JOIN accounts a ON a.id = m.account
        WHERE m.member = $1 ORDER BY a.id";
    let read = |r: &Row<'_>| {
        let role = Role::from_code(r.small(2)?).ok_or_else(|| Error::corrupt("unknown role"))?;
        Ok((AccountId(r.int(0)?), r.text(1)?, role))
    };
    conn.query(sql, &[user.0.into()], read).await
}

/// The person with this address.
///
/// # Errors
/// As any read.
pub async fn user(conn: &mut Conn, email: &str) -> Result<Option<UserId>> {
    let sql = "SELECT id FROM users WHERE email = $1";
    conn.query_one(sql, &[email.into()], |r| Ok(UserId(r.uuid(0)?))).await
}

/// The address of a person, if they belong to the account.
///
/// # Errors
/// As any read.
pub async fn email_of(conn: &mut Conn, id: AccountId, user: UserId) -> Result<Option<String>> {
    let sql = "SELECT u.email FROM memberships m JOIN users u ON u.id = m.member
        WHERE m.account = $1 AND m.member = $2";
    conn.query_one(sql, &[id.0.into(), user.0.into()], |r| r.text(0)).await
}

/// In what an account is kept, ISO 4217.
///
/// # Errors
/// As any read.
pub async fn currency(conn: &mut Conn, id: AccountId) -> Result<Option<String>> {
    let sql = "SELECT currency FROM accounts WHERE id = $1";
    conn.query_one(sql, &[id.0.into()], |r| r.text(0)).await
}

/// What an account has: available, and reserved.
///
/// # Errors
/// As any read.
pub async fn balance(conn: &mut Conn, id: AccountId) -> Result<Option<(Amount, Amount)>> {
    let sql = "SELECT available, reserved FROM accounts WHERE id = $1";
    conn.query_one(sql, &[id.0.into()], |r| Ok((Amount(r.int(0)?), Amount(r.int(1)?)))).await
}

/// What there is of an account's beginnings, in either mode.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct FirstSteps {
    /// An API key was made.
    pub key: bool,
    /// A message was sent.
    pub message: bool,
    /// A webhook endpoint was registered.
    pub webhook: bool,
}

/// How far somebody who opened an account has come.
///
/// # Errors
/// As any read.
pub async fn first_steps(conn: &mut Conn, id: AccountId) -> Result<FirstSteps> {
    let sql =
        "SELECT CASE WHEN EXISTS (SELECT 1 FROM api_keys WHERE account = $1) THEN 1 ELSE 0 END,
            CASE WHEN EXISTS (SELECT 1 FROM messages WHERE account = $1) THEN 1 ELSE 0 END,
            CASE WHEN EXISTS (SELECT 1 FROM endpoints WHERE account = $1) THEN 1 ELSE 0 END";
    let read = |r: &Row<'_>| {
        Ok(FirstSteps { key: r.int(0)? != 0, message: r.int(1)? != 0, webhook: r.int(2)? != 0 })
    };
    let found = conn.query_one(sql, &[id.0.into()], read).await?;
    Ok(found.unwrap_or(FirstSteps { key: false, message: false, webhook: false }))
}

fn account(r: &Row<'_>) -> Result<Account> {
    Ok(Account {
        id: AccountId(r.int(0)?),
        name: r.text(1)?,
        currency: r.text(2)?,
        available: Amount(r.int(3)?),
        reserved: Amount(r.int(4)?),
        created_at: r.time(5)?,
    })
}

const LOCK: Bulk = Bulk {
    each: "SELECT id FROM accounts WHERE id = $1",
    all: "SELECT a.id FROM unnest($1::bigint[]) AS v (id) JOIN accounts a ON a.id = v.id
          ORDER BY a.id FOR NO KEY UPDATE OF a",
};

/// Locks accounts in the order of their numbers, so that two nodes never wait for each other however
/// they go on. Nothing to do on SQLite, where one transaction writes at a time.
///
/// # Errors
/// As any write.
pub async fn lock(tx: &mut Conn, ids: &BTreeSet<AccountId>) -> Result<()> {
    if ids.len() < 2 || matches!(tx, Conn::Sqlite(_)) {
        return Ok(());
    }
    let rows = ids.iter().map(|id| [id.0.into()]);
    tx.bulk_query(&LOCK, &rows.collect(), |_| Ok(())).await.map(drop)
}

const MOVE: Bulk = Bulk {
    each: "UPDATE accounts SET available = available + $2, reserved = reserved + $3 WHERE id = $1",
    all: "UPDATE accounts a SET available = a.available + v.available, reserved = a.reserved + v.reserved
          FROM (SELECT * FROM unnest($1::bigint[], $2::bigint[], $3::bigint[]) AS u (id, available, reserved) ORDER BY id) v
          WHERE a.id = v.id",
};

/// Adds to `available` and to `reserved`, which the state machine found to be due. Give the accounts
/// in the order of their numbers.
///
/// # Errors
/// As any write; [`crate::Error::Db`] when a balance would fall below zero.
pub async fn move_money(tx: &mut Conn, moves: &[(AccountId, Amount, Amount)]) -> Result<()> {
    let rows = moves.iter().map(|(id, a, r)| [id.0.into(), a.0.into(), r.0.into()]);
    tx.bulk_execute(&MOVE, &rows.collect()).await.map(drop)
}

const SETTLE: Bulk = Bulk {
    each: "UPDATE accounts SET available = available + $2 - $4, reserved = reserved + $3 + $4
           WHERE id = $1 AND available + $2 >= $4 RETURNING id",
    all: "UPDATE accounts a SET available = a.available + v.available - v.wanted,
             reserved = a.reserved + v.reserved + v.wanted
          FROM (SELECT * FROM unnest($1::bigint[], $2::bigint[], $3::bigint[], $4::bigint[])
                  AS u (id, available, reserved, wanted) ORDER BY id) v
          WHERE a.id = v.id AND a.available + v.available >= v.wanted RETURNING a.id",
};

/// What one transaction does to an account.
#[derive(Clone, Copy, Debug)]
pub struct Dues {
    /// Whose.
    pub account: AccountId,
    /// Added to `available`, as the state machine found to be due.
    pub available: Amount,
    /// Added to `reserved`, likewise.
    pub reserved: Amount,
    /// To be set aside after that.
    pub wanted: Amount,
}

impl Dues {
    /// Nothing yet.
    pub const fn none(account: AccountId) -> Self {
        let zero = Amount::ZERO;
        Self { account, available: zero, reserved: zero, wanted: zero }
    }
}

/// Does both at once: [`move_money`] and [`reserve`]. With each account all or nothing; gives back those
/// that had enough. Give the accounts in the order of their numbers.
///
/// # Errors
/// As any write.
pub async fn settle(tx: &mut Conn, dues: &[Dues]) -> Result<Vec<AccountId>> {
    let rows = dues.iter().map(|d| {
        [d.account.0.into(), d.available.0.into(), d.reserved.0.into(), d.wanted.0.into()]
    });
    tx.bulk_query(&SETTLE, &rows.collect(), |r| Ok(AccountId(r.int(0)?))).await
}

/// Sets money aside, from each account all or nothing; gives back those that had enough. Give the
/// accounts in the order of their numbers.
///
/// # Errors
/// As any write.
pub async fn reserve(tx: &mut Conn, wanted: &[(AccountId, Amount)]) -> Result<Vec<AccountId>> {
    let dues = wanted.iter().map(|&(account, wanted)| Dues { wanted, ..Dues::none(account) });
    settle(tx, &dues.collect::<Vec<_>>()).await
}
