//! Phone numbers that receive inbound messages, and their accounts.

use crate::kernel::audit::{self, Actor, AuditAction};
use crate::kernel::context::{Context, NumberOwners};
use crate::kernel::error::{ConflictReason, Error, Result};
use crate::messaging::inbound::conversation_heads;
use crate::messaging::keywords;
use async_recursion::async_recursion as boxed;
use heliograph_domain::id::AccountId;
use heliograph_store::messaging::conversations;
use heliograph_store::messaging::inbound_messages;
use heliograph_store::operations::numbers;

/// Returns the accounts of all assigned numbers.
#[boxed]
pub async fn owners(cx: &Context) -> Result<NumberOwners> {
    let all = numbers::list(&mut cx.db.read().await?).await?.into_iter();
    Ok(NumberOwners(all.map(|(number, account, _)| (number, account)).collect()))
}

/// Assigns a phone number to an account. Earlier messages to the number are assigned with it, and
/// their keywords are applied.
///
/// # Errors
/// [`ConflictReason::NumberAssigned`] when the number belongs to another account: a number is moved
/// only by [`reassign`], never as a side effect of a start.
#[boxed]
pub async fn assign(cx: &Context, number: &str, account: AccountId) -> Result<()> {
    let mut tx = cx.db.write().await?;
    let assigned = numbers::assign(&mut tx, number, account).await?;
    let owner = numbers::owner(&mut tx, number).await?.unwrap_or(account);
    if owner != account {
        return Err(Error::Conflict(ConflictReason::NumberAssigned(owner)));
    }
    // Each time: another node may have stored one while this node assigned the number.
    keywords::process_backlog(cx, &mut tx, number, account).await?;
    let mut last = inbound_messages::last_unassigned(&mut tx, number).await?;
    last.iter_mut().for_each(|message| message.account = account);
    conversations::upsert(&mut tx, &conversation_heads(&last)).await?;
    let messages = inbound_messages::assign_account(&mut tx, number, account).await?;
    if assigned {
        let by = Actor::operator(account);
        audit::record(cx, &mut tx, &by, AuditAction::NumberAssigned, number).await?;
    }
    tx.commit().await?;
    if assigned || messages > 0 {
        tracing::info!(number, account = account.0, messages, "number assigned");
    }
    Ok(())
}

/// Moves an assigned phone number to another account and returns the account that had it. Messages
/// that arrived before stay where they are.
///
/// # Errors
/// [`Error::NotFound`] when the number is not assigned.
#[boxed]
pub async fn reassign(cx: &Context, number: &str, account: AccountId) -> Result<AccountId> {
    let mut tx = cx.db.write().await?;
    let before = numbers::owner(&mut tx, number).await?.ok_or(Error::NotFound)?;
    if before != account {
        numbers::reassign(&mut tx, number, account).await?;
        for (account, action) in
            [(before, AuditAction::NumberRemoved), (account, AuditAction::NumberAssigned)]
        {
            audit::record(cx, &mut tx, &Actor::operator(account), action, number).await?;
        }
    }
    tx.commit().await?;
    Ok(before)
}

/// Returns all numbers with their accounts and the names of these, by number.
#[boxed]
pub async fn list(cx: &Context) -> Result<Vec<(String, AccountId, String)>> {
    Ok(numbers::list(&mut cx.db.read().await?).await?)
}
