//! Accept: the only way in which a message is created.
//!
//! Accepting works in two steps around everything else in the transaction, so that rows are locked
//! in the same order on every node: [`check`] claims idempotency keys and checks API keys again,
//! [`store`] reserves money and stores the accepted messages.

use crate::audience::optouts::{self, ListEntry};
use crate::kernel::commands::accept::{Accept, AcceptOutcome};
use crate::kernel::commands::claim::DispatchItem;
use crate::kernel::context::Context;
use crate::messaging::dispatch::DispatchQueues;
use crate::messaging::progress::BalanceDeltas;
use async_recursion::async_recursion as boxed;
use heliograph_domain::account::{Scope, Scopes};
use heliograph_domain::id::{AccountId, ApiKeyId, CarrierId, MessageId, NodeId};
use heliograph_domain::lease::{LEASE, Lane, Lease, LeasedMessage};
use heliograph_domain::message::Message;
use heliograph_domain::money::Amount;
use heliograph_domain::time::Timestamp;
use heliograph_store::identity::accounts;
use heliograph_store::identity::accounts::BalanceChange;
use heliograph_store::identity::api_keys;
use heliograph_store::messaging::messages;
use heliograph_store::messaging::queue;
use heliograph_store::{Conn, StoreResult, idempotency};
use std::collections::{BTreeMap, HashMap, HashSet};
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
    pub verdicts: AcceptOutcomes,
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
    let mut verdicts = by_api_key(accepts, &valid.into_iter().collect());
    by_idempotency_key(tx, accepts, &mut verdicts, now).await?;
    reject_opted_out(tx, accepts, &mut verdicts, &listed.into_iter().collect()).await?;
    Ok(verdicts)
}

fn by_api_key(accepts: &[Accept], valid: &HashMap<ApiKeyId, Scopes>) -> AcceptOutcomes {
    let verdict = |a: &Accept| match a.message.api_key {
        Some(key) if !valid.get(&key).is_some_and(|s| s.allow(Scope::Send)) => {
            AcceptOutcome::KeyInvalid
        }
        _ => AcceptOutcome::Done,
    };
    accepts.iter().map(verdict).collect()
}

async fn by_idempotency_key(
    tx: &mut Conn,
    accepts: &[Accept],
    verdicts: &mut AcceptOutcomes,
    now: Timestamp,
) -> StoreResult<()> {
    let with_key = |(a, v): (&Accept, &AcceptOutcome)| {
        let (key, fingerprint) = a.idempotency.clone().filter(|_| *v == AcceptOutcome::Done)?;
        Some((key, fingerprint, a.message.id.0))
    };
    let keyed: Vec<_> = accepts.iter().zip(verdicts.iter()).filter_map(with_key).collect();
    if keyed.is_empty() {
        return Ok(());
    }
    let rows: Vec<_> = keyed.iter().map(|(k, f, made)| (k, f, *made)).collect();
    let fresh: HashSet<Uuid> = idempotency::insert(tx, &rows, now).await?.into_iter().collect();
    for (accept, verdict) in accepts.iter().zip(verdicts) {
        let Some((key, fingerprint)) = &accept.idempotency else { continue };
        if *verdict != AcceptOutcome::Done || fresh.contains(&accept.message.id.0) {
            continue;
        }
        let Some(record) = idempotency::find(tx, key).await? else { continue };
        *verdict = if record.fingerprint == fingerprint {
            AcceptOutcome::Replayed(MessageId(record.resource))
        } else {
            AcceptOutcome::KeyReused
        };
    }
    Ok(())
}

/// Rejects messages whose recipient is on the opt-out list that they enforce.
async fn reject_opted_out(
    tx: &mut Conn,
    accepts: &[Accept],
    verdicts: &mut AcceptOutcomes,
    listed: &HashSet<ListEntry>,
) -> StoreResult<()> {
    let mut opted_out = HashSet::new();
    for (a, v) in accepts.iter().zip(verdicts.iter_mut()) {
        let listed_now =
            optouts::enforced_entry(&a.message).is_some_and(|pair| listed.contains(&pair));
        if listed_now && *v == AcceptOutcome::Done {
            *v = AcceptOutcome::OptedOut;
            opted_out.insert(a.message.id.0);
        }
    }
    if opted_out.is_empty() {
        return Ok(());
    }
    release(tx, accepts, verdicts, &opted_out, AcceptOutcome::OptedOut).await
}

