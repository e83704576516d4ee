//! The members of accounts and their roles.

use crate::db::Conn;
use crate::db::field::Field;
use crate::db::record::{Record, columns, record};
use crate::db::row;
use crate::db::table::{Sql, Table};
use crate::error::StoreResult;
use heliograph_domain::account::{Mode, Role};
use heliograph_domain::id::{AccountId, UserId};

record! {
    /// A user's membership of an account.
    #[derive(Clone, Copy, PartialEq, Eq, Debug)]
    pub struct Membership {
        /// The user.
        pub user: UserId => user_id,
        /// The account.
        pub account: AccountId,
        /// The user's role in the account.
        pub role: Role,
    }
}

const MEMBERSHIPS: Table =
    Table { name: "memberships", key: columns!(Membership: user => user_id, account) };

/// A member of an account.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Member {
    /// The user.
    pub user: UserId,
    /// The user's email address.
    pub email: String,
    /// The user's role in the account.
    pub role: Role,
    /// True if two-factor authentication is enabled.
    pub two_factor: bool,
}

/// Returns the members of an account, by email address.
pub async fn list(conn: &mut Conn, account: AccountId) -> StoreResult<Vec<Member>> {
    let sql = "SELECT u.id, u.email, m.role, u.totp_step FROM memberships m JOIN users u ON u.id = m.user_id
        WHERE m.account = $1 ORDER BY u.email";
    conn.query(sql, &[account.value()], |r| {
        Ok(Member {
            user: r.get()?,
            email: r.get()?,
            role: r.get()?,
            two_factor: r.get::<Option<i64>>()?.is_some(),
        })
    })
    .await
}

/// Returns the role of a user in an account; `None` unless the user is a member.
pub async fn role(conn: &mut Conn, account: AccountId, user: UserId) -> StoreResult<Option<Role>> {
    conn.query_one(&ROLE, &[user.value(), account.value()], row::get).await
}

static ROLE: Sql = Sql::new(|| MEMBERSHIPS.select_one(columns!(Membership: role)));

/// Returns the owners of all accounts: the account and the owner's email address, in this order.
pub async fn owners(conn: &mut Conn) -> StoreResult<Vec<(AccountId, String)>> {
    let sql = "SELECT m.account, u.email FROM memberships m JOIN users u ON u.id = m.user_id
        WHERE m.role = $1 ORDER BY m.account, u.email";
    conn.query(sql, &[Role::Owner.value()], |r| Ok((r.get()?, r.get()?))).await
}

/// Locks the members of an account until the transaction ends, so that the last owner is counted
/// right. SQLite needs no lock: one transaction writes at a time.
pub async fn lock(tx: &mut Conn, account: AccountId) -> StoreResult<()> {
    let sql = "SELECT id FROM accounts WHERE id = $1 FOR NO KEY UPDATE";
    match tx {
        Conn::Sqlite(_) => Ok(()),
        Conn::Postgres(_) => tx.query(sql, &[account.value()], |_| Ok(())).await.map(drop),
    }
}

static INSERT: Sql = Sql::new(|| {
    MEMBERSHIPS.insert_one(Membership::COLUMNS, &[], "ON CONFLICT (user_id, account) DO NOTHING")
});

/// Adds a member. False when the user is a member already.
pub async fn insert(tx: &mut Conn, new: &Membership) -> StoreResult<bool> {
    Ok(tx.execute(&INSERT, &new.values()).await? > 0)
}

static SET_ROLE: Sql = Sql::new(|| MEMBERSHIPS.update_one(columns!(Membership: role)));

/// Changes a member's role.
pub async fn set_role(
    tx: &mut Conn,
    account: AccountId,
    user: UserId,
    role: Role,
) -> StoreResult<()> {
    let params = [user.value(), account.value(), role.value()];
    tx.execute(&SET_ROLE, &params).await.map(drop)
}

static DELETE: Sql = Sql::new(|| MEMBERSHIPS.delete_one());

/// Removes a member. Sessions of the user that show the account are switched to another of the
/// user's accounts, or deleted where there is none.
pub async fn delete(tx: &mut Conn, account: AccountId, user: UserId) -> StoreResult<()> {
    tx.execute(&DELETE, &[user.value(), account.value()]).await?;
    let sql = "UPDATE sessions SET account = (SELECT MIN(account) FROM memberships WHERE user_id = $2), mode = $3
        WHERE account = $1 AND user_id = $2 AND EXISTS (SELECT 1 FROM memberships WHERE user_id = $2)";
    tx.execute(sql, &[account.value(), user.value(), Mode::Test.code().into()]).await?;
    let sql = "DELETE FROM sessions WHERE account = $1 AND user_id = $2";
    tx.execute(sql, &[account.value(), user.value()]).await.map(drop)
}
