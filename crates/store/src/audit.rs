//! The audit log: what people did. Rows are only ever added.

use crate::db::Conn;
use crate::error::Result;
use crate::row::Row;
use heliograph_domain::id::{AccountId, AuditId, UserId};
use heliograph_domain::time::Timestamp;

/// One thing that somebody did.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Deed {
    /// Its id, which tells when.
    pub id: AuditId,
    /// To which account.
    pub account: AccountId,
    /// Who; nobody when it was done by the command line.
    pub actor: Option<UserId>,
    /// What, in a fixed word or two, such as `key made`.
    pub action: String,
    /// To what; never a secret.
    pub detail: String,
    /// From which address.
    pub address: String,
    /// When.
    pub at: Timestamp,
}

/// Adds a line.
///
/// # Errors
/// As any write.
pub async fn insert(tx: &mut Conn, d: &Deed) -> Result<()> {
    let sql = "INSERT INTO audit (account, id, actor, action, detail, address, at)
        VALUES ($1, $2, $3, $4, $5, $6, $7)";
    let params = [
        d.account.0.into(),
        d.id.0.into(),
        d.actor.map(|a| a.0).into(),
        d.action.as_str().into(),
        d.detail.as_str().into(),
        d.address.as_str().into(),
        d.at.into(),
    ];
    tx.execute(sql, &params).await.map(drop)
}

/// What was done to an account before `before`, the newest first, each with the address of who did it; at most `limit`.
///
/// # Errors
/// As any read.
pub async fn of(
    conn: &mut Conn,
    account: AccountId,
    before: AuditId,
    limit: i64,
) -> Result<Vec<(Deed, Option<String>)>> {
    let sql = "SELECT d.account, d.id, d.actor, d.action, d.detail, d.address, d.at, u.email
        FROM audit d LEFT JOIN users u ON u.id = d.actor
        WHERE d.account = $1 AND d.id < $2 ORDER BY d.id DESC LIMIT $3";
    let read = |r: &Row<'_>| Ok((deed(r)?, r.opt_text(7)?));
    conn.query(sql, &[account.0.into(), before.0.into(), limit.into()], read).await
}

fn deed(r: &Row<'_>) -> Result<Deed> {
    Ok(Deed {
        account: AccountId(r.int(0)?),
        id: AuditId(r.uuid(1)?),
        actor: r.opt_uuid(2)?.map(UserId),
        action: r.text(3)?,
        detail: r.text(4)?,
        address: r.text(5)?,
        at: r.time(6)?,
    })
}
