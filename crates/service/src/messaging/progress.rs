//! Progress: the only way in which a message changes its state.
//!
//! All that a transaction learns about messages is collected as events, applied by the state
//! machine of the domain crate, and written once per message: a submit outcome and its delivery
//! receipt in the same batch become one update.

mod matching;

use crate::billing::charging::BalanceChanges;
use crate::kernel::commands::progress::{NextStep, Progress, Settlement};
use crate::kernel::metrics::metrics;
use crate::messaging::progress::matching::UnmatchedReceipts;
use crate::webhooks::events::EndedMessage;
use async_recursion::async_recursion as boxed;
use heliograph_domain::id::{ALL_PARTS, AccountId, MessageId, PartKey};
use heliograph_domain::message::{self, MessageEvent, MessageState, MessageStatus};
use heliograph_domain::receipt::ReceiptOutcome;
use heliograph_domain::stats::{LatencyBucket, Measure, Tally};
use heliograph_domain::time::Timestamp;
use heliograph_store::messaging::messages;
use heliograph_store::messaging::messages::LockedMessage;
use heliograph_store::messaging::parts;
use heliograph_store::messaging::queue::{self, LeaseRelease};
use heliograph_store::{Conn, StoreResult};
pub use matching::EARLY;
use std::collections::{BTreeMap, HashMap};

/// Identifies a message.
pub type MessageKey = (AccountId, MessageId);

/// The message events of one transaction, in order.
#[derive(Debug, Default)]
pub struct MessageChanges {
    events: HashMap<MessageKey, Vec<MessageEvent>>,
    /// The keys in the order of their ids, so that all nodes lock messages in the same order.
    order: BTreeMap<(MessageId, AccountId), ()>,
}

impl MessageChanges {
    /// Adds an event of a message.
    pub fn add(&mut self, key: MessageKey, event: MessageEvent) {
        self.order.insert((key.1, key.0), ());
        self.events.entry(key).or_default().push(event);
    }

    /// Returns the accounts of the messages.
    pub fn accounts(&self) -> impl Iterator<Item = AccountId> {
        self.events.keys().map(|(account, _)| *account)
    }
}

/// Records the outcomes of leased messages, the delivery receipts and the overdue ones: settles the queue, matches
/// receipts with their parts, and collects the message events.
#[boxed]
pub async fn record(
    tx: &mut Conn,
    progress: &[&Progress],
    now: Timestamp,
    changes: &mut MessageChanges,
) -> StoreResult<()> {
    let settlements: Vec<_> = progress.iter().flat_map(|p| &p.settlements).collect();
    let receipts: Vec<_> = progress.iter().flat_map(|p| &p.receipts).collect();
    let overdue: Vec<_> = progress.iter().flat_map(|p| &p.overdue).collect();
    settle(tx, &settlements, now).await?;
    let mut unmatched = UnmatchedReceipts::new(&receipts);
    let accepted = matching::accepted_parts(&settlements, &mut unmatched);
    count_accepted(tx, &settlements, changes).await?;
    for (key, event) in settlements.iter().filter_map(|s| Some((key(s), follow(s)?))) {
        changes.add(key, event);
    }
    let mut ends = std::mem::take(&mut unmatched.met);
    ends.extend(matching::record_accepted(tx, accepted, now).await?);
    ends.extend(matching::match_receipts(tx, unmatched, now).await?);
    if !overdue.is_empty() {
        ends.extend(matching::time_out(tx, &overdue).await?);
    }
    count_ended(tx, ends, changes).await
}

fn key(s: &Settlement) -> MessageKey {
    (s.lease.account, s.lease.message)
}

fn follow(s: &Settlement) -> Option<MessageEvent> {
    match &s.next {
        NextStep::Done | NextStep::Retry { in_doubt: false, .. } => None,
        NextStep::Fail(f) => Some(MessageEvent::SendFailed(f.clone())),
        NextStep::InDoubt | NextStep::Retry { in_doubt: true, .. } => Some(MessageEvent::InDoubt),
    }
}

/// Removes finished messages from the queue, and releases those to be retried.
async fn settle(tx: &mut Conn, settlements: &[&Settlement], now: Timestamp) -> StoreResult<()> {
    let mut done = Vec::new();
    let mut back = Vec::new();
    for s in settlements {
        let lease = &s.lease;
        match s.next {
            NextStep::Done | NextStep::Fail(_) => done.push(lease),
            NextStep::Retry { after, tried, .. } => {
                let due_at = if after.is_zero() { lease.due_at } else { now.after(after) };
                back.push(LeaseRelease { lease, due_at, count_try: tried, count_doubt: false });
            }
            NextStep::InDoubt => {
                back.push(LeaseRelease { lease, due_at: now, count_try: true, count_doubt: true });
            }
        }
    }
    queue::settle(tx, &done).await?;
    queue::release(tx, &back).await?;
    Ok(())
}