/// The result of [`store`], published once the transaction is durable.
#[derive(Debug, Default)]
pub struct StoredBatch {
    /// The outcomes, in the order of the accepts.
    pub verdicts: AcceptOutcomes,
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
    moves: BalanceDeltas,
) -> StoreResult<StoredBatch> {
    let CheckedAccepts { accepts, mut verdicts } = checked;
    settle(tx, accepts, &mut verdicts, moves).await?;
    let since = Instant::now();
    let now = cx.db.now();
    let mut stored = StoredBatch::default();
    let mut rows: Vec<(&Message, Option<NodeId>)> = Vec::with_capacity(accepts.len());
    for (accept, _) in accepts.iter().zip(&verdicts).filter(|(_, v)| **v == AcceptOutcome::Done) {
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
    stored.verdicts = verdicts;
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

/// Applies the balance changes and reserves the prices, account by account. Where a balance does
/// not cover all messages of an account, they are reserved one by one in the order of arrival.
async fn settle(
    tx: &mut Conn,
    accepts: &[Accept],
    verdicts: &mut AcceptOutcomes,
    moves: BalanceDeltas,
) -> StoreResult<()> {
    let wants = |a: &Accept, v: &AcceptOutcome| {
        *v == AcceptOutcome::Done && a.message.price() != Amount::ZERO
    };
    let due = |(account, (available, reserved)): (AccountId, (Amount, Amount))| {
        (account, BalanceChange { available, reserved, ..BalanceChange::none(account) })
    };
    let mut dues: BTreeMap<AccountId, BalanceChange> = moves.into_iter().map(due).collect();
    for (a, _) in accepts.iter().zip(verdicts.iter()).filter(|(a, v)| wants(a, v)) {
        let account = a.message.account;
        let dues = dues.entry(account).or_insert_with(|| BalanceChange::none(account));
        dues.to_reserve = dues.to_reserve + a.message.price();
    }
    accounts::lock(tx, &dues.keys().copied().collect()).await?;
    let all: Vec<_> = dues.values().copied().collect();
    for enough in accounts::apply_changes(tx, &all).await? {
        dues.remove(&enough);
    }
    if dues.is_empty() {
        return Ok(());
    }
    let moves: Vec<_> = dues.values().map(|d| (d.account, d.available, d.reserved)).collect();
    accounts::adjust_balances(tx, &moves).await?;
    let mut refused: HashSet<Uuid> = HashSet::new();
    for (a, v) in accepts.iter().zip(verdicts.iter_mut()) {
        let account = a.message.account;
        let short = wants(a, v) && dues.contains_key(&account);
        if short && accounts::reserve(tx, &[(account, a.message.price())]).await?.is_empty() {
            *v = AcceptOutcome::InsufficientBalance;
            refused.insert(a.message.id.0);
        }
    }
    release(tx, accepts, verdicts, &refused, AcceptOutcome::InsufficientBalance).await
}

/// Releases the idempotency keys of rejected messages, and rejects their duplicates in the same
/// batch.
async fn release(
    tx: &mut Conn,
    accepts: &[Accept],
    verdicts: &mut AcceptOutcomes,
    refused: &HashSet<Uuid>,
    why: AcceptOutcome,
) -> StoreResult<()> {
    let mut keys = Vec::new();
    for (a, v) in accepts.iter().zip(verdicts.iter_mut()) {
        match v {
            AcceptOutcome::Replayed(made) if refused.contains(&made.0) => *v = why,
            _ if refused.contains(&a.message.id.0) => {
                keys.extend(a.idempotency.as_ref().map(|(k, _)| k));
            }
            _ => {}
        }
    }
    idempotency::delete(tx, &keys).await
}
