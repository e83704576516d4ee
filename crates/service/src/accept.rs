//! Accept: the one way in which a message comes into being.
//!
//! In two steps around everything else in the transaction, so that rows are locked in one order on
//! every node: [`open`] claims idempotency keys and looks at API keys again, [`close`] reserves money
//! and stores what may come into being.

use crate::context::Context;
use crate::dispatch::Desks;
use crate::optouts::{self, Pair};
use crate::progress::Moves;
use crate::writer::{Accept, Accepted, Handed};
use heliograph_domain::account::{Scope, Scopes};
use heliograph_domain::id::{AccountId, ApiKeyId, CarrierId, MessageId, NodeId};
use heliograph_domain::lease::{LEASE, Lane, Lease, Leased};
use heliograph_domain::message::Message;
use heliograph_domain::money::Amount;
use heliograph_domain::time::Timestamp;
use heliograph_store::accounts::Dues;
use heliograph_store::{Conn, Result, accounts, api_keys, idempotency, messages, queue};
use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;
use std::time::Instant;
use tokio::sync::OwnedSemaphorePermit;
use uuid::Uuid;

/// A batch's verdicts, in the order of its accepts; `Done` until something speaks against it.
pub type Verdicts = Vec<Accepted>;

/// Decides by API keys, idempotency keys and opt-outs, in this order: a request that is repeated gets its first
/// answer, also when its recipient has opted out since.
///
/// # Errors
/// As any write.
pub async fn open(tx: &mut Conn, accepts: &[Accept], now: Timestamp) -> Result<Verdicts> {
    let used: HashSet<ApiKeyId> = accepts.iter().filter_map(|a| a.message.api_key).collect();
    let used: Vec<ApiKeyId> = used.into_iter().collect();
    let pairs: Vec<Pair> = accepts.iter().filter_map(|a| optouts::pair(&a.message)).collect();
    let listed = heliograph_store::optouts::listed(&pairs);
    let (valid, listed) = tx.ask_both(api_keys::valid(&used), listed).await?;
    let mut verdicts = by_api_key(accepts, &valid.into_iter().collect());
    by_idempotency_key(tx, accepts, &mut verdicts, now).await?;
    hold_back(tx, accepts, &mut verdicts, &listed.into_iter().collect()).await?;
    Ok(verdicts)
}

fn by_api_key(accepts: &[Accept], valid: &HashMap<ApiKeyId, Scopes>) -> Verdicts {
    let verdict = |a: &Accept| match a.message.api_key {
        Some(key) if !valid.get(&key).is_some_and(|s| s.allow(Scope::Send)) => Accepted::KeyInvalid,
        _ => Accepted::Done,
    };
    accepts.iter().map(verdict).collect()
}

async fn by_idempotency_key(
    tx: &mut Conn,
    accepts: &[Accept],
    verdicts: &mut Verdicts,
    now: Timestamp,
) -> Result<()> {
    let asked = |(a, v): (&Accept, &Accepted)| {
        let (key, fingerprint) = a.idempotency.clone().filter(|_| *v == Accepted::Done)?;
        Some((key, fingerprint, a.message.id.0))
    };
    let asked: Vec<_> = accepts.iter().zip(verdicts.iter()).filter_map(asked).collect();
    if asked.is_empty() {
        return Ok(());
    }
    let rows: Vec<_> = asked.iter().map(|(k, f, made)| (k, f, *made)).collect();
    let fresh: HashSet<Uuid> = idempotency::insert(tx, &rows, now).await?.into_iter().collect();
    for (accept, verdict) in accepts.iter().zip(verdicts) {
        let Some((key, fingerprint)) = &accept.idempotency else { continue };
        if *verdict != Accepted::Done || fresh.contains(&accept.message.id.0) {
            continue;
        }
        let Some(record) = idempotency::find(tx, key).await? else { continue };
        *verdict = match record.fingerprint == fingerprint {
            true => Accepted::Replayed(MessageId(record.made)),
            false => Accepted::KeyReused,
        };
    }
    Ok(())
}

/// Refuses what is for people who are on the list that it enforces.
async fn hold_back(
    tx: &mut Conn,
    accepts: &[Accept],
    verdicts: &mut Verdicts,
    listed: &HashSet<Pair>,
) -> Result<()> {
    let mut held = HashSet::new();
    for (a, v) in accepts.iter().zip(verdicts.iter_mut()) {
        let out = optouts::pair(&a.message).is_some_and(|pair| listed.contains(&pair));
        if out && *v == Accepted::Done {
            *v = Accepted::OptedOut;
            held.insert(a.message.id.0);
        }
    }
    match held.is_empty() {
        true => Ok(()),
        false => undo(tx, accepts, verdicts, (&held, Accepted::OptedOut)).await,
    }
}

