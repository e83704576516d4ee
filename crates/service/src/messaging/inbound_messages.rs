//! Reading inbound messages.

use crate::kernel::caller::Caller;
use crate::kernel::context::Context;
use crate::kernel::error::{Error, Result};
use async_recursion::async_recursion as boxed;
use heliograph_domain::account::Scope;
use heliograph_domain::id::InboundId;
use heliograph_domain::inbound_message::InboundMessage;
use heliograph_store::messaging::inbound_messages;

/// Returns the caller's inbound messages before `before`, the newest first.
#[boxed]
pub async fn list(
    cx: &Context,
    caller: &Caller,
    before: InboundId,
    limit: i64,
) -> Result<Vec<InboundMessage>> {
    caller.require_scope(Scope::Read)?;
    let mut conn = cx.db.read().await?;
    let whose = (caller.account, caller.mode);
    Ok(inbound_messages::list(&mut conn, whose, before, limit).await?)
}

/// Returns an inbound message of the caller.
#[boxed]
pub async fn get(cx: &Context, caller: &Caller, id: InboundId) -> Result<InboundMessage> {
    caller.require_scope(Scope::Read)?;
    let mut conn = cx.db.read().await?;
    let found = inbound_messages::get_many(&mut conn, &[(caller.account, id)]).await?;
    found.into_iter().find(|m| m.mode == caller.mode).ok_or(Error::NotFound)
}
