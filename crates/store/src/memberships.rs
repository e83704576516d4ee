//! Who belongs to an account, and what each may do there.

use crate::db::Conn;
use crate::error::{Error, Result};
use crate::row::Row;
use heliograph_domain::account::{Mode, Role};
use heliograph_domain::id::{AccountId, UserId};

/// A person in an account.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Member {
    /// Who.
    pub user: UserId,
    /// Their address.
    pub email: String,
    /// What they may do.
    pub role: Role,
    /// Whether a second factor is asked of them.
    pub second_factor: bool,
}

/// The people of an account, by address.
///
/// # Errors
/// As any read.
pub async fn of(conn: &mut Conn, account: AccountId) -> Result<Vec<Member>> {
    let sql = "SELECT u.id, u.email, m.role, u.totp_step FROM memberships m JOIN users u ON u.id = m.member
        WHERE m.account = $1 ORDER BY u.email";
    conn.query(sql, &[account.0.into()], member).await
}

/// Lets nobody else change who belongs to an account while this transaction lasts, so that the last owner is
/// counted right. Nothing to do on SQLite, where one transaction writes at a time.
///
/// # Errors
/// As any write.
pub async fn lock(tx: &mut Conn, account: AccountId) -> Result<()> {
    let sql = "SELECT id FROM accounts WHERE id = $1 FOR NO KEY UPDATE";
    match tx {
        Conn::Sqlite(_) => Ok(()),
        Conn::Postgres(_) => tx.query(sql, &[account.0.into()], |_| Ok(())).await.map(drop),
    }
}

/// Takes a person in; false when they belong to the account already.
///
/// # Errors
/// As any write.
pub async fn insert(tx: &mut Conn, account: AccountId, user: UserId, role: Role) -> Result<bool> {
    let sql = "INSERT INTO memberships (account, member, role) VALUES ($1, $2, $3)
        ON CONFLICT (member, account) DO NOTHING";
    let params = [account.0.into(), user.0.into(), role.code().into()];
    Ok(tx.execute(sql, &params).await? > 0)
}

/// Gives a person another role.
///
/// # Errors
/// As any write.
pub async fn set_role(tx: &mut Conn, account: AccountId, user: UserId, role: Role) -> Result<()> {
    let sql = "UPDATE memberships SET role = $3 WHERE account = $1 AND member = $2";
    tx.execute(sql, &[account.0.into(), user.0.into(), role.code().into()]).await.map(drop)
}

/// Takes a person out. The sessions in which they look at the account look at another one of theirs from now on; where
/// there is none, they end.
///
/// # Errors
/// As any write.
pub async fn remove(tx: &mut Conn, account: AccountId, user: UserId) -> Result<()> {
    let params = [account.0.into(), user.0.into()];
    tx.execute("DELETE FROM memberships WHERE account = $1 AND member = $2", &params).await?;
    let sql = "UPDATE sessions SET account = (SELECT MIN(account) FROM memberships WHERE member = $2), mode = $3
        WHERE account = $1 AND member = $2 AND EXISTS (SELECT 1 FROM memberships WHERE member = $2)";
    tx.execute(sql, &[account.0.into(), user.0.into(), Mode::Test.code().into()]).await?;
    tx.execute("DELETE FROM sessions WHERE account = $1 AND member = $2", &params).await.map(drop)
}

fn member(r: &Row<'_>) -> Result<Member> {
    Ok(Member {
        user: UserId(r.uuid(0)?),
        email: r.text(1)?,
        role: Role::from_code(r.small(2)?).ok_or_else(|| Error::corrupt("unknown role"))?,
        second_factor: r.opt_int(3)?.is_some(),
    })
}
