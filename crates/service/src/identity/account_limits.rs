//! The limits of an account: showing what is used of them, and changing them as the operator.

use crate::kernel::account_limits::{self as table, day_start};
use crate::kernel::audit::{self, Actor, AuditAction};
use crate::kernel::context::Context;
use crate::kernel::error::Result;
use async_recursion::async_recursion as boxed;
use heliograph_domain::account::Mode;
use heliograph_domain::account_limit::AccountLimit;
use heliograph_domain::id::{AccountId, AuditId};
use heliograph_store::Conn;
use heliograph_store::identity::{account_limits, accounts};
use heliograph_store::webhooks::endpoints;

/// The rows that are counted for an account without a limit of its stored rows.
const MAX_COUNTED: u32 = 1_000_000;

/// A limit of an account, and what is used of it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct LimitUse {
    /// The limit.
    pub limit: AccountLimit,
    /// The value; `None` means no limit.
    pub max: Option<u32>,
    /// True if the operator has set the value for this account.
    pub overridden: bool,
    /// What is used; `None` for a limit whose use is not stored.
    pub used: Option<u64>,
}

/// Returns the limits of an account, with what is used of them.
#[boxed]
pub async fn list(cx: &Context, account: AccountId) -> Result<Vec<LimitUse>> {
    table::refresh(&cx.db, &cx.limits).await?;
    let mut conn = cx.db.read().await?;
    let self_registered = accounts::is_self_registered(&mut conn, account).await?;
    let mut all = Vec::with_capacity(AccountLimit::ALL.len());
    for limit in AccountLimit::ALL {
        let max = cx.limits.max_if(account, limit, self_registered);
        let overridden = cx.limits.override_of(account, limit).is_some();
        let used = used(cx, &mut conn, account, (limit, max)).await?;
        all.push(LimitUse { limit, max, overridden, used });
    }
    Ok(all)
}

async fn used(
    cx: &Context,
    conn: &mut Conn,
    account: AccountId,
    (limit, max): (AccountLimit, Option<u32>),
) -> Result<Option<u64>> {
    let now = cx.db.now();
    let used = match limit {
        AccountLimit::WebhookEndpoints => {
            let all = endpoints::list(conn, account).await?;
            let in_mode = |mode| all.iter().filter(|e| e.mode == mode && !e.local).count();
            u64::try_from(in_mode(Mode::Live).max(in_mode(Mode::Test))).unwrap_or(0)
        }
        AccountLimit::TestMessagesPerDay => table::test_messages_today(conn, account, now).await?,
        AccountLimit::InvitationsPerDay => invitations_today(cx, conn, account).await?,
        AccountLimit::StoredRows => {
            table::stored_rows(conn, account, max.unwrap_or(MAX_COUNTED)).await?
        }
        AccountLimit::RequestsPerSecond
        | AccountLimit::EventStreams
        | AccountLimit::MailsPerDay => return Ok(None),
    };
    Ok(Some(used))
}

/// Returns the number of people who were invited today, also if their invitation was revoked.
pub async fn invitations_today(cx: &Context, conn: &mut Conn, account: AccountId) -> Result<u64> {
    use heliograph_store::identity::audit::count_since;
    let since = AuditId::first_at(day_start(cx.db.now()));
    let count = count_since(conn, account, AuditAction::MemberInvited.code(), since).await?;
    Ok(u64::try_from(count).unwrap_or(0))
}

/// Changes limits of the account that `actor` names. The value `None` means the default again, and
/// 0 no limit. Limits that have the value already are left out.
#[boxed]
pub async fn change(
    cx: &Context,
    actor: &Actor,
    changes: &[(AccountLimit, Option<u32>)],
) -> Result<()> {
    table::refresh(&cx.db, &cx.limits).await?;
    let account = actor.account;
    let mut tx = cx.db.write().await?;
    for (limit, value) in changes.iter().copied() {
        if cx.limits.override_of(account, limit) == value {
            continue;
        }
        let detail = match value {
            Some(value) => {
                account_limits::set(&mut tx, account, limit, value).await?;
                format!("{} = {value}", limit.name())
            }
            None => {
                account_limits::clear(&mut tx, account, limit).await?;
                format!("{} = default", limit.name())
            }
        };
        audit::record(cx, &mut tx, actor, AuditAction::LimitChanged, &detail).await?;
    }
    tx.commit().await?;
    Ok(table::refresh(&cx.db, &cx.limits).await?)
}
