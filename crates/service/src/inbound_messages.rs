//! Inbound messages: looking at what people sent.

use crate::caller::Caller;
use crate::context::Context;
use crate::error::{Error, Result};
use heliograph_domain::account::Scope;
use heliograph_domain::id::InboundId;
use heliograph_domain::inbound_message::InboundMessage;
use heliograph_store::inbound_messages;

/// The caller's messages that came before `before`, the newest first.
///
/// # Errors
/// [`Error::Scope`], or what keeps the database away.
pub async fn list(
    cx: &Context,
    caller: &Caller,
    before: InboundId,
    limit: i64,
) -> Result<Vec<InboundMessage>> {
    caller.needs(Scope::Read)?;
    let mut conn = cx.db.read().await?;
    let whose = (caller.account, caller.mode);
    Ok(inbound_messages::of(&mut conn, whose, before, limit).await?)
}

/// One of the caller's messages.
///
/// # Errors
/// [`Error::NotFound`] also for what is another account's or mode's.
pub async fn get(cx: &Context, caller: &Caller, id: InboundId) -> Result<InboundMessage> {
    caller.needs(Scope::Read)?;
    let mut conn = cx.db.read().await?;
    let found = inbound_messages::whole(&mut conn, &[(caller.account, id)]).await?;
    found.into_iter().find(|m| m.mode == caller.mode).ok_or(Error::NotFound)
}