/// What [`close`] leaves to be told once the transaction is durable.
#[derive(Debug, Default)]
pub struct Closed {
    /// In the order of the accepts.
    pub verdicts: Verdicts,
    /// Leased already, for this node's dispatchers.
    pub handed: HashMap<CarrierId, Vec<Handed>>,
    /// Carriers whose dispatcher has to claim, since not everything could be handed over.
    pub left: HashSet<CarrierId>,
}

/// Applies what progress owes the balances, reserves what new messages cost, and stores those.
///
/// # Errors
/// As any write.
pub async fn close(
    cx: &Context,
    desks: &Desks,
    tx: &mut Conn,
    accepts: &[Accept],
    (mut verdicts, moves): (Verdicts, Moves),
) -> Result<Closed> {
    settle(tx, accepts, &mut verdicts, moves).await?;
    let since = Instant::now();
    let now = cx.db.now();
    let mut closed = Closed::default();
    let mut rows: Vec<(&Message, Option<NodeId>)> = Vec::with_capacity(accepts.len());
    for (accept, _) in accepts.iter().zip(&verdicts).filter(|(_, v)| **v == Accepted::Done) {
        let message = &accept.message;
        let room = desks.room(message.carrier).filter(|_| message.due_at() <= now);
        rows.push((message, room.as_ref().map(|_| cx.node)));
        match room {
            Some(room) => {
                let handed = hand(cx.node, message, since, room);
                closed.handed.entry(message.carrier).or_default().push(handed);
            }
            None => drop(closed.left.insert(message.carrier)),
        }
    }
    let stored: Vec<&Message> = rows.iter().map(|(m, _)| *m).collect();
    messages::insert(tx, &stored).await?;
    queue::insert(tx, &rows, now.after(LEASE)).await?;
    closed.verdicts = verdicts;
    Ok(closed)
}

fn hand(
    node: NodeId,
    message: &Arc<Message>,
    since: Instant,
    room: OwnedSemaphorePermit,
) -> Handed {
    let lease = Lease {
        carrier: message.carrier,
        lane: Lane::SINGLE,
        due_at: message.due_at(),
        message: message.id,
        account: message.account,
        owner: node,
        attempt: 1,
    };
    let leased = Leased {
        lease,
        message: message.clone(),
        tries: 0,
        doubts: 0,
        in_doubt: false,
        parts_taken: Vec::new(),
    };
    Handed { leased, since, room }
}

/// Applies what is due and reserves what is wanted, account by account; where a balance does not cover all
/// of an account's messages, one by one, in the order in which they came.
async fn settle(
    tx: &mut Conn,
    accepts: &[Accept],
    verdicts: &mut Verdicts,
    moves: Moves,
) -> Result<()> {
    let wants =
        |a: &Accept, v: &Accepted| *v == Accepted::Done && a.message.price() != Amount::ZERO;
    let due = |(account, (available, reserved)): (AccountId, (Amount, Amount))| {
        (account, Dues { available, reserved, ..Dues::none(account) })
    };
    let mut dues: BTreeMap<AccountId, Dues> = moves.into_iter().map(due).collect();
    for (a, _) in accepts.iter().zip(verdicts.iter()).filter(|(a, v)| wants(a, v)) {
        let account = a.message.account;
        let dues = dues.entry(account).or_insert_with(|| Dues::none(account));
        dues.wanted = dues.wanted + a.message.price();
    }
    accounts::lock(tx, &dues.keys().copied().collect()).await?;
    let all: Vec<_> = dues.values().copied().collect();
    for enough in accounts::settle(tx, &all).await? {
        dues.remove(&enough);
    }
    if dues.is_empty() {
        return Ok(());
    }
    let moves: Vec<_> = dues.values().map(|d| (d.account, d.available, d.reserved)).collect();
    accounts::move_money(tx, &moves).await?;
    let mut refused: HashSet<Uuid> = HashSet::new();
    for (a, v) in accepts.iter().zip(verdicts.iter_mut()) {
        let account = a.message.account;
        let short = wants(a, v) && dues.contains_key(&account);
        if short && accounts::reserve(tx, &[(account, a.message.price())]).await?.is_empty() {
            *v = Accepted::InsufficientBalance;
            refused.insert(a.message.id.0);
        }
    }
    undo(tx, accepts, verdicts, (&refused, Accepted::InsufficientBalance)).await
}

/// Frees the idempotency keys of refused messages, and refuses their twins in the same batch.
async fn undo(
    tx: &mut Conn,
    accepts: &[Accept],
    verdicts: &mut Verdicts,
    (refused, why): (&HashSet<Uuid>, Accepted),
) -> Result<()> {
    let mut keys = Vec::new();
    for (a, v) in accepts.iter().zip(verdicts.iter_mut()) {
        match v {
            Accepted::Replayed(made) if refused.contains(&made.0) => *v = why,
            _ if refused.contains(&a.message.id.0) => {
                keys.extend(a.idempotency.as_ref().map(|(k, _)| k));
            }
            _ => {}
        }
    }
    idempotency::forget(tx, &keys).await
}
