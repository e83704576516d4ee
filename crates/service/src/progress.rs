//! Progress: the one way in which a message changes its state.
//!
//! Everything that a transaction learns about messages is gathered as events, folded through the
//! state machine of domain, and written once per message: an outcome and its receipt that meet in
//! one batch become one update.

use crate::events::End;
use crate::writer::{Settlement, Then};
use heliograph_domain::id::{AccountId, CarrierId, MessageId, PartKey};
use heliograph_domain::message::{self, Event, State, Status};
use heliograph_domain::money::Amount;
use heliograph_domain::receipt::{Receipt, Verdict, id_candidates};
use heliograph_domain::stats::{Bucket, Measure, Tally};
use heliograph_domain::time::Timestamp;
use heliograph_store::carrier_refs::{self, Taken, Told};
use heliograph_store::messages::Locked;
use heliograph_store::queue::{self, GiveBack};
use heliograph_store::{Conn, Result, messages, parts};
use std::collections::{BTreeMap, HashMap, HashSet};

/// Names one message.
pub type MessageKey = (AccountId, MessageId);

/// What one transaction learns about messages, in order.
#[derive(Debug, Default)]
pub struct Changes {
    events: HashMap<MessageKey, Vec<Event>>,
    /// In the order of their ids, so that two nodes lock them in the same order.
    order: BTreeMap<(MessageId, AccountId), ()>,
}

/// What a transaction's messages do to the balances: added to `available`, added to `reserved`.
pub type Moves = BTreeMap<AccountId, (Amount, Amount)>;

impl Changes {
    /// Adds one event of one message.
    pub fn add(&mut self, key: MessageKey, event: Event) {
        self.order.insert((key.1, key.0), ());
        self.events.entry(key).or_default().push(event);
    }

    /// Whose messages these are.
    pub fn accounts(&self) -> impl Iterator<Item = AccountId> {
        self.events.keys().map(|(account, _)| *account)
    }
}

/// Notes what became of leased messages and what receipts say: settles the queue, lets the halves
/// of each part meet, and gathers the events.
///
/// # Errors
/// As any write.
pub async fn note<'a>(
    tx: &mut Conn,
    settlements: &[&'a Settlement],
    receipts: &[&'a (CarrierId, Receipt)],
    now: Timestamp,
    changes: &mut Changes,
) -> Result<()> {
    settle(tx, settlements, now).await?;
    let mut told = Waiting::new(receipts);
    let taken = taken(settlements, &mut told);
    count_taken(tx, settlements, changes).await?;
    for (key, event) in settlements.iter().filter_map(|s| Some((key(s), follow(s)?))) {
        changes.add(key, event);
    }
    let mut ends = std::mem::take(&mut told.met);
    let early = carrier_refs::take(tx, &taken, now).await?;
    ends.extend(early.into_iter().map(|m| (m.part, m.verdict)));
    ends.extend(match_receipts(tx, told, now).await?);
    count_ended(tx, ends, changes).await
}

fn key(s: &Settlement) -> MessageKey {
    (s.lease.account, s.lease.message)
}

fn follow(s: &Settlement) -> Option<Event> {
    match &s.then {
        Then::Done | Then::Retry { .. } => None,
        Then::Fail(f) => Some(Event::SendFailed(f.clone())),
        Then::Doubt => Some(Event::InDoubt),
    }
}

/// Takes off the queue what is done, and gives back what is to be tried again.
async fn settle(tx: &mut Conn, settlements: &[&Settlement], now: Timestamp) -> Result<()> {
    let (mut done, mut back) = (Vec::new(), Vec::new());
    for s in settlements {
        let lease = &s.lease;
        match s.then {
            Then::Done | Then::Fail(_) => done.push(lease),
            Then::Retry { after, tried } => {
                let due_at = if after.is_zero() { lease.due_at } else { now.after(after) };
                back.push(GiveBack { lease, due_at, tried, doubted: false });
            }
            Then::Doubt => {
                back.push(GiveBack { lease, due_at: now, tried: true, doubted: true });
            }
        }
    }
    queue::settle(tx, &done).await?;
    queue::give_back(tx, &back).await?;
    Ok(())
}

/// Receipts that still look for their part, and those that found it in the same batch.
struct Waiting<'a> {
    waiting: HashMap<(CarrierId, &'a str), &'a Receipt>,
    met: Vec<(PartKey, Verdict)>,
}

impl<'a> Waiting<'a> {
    fn new(receipts: &[&'a (CarrierId, Receipt)]) -> Self {
        let waiting = receipts.iter().map(|(c, r)| ((*c, r.smsc_id.as_str()), r)).collect();
        Self { waiting, met: Vec::new() }
    }
}

/// The parts that a carrier took and whose receipt has not come yet. Where the receipt is in this
/// very batch, both halves are known and neither needs to be stored.
fn taken<'a>(settlements: &[&'a Settlement], told: &mut Waiting<'a>) -> Vec<Taken> {
    let mut taken = Vec::new();
    for s in settlements {
        for (part, smsc_id) in &s.taken {
            // Of a message of one part, part 0 stands for the whole: it has no rows in `parts`.
            let part = if s.parts == 1 { 0 } else { *part };
            let part = (s.lease.account, s.lease.message, part);
            let name = (s.lease.carrier, smsc_id.as_str());
            match told.waiting.get(&name) {
                Some(r) if r.recipient == s.recipient => {
                    told.met.push((part, r.verdict.clone()));
                    told.waiting.remove(&name);
                }
                _ => taken.push(Taken {
                    carrier: s.lease.carrier,
                    smsc_id: smsc_id.clone(),
                    part,
                    recipient: s.recipient,
                }),
            }
        }
    }
    taken
}

