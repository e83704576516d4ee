//! Charging messages.
//!
//! The price of a message is reserved when the message is accepted, captured when its parts are
//! sent, and released when it fails. The state machine computes what is captured and released (see
//! [`message::balance_change`]).

use heliograph_domain::id::{AccountId, MessageId};
use heliograph_domain::message::{self, Message, MessageState};
use heliograph_domain::money::Amount;
use heliograph_store::billing::balances::{self, BalanceChange};
use heliograph_store::{Conn, StoreResult};
use std::collections::{BTreeMap, HashSet};

/// The balance changes of one transaction, by account.
#[derive(Debug, Default)]
pub struct BalanceChanges(BTreeMap<AccountId, BalanceChange>);

impl BalanceChanges {
    /// Adds what is captured and released by a change of state of a message.
    pub fn add(&mut self, account: AccountId, before: &MessageState, after: &MessageState) {
        let (available, reserved) = message::balance_change(before, after);
        if available != Amount::ZERO || reserved != Amount::ZERO {
            let change = self.of(account);
            change.available = change.available + available;
            change.reserved = change.reserved + reserved;
        }
    }

    fn of(&mut self, account: AccountId) -> &mut BalanceChange {
        self.0.entry(account).or_insert_with(|| BalanceChange::none(account))
    }
}

/// Applies the balance changes, reserves the prices of new messages, and returns the messages that
/// the balance of their account does not cover. Where it does not cover all messages of an account,
/// they are reserved one by one, in the order given.
pub async fn reserve_prices(
    tx: &mut Conn,
    messages: &[&Message],
    mut changes: BalanceChanges,
) -> StoreResult<HashSet<MessageId>> {
    let priced = messages.iter().filter(|m| m.price() != Amount::ZERO);
    for message in priced.clone() {
        let change = changes.of(message.account);
        change.to_reserve = change.to_reserve + message.price();
    }
    let mut changes = changes.0;
    balances::lock(tx, &changes.keys().copied().collect()).await?;
    let all: Vec<_> = changes.values().copied().collect();
    for covered in balances::adjust_and_reserve(tx, &all).await? {
        changes.remove(&covered);
    }
    let mut rejected = HashSet::new();
    if changes.is_empty() {
        return Ok(rejected);
    }
    let adjusted: Vec<_> = changes.values().map(|c| (c.account, c.available, c.reserved)).collect();
    balances::adjust(tx, &adjusted).await?;
    for message in priced.filter(|m| changes.contains_key(&m.account)) {
        let price = (message.account, message.price());
        if balances::reserve(tx, &[price]).await?.is_empty() {
            rejected.insert(message.id);
        }
    }
    Ok(rejected)
}
