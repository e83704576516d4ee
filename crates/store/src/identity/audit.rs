//! The audit log. Rows are only added.

use crate::db::Conn;
use crate::db::bulk::{Bulk, Rows};
use crate::db::field::Field;
use crate::db::record::{Record, columns, record};
use crate::db::row;
use crate::db::table::{Sql, Table, qualified};
use crate::error::StoreResult;
use heliograph_domain::id::{AccountId, AuditId, UserId};
use heliograph_domain::time::Timestamp;
use std::sync::LazyLock;

record! {
    /// An entry of the audit log.
    #[derive(Clone, PartialEq, Eq, Debug)]
    pub struct AuditEntry {
        /// The id, which begins with the time of the action.
        pub id: AuditId,
        /// The account.
        pub account: AccountId,
        /// The user; `None` for the command line.
        pub actor: Option<UserId>,
        /// The code of the action, such as `key_created`.
        pub action: String,
        /// The object of the action, or a code; never a secret.
        pub detail: String,
        /// The IP address.
        pub address: String,
        /// The time of the action.
        pub at: Timestamp,
    }
}

const AUDIT: Table = Table { name: "audit", key: columns!(AuditEntry: account, id) };

static INSERT: LazyLock<Bulk> = LazyLock::new(|| AUDIT.insert(AuditEntry::COLUMNS, &[], ""));

/// Adds an entry.
pub async fn insert(tx: &mut Conn, entry: &AuditEntry) -> StoreResult<()> {
    tx.bulk_execute(&INSERT, &Rows::of(std::iter::once(entry))).await.map(drop)
}

static LIST: Sql = Sql::new(|| {
    format!(
        "SELECT {}, u.email FROM audit d LEFT JOIN users u ON u.id = d.actor
         WHERE d.account = $1 AND d.id < $2 ORDER BY d.id DESC LIMIT $3",
        qualified("d", AuditEntry::COLUMNS)
    )
});

/// Returns up to `limit` entries of an account before `before`, newest first, each with the user's
/// email address.
pub async fn list(
    conn: &mut Conn,
    account: AccountId,
    before: AuditId,
    limit: i64,
) -> StoreResult<Vec<(AuditEntry, Option<String>)>> {
    let params = [account.value(), before.value(), limit.into()];
    conn.query(&LIST, &params, |r| Ok((r.record()?, r.get()?))).await
}

/// Returns how often an action was recorded in an account from `since` on.
pub async fn count_since(
    conn: &mut Conn,
    account: AccountId,
    action: &str,
    since: AuditId,
) -> StoreResult<i64> {
    let sql = "SELECT count(*) FROM audit WHERE account = $1 AND id >= $2 AND action = $3";
    let params = [account.value(), since.value(), action.into()];
    Ok(conn.query_one(sql, &params, row::get).await?.unwrap_or(0))
}