/// Converts accepted parts to events. In multipart messages each part counts once, even when it was
/// submitted twice.
async fn count_accepted(
    tx: &mut Conn,
    settlements: &[&Settlement],
    changes: &mut MessageChanges,
) -> StoreResult<()> {
    let mut several = Vec::new();
    for s in settlements.iter().filter(|s| !s.accepted_parts.is_empty()) {
        if s.parts == 1 {
            changes.add(key(s), MessageEvent::PartsAccepted(1));
        } else {
            several.extend(
                s.accepted_parts.iter().map(|(p, _)| (s.lease.account, s.lease.message, *p)),
            );
        }
    }
    let fresh = parts::record_accepted(tx, &several).await?;
    let mut counts: HashMap<MessageKey, u16> = HashMap::new();
    for (account, message, _) in fresh {
        *counts.entry((account, message)).or_default() += 1;
    }
    for (key, n) in counts {
        changes.add(key, MessageEvent::PartsAccepted(n));
    }
    Ok(())
}

/// Converts ended parts to events. Multipart messages are recognized by their rows in `parts`, of
/// which each counts as delivered once.
async fn count_ended(
    tx: &mut Conn,
    ends: Vec<(PartKey, ReceiptOutcome)>,
    changes: &mut MessageChanges,
) -> StoreResult<()> {
    let (mut delivered, mut whole) = (Vec::new(), Vec::new());
    for ((account, message, part), outcome) in ends {
        match outcome {
            // Part 0 stands for the whole of a single-part message.
            ReceiptOutcome::Delivered if part == 0 => {
                changes.add((account, message), MessageEvent::PartDelivered)
            }
            ReceiptOutcome::Delivered if part == ALL_PARTS => {
                changes.add((account, message), MessageEvent::AllPartsDelivered);
                whole.push((account, message));
            }
            ReceiptOutcome::Delivered => delivered.push((account, message, part)),
            ReceiptOutcome::Failed(f) => {
                changes.add((account, message), MessageEvent::PartFailed(f))
            }
        }
    }
    parts::record_all_delivered(tx, &whole).await?;
    for (account, message, _) in parts::record_delivered(tx, &delivered).await? {
        changes.add((account, message), MessageEvent::PartDelivered);
    }
    Ok(())
}

/// Applies all events with the state machine, writes each changed message once and counts the
/// transitions. Returns the balance changes and the ended messages that have webhook endpoints.
#[boxed]
pub async fn apply(
    tx: &mut Conn,
    changes: MessageChanges,
    now: Timestamp,
    tally: &mut Tally,
) -> StoreResult<(BalanceChanges, Vec<EndedMessage>)> {
    let keys: Vec<MessageKey> = changes.order.keys().map(|(m, a)| (*a, *m)).collect();
    let mut saved = Vec::with_capacity(keys.len());
    let mut balances = BalanceChanges::default();
    let mut ends = Vec::new();
    for before in messages::lock_states(tx, &keys).await? {
        let account = before.account;
        let id = before.id;
        let events = changes.events.get(&(account, id)).map_or(&[][..], Vec::as_slice);
        let Some(after) = steps(&before, now, events) else { continue };
        balances.add(account, &before.state, &after);
        log(id, &before.state, &after);
        count(&before, &after, now, tally);
        if before.has_endpoints && after.status.is_final() && !before.state.status.is_final() {
            ends.push(((account, id), after.status));
        }
        saved.push((account, id, after));
    }
    let states: Vec<_> = saved.iter().map(|(a, m, s)| (*a, *m, s)).collect();
    messages::save_states(tx, &states).await?;
    Ok((balances, ends))
}

/// Counts a state transition and its cost.
fn count(message: &LockedMessage, after: &MessageState, now: Timestamp, tally: &mut Tally) {
    let whose = (message.account, message.mode);
    let before = &message.state;
    tally.add(whose, Measure::Spent, (after.captured - before.captured).0);
    if before.sent_at.is_none() && after.sent_at.is_some() {
        tally.add(whose, Measure::Sent, 1);
    }
    if before.status == after.status {
        return;
    }
    match (after.status, &after.failure) {
        (MessageStatus::Delivered, _) => {
            tally.add(whose, Measure::Delivered, 1);
            tally.add(
                whose,
                Measure::Latency(LatencyBucket::containing(now.since(message.due_at))),
                1,
            );
        }
        (MessageStatus::Failed, Some(failure)) => {
            tally.add(whose, Measure::Failed(failure.code), 1)
        }
        (MessageStatus::Cancelled, _) => tally.add(whose, Measure::Cancelled, 1),
        _ => {}
    }
}

/// Returns the state after all `events`; `None` when they change nothing. The times of a message do
/// not run backwards, although the clocks of two nodes differ, or one was set back.
fn steps(locked: &LockedMessage, now: Timestamp, events: &[MessageEvent]) -> Option<MessageState> {
    let before = &locked.state;
    let at = now.max(locked.accepted_at).max(before.sent_at.unwrap_or_default());
    events.iter().fold(None, |after: Option<MessageState>, event| {
        message::apply(after.as_ref().unwrap_or(before), at, event).or(after)
    })
}

fn log(id: MessageId, before: &MessageState, after: &MessageState) {
    if before.status == after.status {
        return;
    }
    let failure = after.failure.as_ref().map(|f| f.code.name());
    // The field `message` is reserved for the log text.
    tracing::info!(id = %id, status = after.status.name(), failure, "message status changed");
    if after.status == MessageStatus::Failed {
        metrics().messages_failed.with_label_values(&[failure.unwrap_or("")]).inc();
    }
}
