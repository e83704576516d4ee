//! Retention: old messages are deleted in small steps, so that the writer never waits for long.

use crate::kernel::context::Context;
use async_recursion::async_recursion as boxed;
use heliograph_domain::account::Mode;
use heliograph_domain::id::{AccountId, MessageId};
use heliograph_domain::money::Amount;
use heliograph_store::billing::ledger::{self, LedgerEntry, LedgerKind};
use heliograph_store::identity::accounts;
use heliograph_store::messaging::{messages, parts};
use heliograph_store::{Conn, StoreResult};
use std::time::Duration;

/// The messages deleted in one transaction, which takes some milliseconds.
const STEP: usize = 250;

/// The place of a deletion that is under way.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RetentionCursor(AccountId);

impl RetentionCursor {
    /// Returns the place before all accounts.
    pub const fn start() -> Self {
        Self(AccountId(0))
    }
}

/// Deletes some old messages, at most those of one account; returns the place to continue at, or
/// `None` when all accounts were visited.
#[boxed]
pub async fn delete_messages(
    cx: &Context,
    cursor: RetentionCursor,
) -> StoreResult<Option<RetentionCursor>> {
    let RetentionCursor(before) = cursor;
    let next = accounts::next(&mut cx.db.read().await?, before).await?;
    let Some(account) = next else { return Ok(None) };
    let (mut more, settings) = (false, cx.settings());
    let test = (Mode::Test, settings.test_message_retention);
    for (mode, keep) in [test, (Mode::Live, settings.live_message_retention)] {
        if let Some(keep) = keep {
            more |= delete_of(cx, (account, mode), keep).await? == STEP;
        }
    }
    // The same account again, while there may be more.
    Ok(Some(RetentionCursor(if more { before } else { account })))
}

async fn delete_of(cx: &Context, whose: (AccountId, Mode), keep: Duration) -> StoreResult<usize> {
    let oldest = MessageId::first_at(cx.db.now().before(keep));
    let limit = i64::try_from(STEP).unwrap_or(i64::MAX);
    let mut tx = cx.db.write().await?;
    let deleted = messages::delete_old(&mut tx, whose, oldest, limit).await?;
    let ids: Vec<MessageId> = deleted.iter().map(|(id, _)| *id).collect();
    parts::delete(&mut tx, whose.0, &ids).await?;
    keep_costs(cx, &mut tx, whose.0, deleted.iter().map(|(_, captured)| *captured)).await?;
    tx.commit().await?;
    Ok(deleted.len())
}

/// Moves the captured amounts of deleted messages into the ledger, so that the books balance.
async fn keep_costs(
    cx: &Context,
    tx: &mut Conn,
    account: AccountId,
    captured: impl Iterator<Item = Amount>,
) -> StoreResult<()> {
    let sum = captured.fold(Amount::ZERO, |sum, amount| sum + amount);
    if sum == Amount::ZERO {
        return Ok(());
    }
    let (id, at) = cx.next_id();
    let kind = LedgerKind::DeletedMessages;
    let entry = LedgerEntry { account, id, kind, amount: -sum, note: String::new(), at };
    ledger::record(tx, &entry).await
}
