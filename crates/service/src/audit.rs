//! The audit log: each thing of consequence leaves a line, in the transaction that does it.

use crate::context::Context;
use crate::error::Result;
use heliograph_domain::id::{AccountId, AuditId, UserId};
use heliograph_store::Conn;
use heliograph_store::audit;
pub use heliograph_store::audit::Deed;

/// Who does something, and from where.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Actor {
    /// To which account.
    pub account: AccountId,
    /// Who; nobody for the command line.
    pub user: Option<UserId>,
    /// From which address.
    pub address: String,
}

impl Actor {
    /// The operator, by the command line.
    pub const fn operator(account: AccountId) -> Self {
        Self { account, user: None, address: String::new() }
    }
}

/// Writes down what is done. `action` is a fixed word or two, `detail` names the thing and is never a secret.
///
/// # Errors
/// As any write.
pub async fn write(
    cx: &Context,
    tx: &mut Conn,
    actor: &Actor,
    (action, detail): (&str, &str),
) -> heliograph_store::Result<()> {
    let (id, at) = cx.next_id();
    let deed = Deed {
        id: AuditId(id),
        account: actor.account,
        actor: actor.user,
        action: action.to_owned(),
        detail: detail.to_owned(),
        address: actor.address.clone(),
        at,
    };
    audit::insert(tx, &deed).await
}

/// What was done to an account before `before`, the newest first, with the addresses of who did it.
///
/// # Errors
/// What keeps the database away.
pub async fn list(
    cx: &Context,
    account: AccountId,
    (before, limit): (AuditId, i64),
) -> Result<Vec<(Deed, Option<String>)>> {
    let mut conn = cx.db.read().await?;
    Ok(audit::of(&mut conn, account, before, limit).await?)
}