/// Turns parts that a carrier took into events. Of messages with several parts each part counts
/// once, even when it was submitted twice.
async fn count_taken(
    tx: &mut Conn,
    settlements: &[&Settlement],
    changes: &mut Changes,
) -> Result<()> {
    let mut several = Vec::new();
    for s in settlements.iter().filter(|s| !s.taken.is_empty()) {
        if s.parts == 1 {
            changes.add(key(s), Event::PartsAccepted(1));
        } else {
            several.extend(s.taken.iter().map(|(p, _)| (s.lease.account, s.lease.message, *p)));
        }
    }
    let fresh = parts::taken(tx, &several).await?;
    let mut counts: HashMap<MessageKey, u16> = HashMap::new();
    for (account, message, _) in fresh {
        *counts.entry((account, message)).or_default() += 1;
    }
    for (key, n) in counts {
        changes.add(key, Event::PartsAccepted(n));
    }
    Ok(())
}

/// Looks for the parts that receipts speak of, first by the id as written, then by its other
/// spellings; a receipt that finds none is kept for a submit response that is still to come.
async fn match_receipts(
    tx: &mut Conn,
    told: Waiting<'_>,
    now: Timestamp,
) -> Result<Vec<(PartKey, Verdict)>> {
    let waiting = told.waiting;
    let mut met = Vec::new();
    let names: Vec<_> = waiting.iter().map(|((c, id), r)| (*c, *id, r.recipient)).collect();
    let found = carrier_refs::matching(tx, &names).await?;
    for (carrier, id, part) in &found {
        if let Some(receipt) = waiting.get(&(*carrier, id.as_str())) {
            met.push((*part, receipt.verdict.clone()));
        }
    }
    let found: HashSet<_> = found.iter().map(|(c, id, _)| (*c, id.as_str())).collect();
    let mut unknown = waiting;
    unknown.retain(|name, _| !found.contains(name));
    met.extend(other_spellings(tx, &mut unknown).await?);
    let unknown = unknown.into_iter().map(|((carrier, id), receipt)| Told {
        carrier,
        smsc_id: id.to_owned(),
        recipient: receipt.recipient,
        verdict: receipt.verdict.clone(),
    });
    let found = carrier_refs::tell(tx, &unknown.collect::<Vec<_>>(), now).await?;
    met.extend(found.into_iter().map(|m| (m.part, m.verdict)));
    Ok(met)
}

/// Takes out the receipts that find their part by another spelling of its id: one spelling of each at a
/// time, so that a receipt finds one part at most.
async fn other_spellings(
    tx: &mut Conn,
    unknown: &mut HashMap<(CarrierId, &str), &Receipt>,
) -> Result<Vec<(PartKey, Verdict)>> {
    let mut met = Vec::new();
    let mut candidates: Vec<_> =
        unknown.keys().map(|&(c, id)| (c, id, id_candidates(id).into_iter().skip(1))).collect();
    loop {
        let mut spelled: HashMap<(CarrierId, String), &str> = HashMap::new();
        for (carrier, id, rest) in &mut candidates {
            if unknown.contains_key(&(*carrier, *id))
                && let Some(next) = rest.next()
            {
                spelled.insert((*carrier, next), *id);
            }
        }
        if spelled.is_empty() {
            return Ok(met);
        }
        let names = spelled.iter().filter_map(|((c, spelling), id)| {
            Some((*c, spelling.as_str(), unknown.get(&(*c, *id))?.recipient))
        });
        for (carrier, spelling, part) in
            carrier_refs::matching(tx, &names.collect::<Vec<_>>()).await?
        {
            let id = spelled.get(&(carrier, spelling)).copied().unwrap_or_default();
            if let Some(receipt) = unknown.remove(&(carrier, id)) {
                met.push((part, receipt.verdict.clone()));
            }
        }
    }
}

