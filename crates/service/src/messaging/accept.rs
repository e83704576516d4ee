//! Accept: the only way in which a message is created.
//!
//! Accepting works in two steps around everything else in the transaction, so that rows are locked
//! in the same order on every node: [`check`] claims idempotency keys and checks API keys again,
//! [`store`] reserves the prices and stores the accepted messages.

use crate::audience::optouts::{self, ListEntry};
use crate::billing::charging::{self, BalanceChanges};
use crate::kernel::commands::accept::{Accept, AcceptOutcome};
use crate::kernel::commands::claim::DispatchItem;
use crate::kernel::context::Context;
use crate::messaging::dispatch::DispatchQueues;
use async_recursion::async_recursion as boxed;
use heliograph_domain::account::{Mode, Scope, Scopes};
use heliograph_domain::account_limit::AccountLimit;
use heliograph_domain::id::{ApiKeyId, CarrierId, MessageId, NodeId};
use heliograph_domain::lease::{LEASE, Lane, Lease, LeasedMessage};
use heliograph_domain::message::Message;
use heliograph_domain::time::Timestamp;
use heliograph_store::identity::api_keys;
use heliograph_store::messaging::messages;
use heliograph_store::messaging::queue;
use heliograph_store::{Conn, StoreResult, idempotency};
use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::Instant;
use tokio::sync::OwnedSemaphorePermit;
use uuid::Uuid;

/// The outcomes of a batch, in the order of its accepts; `Done` until something rejects the
/// message.
pub type AcceptOutcomes = Vec<AcceptOutcome>;

/// The accepts of a batch with their outcomes so far.
#[derive(Debug)]
pub struct CheckedAccepts<'a> {
    /// The accepts.
    pub accepts: &'a [Accept],
    /// The outcomes, in the order of the accepts.
    pub outcomes: AcceptOutcomes,
}

/// Checks API keys, idempotency keys and opt-outs, in this order: a repeated request gets its first
/// answer even when its recipient has opted out since.
#[boxed]
pub async fn check(
    tx: &mut Conn,
    accepts: &[Accept],
    now: Timestamp,
) -> StoreResult<AcceptOutcomes> {
    let used: HashSet<ApiKeyId> = accepts.iter().filter_map(|a| a.message.api_key).collect();
    let used: Vec<ApiKeyId> = used.into_iter().collect();
    let pairs: Vec<ListEntry> =
        accepts.iter().filter_map(|a| optouts::enforced_entry(&a.message)).collect();
    let listed = heliograph_store::audience::optouts::listed(&pairs);
    let (valid, listed) = tx.query_both(api_keys::valid(&used), listed).await?;
    let mut outcomes = by_api_key(accepts, &valid.into_iter().collect());
    by_idempotency_key(tx, accepts, &mut outcomes, now).await?;
    reject_opted_out(tx, accepts, &mut outcomes, &listed.into_iter().collect()).await?;
    Ok(outcomes)
}

fn by_api_key(accepts: &[Accept], valid: &HashMap<ApiKeyId, Scopes>) -> AcceptOutcomes {
    let outcome = |a: &Accept| match a.message.api_key {
        Some(key) if !valid.get(&key).is_some_and(|s| s.allow(Scope::Send)) => {
            AcceptOutcome::KeyInvalid
        }
        _ => AcceptOutcome::Done,
    };
    accepts.iter().map(outcome).collect()
}

async fn by_idempotency_key(
    tx: &mut Conn,
    accepts: &[Accept],
    outcomes: &mut AcceptOutcomes,
    now: Timestamp,
) -> StoreResult<()> {
    let with_key = |(a, v): (&Accept, &AcceptOutcome)| {
        let (key, fingerprint) = a.idempotency.clone().filter(|_| *v == AcceptOutcome::Done)?;
        Some((key, fingerprint, a.message.id.0))
    };
    let keyed: Vec<_> = accepts.iter().zip(outcomes.iter()).filter_map(with_key).collect();
    if keyed.is_empty() {
        return Ok(());
    }
    let rows: Vec<_> = keyed.iter().map(|(k, f, made)| (k, f, *made)).collect();
    let fresh: HashSet<Uuid> = idempotency::insert(tx, &rows, now).await?.into_iter().collect();
    for (accept, outcome) in accepts.iter().zip(outcomes) {
        let Some((key, fingerprint)) = &accept.idempotency else { continue };
        if *outcome != AcceptOutcome::Done || fresh.contains(&accept.message.id.0) {
            continue;
        }
        let Some(record) = idempotency::find(tx, key).await? else { continue };
        *outcome = if record.fingerprint == fingerprint {
            AcceptOutcome::Replayed(MessageId(record.resource))
        } else {
            AcceptOutcome::KeyReused
        };
    }
    Ok(())
}

/// Returns the messages that nothing has rejected yet.
fn accepted<'a>(
    accepts: &'a [Accept],
    outcomes: &[AcceptOutcome],
) -> impl Iterator<Item = &'a Message> {
    let both = accepts.iter().zip(outcomes);
    both.filter(|(_, outcome)| **outcome == AcceptOutcome::Done).map(|(a, _)| &*a.message)
}

