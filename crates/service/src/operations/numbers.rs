//! Phone numbers that receive inbound messages, and their accounts.

use crate::kernel::context::Context;
use crate::kernel::error::{ConflictReason, Error, Result};
use crate::messaging::inbound::conversation_heads;
use crate::messaging::keywords;
use async_recursion::async_recursion as boxed;
use heliograph_store::identity::accounts;
use heliograph_store::messaging::conversations;
use heliograph_store::messaging::inbound_messages;
use heliograph_store::operations::numbers;

/// Assigns phone numbers to the accounts of these email addresses. Earlier messages to a number are
/// assigned with it, and their keywords are applied.
///
/// # Errors
/// [`Error::Conflict`] with the email address of a person who has no account.
#[boxed]
pub async fn assign(cx: &Context, all: &[(String, String)]) -> Result<()> {
    let mut tx = cx.db.write().await?;
    for (number, email) in all {
        let account = accounts::by_email(&mut tx, email).await?;
        let account = account
            .ok_or_else(|| Error::Conflict(ConflictReason::UnknownAccount(email.clone())))?
            .id;
        let assigned = numbers::assign(&mut tx, number, account).await?;
        // Each time: another node may have stored one while this node assigned the number.
        keywords::process_backlog(cx, &mut tx, number, account).await?;
        let mut last = inbound_messages::last_unassigned(&mut tx, number).await?;
        last.iter_mut().for_each(|message| message.account = account);
        conversations::upsert(&mut tx, &conversation_heads(&last)).await?;
        let messages = inbound_messages::assign_account(&mut tx, number, account).await?;
        if assigned || messages > 0 {
            tracing::info!(number, account = account.0, messages, "number assigned");
        }
    }
    Ok(tx.commit().await?)
}