/// Turns ended parts into events. Whether a message has several parts is known by its rows in
/// `parts`, of which each counts as delivered once.
async fn count_ended(
    tx: &mut Conn,
    ends: Vec<(PartKey, Verdict)>,
    changes: &mut Changes,
) -> Result<()> {
    let mut delivered = Vec::new();
    for ((account, message, part), verdict) in ends {
        match verdict {
            // Part 0 is the whole of a message of one part.
            Verdict::Delivered if part == 0 => {
                changes.add((account, message), Event::PartDelivered)
            }
            Verdict::Delivered => delivered.push((account, message, part)),
            Verdict::Failed(f) => changes.add((account, message), Event::PartFailed(f)),
        }
    }
    for (account, message, _) in parts::delivered(tx, &delivered).await? {
        changes.add((account, message), Event::PartDelivered);
    }
    Ok(())
}

/// Folds all events through the state machine, writes each changed message once, counts what became of it, and says
/// what that does to the balances and which messages have ended that somebody may want to be told of.
///
/// # Errors
/// As any write.
pub async fn fold(
    tx: &mut Conn,
    changes: Changes,
    now: Timestamp,
    tally: &mut Tally,
) -> Result<(Moves, Vec<End>)> {
    let keys: Vec<MessageKey> = changes.order.keys().map(|(m, a)| (*a, *m)).collect();
    let (mut saved, mut moves) = (Vec::with_capacity(keys.len()), Moves::new());
    let mut ends = Vec::new();
    for before in messages::lock_states(tx, &keys).await? {
        let (account, id) = (before.account, before.id);
        let events = changes.events.get(&(account, id)).map_or(&[][..], Vec::as_slice);
        let Some(after) = steps(&before.state, now, events) else { continue };
        let (available, reserved) = message::money(&before.state, &after);
        if available != Amount::ZERO || reserved != Amount::ZERO {
            let sum = moves.entry(account).or_default();
            *sum = (sum.0 + available, sum.1 + reserved);
        }
        log(id, &before.state, &after);
        count(&before, &after, now, tally);
        if before.heard && after.status.is_final() && !before.state.status.is_final() {
            ends.push(((account, id), after.status));
        }
        saved.push((account, id, after));
    }
    let states: Vec<_> = saved.iter().map(|(a, m, s)| (*a, *m, s)).collect();
    messages::save_states(tx, &states).await?;
    Ok((moves, ends))
}

/// Counts what a message became, and what that cost.
fn count(message: &Locked, after: &State, now: Timestamp, tally: &mut Tally) {
    let (whose, before) = ((message.account, message.mode), &message.state);
    tally.add(whose, Measure::Spent, (after.captured - before.captured).0);
    if before.sent_at.is_none() && after.sent_at.is_some() {
        tally.add(whose, Measure::Sent, 1);
    }
    if before.status == after.status {
        return;
    }
    match (after.status, &after.failure) {
        (Status::Delivered, _) => {
            tally.add(whose, Measure::Delivered, 1);
            tally.add(whose, Measure::Took(Bucket::of(now.since(message.due_at))), 1);
        }
        (Status::Failed, Some(failure)) => tally.add(whose, Measure::Failed(failure.code), 1),
        (Status::Cancelled, _) => tally.add(whose, Measure::Cancelled, 1),
        _ => {}
    }
}

/// The state after all `events`; `None` when they change nothing.
fn steps(before: &State, now: Timestamp, events: &[Event]) -> Option<State> {
    events.iter().fold(None, |after: Option<State>, event| {
        message::apply(after.as_ref().unwrap_or(before), now, event).or(after)
    })
}

fn log(id: MessageId, before: &State, after: &State) {
    if before.status == after.status {
        return;
    }
    let failure = after.failure.as_ref().map(|f| f.code.name());
    // Not `message`: that is the name of the words themselves.
    tracing::info!(id = %id, status = after.status.name(), failure, "message");
    if after.status == Status::Failed {
        metrics::counter!("heliograph_messages_failed_total", "reason" => failure.unwrap_or(""))
            .increment(1);
    }
}