/// Rejects messages whose recipient is on the opt-out list that they enforce.
async fn reject_opted_out(
    tx: &mut Conn,
    accepts: &[Accept],
    outcomes: &mut AcceptOutcomes,
    listed: &HashSet<ListEntry>,
) -> StoreResult<()> {
    let is_listed = |message: &&Message| {
        optouts::enforced_entry(message).is_some_and(|entry| listed.contains(&entry))
    };
    let opted_out = accepted(accepts, outcomes).filter(is_listed).map(|m| m.id).collect();
    reject(tx, accepts, outcomes, &opted_out, AcceptOutcome::OptedOut).await
}

/// Rejects test messages of accounts that have reached a limit.
async fn reject_over_limit(
    cx: &Context,
    tx: &mut Conn,
    accepts: &[Accept],
    outcomes: &mut AcceptOutcomes,
) -> StoreResult<()> {
    let mut rejected: HashMap<AccountLimit, HashSet<MessageId>> = HashMap::new();
    for message in accepted(accepts, outcomes).filter(|m| m.mode == Mode::Test) {
        if let Err(limit) = cx.limits.admit_test_message(message.account) {
            rejected.entry(limit).or_default().insert(message.id);
        }
    }
    for (limit, messages) in rejected {
        let reason = AcceptOutcome::LimitReached(limit);
        reject(tx, accepts, outcomes, &messages, reason).await?;
    }
    Ok(())
}

/// The result of [`store`], published once the transaction is durable.
#[derive(Debug, Default)]
pub struct StoredBatch {
    /// The outcomes, in the order of the accepts.
    pub outcomes: AcceptOutcomes,
    /// The messages that are already leased to this node's dispatchers.
    pub handed_over: HashMap<CarrierId, Vec<DispatchItem>>,
    /// The carriers whose dispatcher has to claim, since not everything could be handed over.
    pub backlogged: HashSet<CarrierId>,
}

/// Applies the balance changes of the progress, reserves the price of new messages, and stores the
/// messages.
pub async fn store(
    cx: &Context,
    queues: &DispatchQueues,
    tx: &mut Conn,
    checked: CheckedAccepts<'_>,
    balances: BalanceChanges,
) -> StoreResult<StoredBatch> {
    let CheckedAccepts { accepts, mut outcomes } = checked;
    reject_over_limit(cx, tx, accepts, &mut outcomes).await?;
    let fresh: Vec<_> = accepted(accepts, &outcomes).collect();
    let unpaid = charging::reserve_prices(tx, &fresh, balances).await?;
    reject(tx, accepts, &mut outcomes, &unpaid, AcceptOutcome::InsufficientBalance).await?;
    let since = Instant::now();
    let now = cx.db.now();
    let mut stored = StoredBatch::default();
    let mut rows: Vec<(&Message, Option<NodeId>)> = Vec::with_capacity(accepts.len());
    for (accept, _) in accepts.iter().zip(&outcomes).filter(|(_, v)| **v == AcceptOutcome::Done) {
        let message = &accept.message;
        let room = queues.reserve(message.carrier).filter(|_| message.due_at() <= now);
        rows.push((message, room.as_ref().map(|_| cx.node)));
        match room {
            Some(room) => {
                let handed = hand(cx.node, message, since, room);
                stored.handed_over.entry(message.carrier).or_default().push(handed);
            }
            None => drop(stored.backlogged.insert(message.carrier)),
        }
    }
    let accepted: Vec<&Message> = rows.iter().map(|(m, _)| *m).collect();
    messages::insert(tx, &accepted).await?;
    queue::insert(tx, &rows, now.after(LEASE)).await?;
    stored.outcomes = outcomes;
    Ok(stored)
}

fn hand(
    node: NodeId,
    message: &Arc<Message>,
    since: Instant,
    room: OwnedSemaphorePermit,
) -> DispatchItem {
    let lease = Lease {
        carrier: message.carrier,
        lane: Lane::SINGLE,
        due_at: message.due_at(),
        message: message.id,
        account: message.account,
        owner: node,
        attempt: 1,
    };
    let leased = LeasedMessage {
        lease,
        message: message.clone(),
        tries: 0,
        doubts: 0,
        in_doubt: false,
        accepted_parts: Vec::new(),
    };
    DispatchItem { leased, since, room }
}

/// Rejects messages and their duplicates in the same batch, and releases their idempotency keys.
async fn reject(
    tx: &mut Conn,
    accepts: &[Accept],
    outcomes: &mut AcceptOutcomes,
    rejected: &HashSet<MessageId>,
    reason: AcceptOutcome,
) -> StoreResult<()> {
    if rejected.is_empty() {
        return Ok(());
    }
    let mut keys = Vec::new();
    for (accept, outcome) in accepts.iter().zip(outcomes.iter_mut()) {
        match outcome {
            AcceptOutcome::Replayed(message) if rejected.contains(message) => *outcome = reason,
            AcceptOutcome::Done if rejected.contains(&accept.message.id) => {
                *outcome = reason;
                keys.extend(accept.idempotency.as_ref().map(|(key, _)| key));
            }
            _ => {}
        }
    }
    idempotency::delete(tx, &keys).await
}
