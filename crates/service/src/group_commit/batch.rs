//! Applies one batch of the writer in one transaction, kind by kind.
//!
//! The order is the lock order, which is the same on every node and so prevents deadlocks: inbound
//! messages, idempotency keys, the queue, messages by id, endpoints by id and their deliveries,
//! accounts by id; then new rows, which nobody waits for; and last the statistics counters by key,
//! which the batches of all nodes update, so that their locks are held for the shortest time.

use crate::kernel::commands::accept::{Accept, AcceptOutcome};
use crate::kernel::commands::cancel::CancelOutcome;
use crate::kernel::commands::claim::DispatchItem;
use crate::kernel::commands::command::Batch;
use crate::kernel::commands::progress::KeywordReply;
use crate::kernel::context::Context;
use crate::kernel::metrics::metrics;
use crate::messaging::accept::{self, CheckedAccepts, StoredBatch};
use crate::messaging::cancel;
use crate::messaging::dispatch::{self, DispatchQueues};
use crate::messaging::inbound;
use crate::messaging::progress::{self, MessageChanges};
use crate::webhooks::deliveries;
use crate::webhooks::events::{
    DeliveryQueues, EndedMessage, EventRecorder, PendingHandOver, StartTime,
};
use async_recursion::async_recursion as boxed;
use heliograph_domain::event;
use heliograph_domain::id::{AccountId, CarrierId, InboundId, MessageId};
use heliograph_domain::inbound_message::InboundMessage;
use heliograph_domain::lease::{DeliveryLease, LEASE, LeasedMessage};
use heliograph_domain::message::{Failure, FailureCode, MessageEvent};
use heliograph_domain::stats::{Measure, Tally, hour_of};
use heliograph_domain::time::Timestamp;
use heliograph_store::messaging::queue;
use heliograph_store::operations::{nodes, stats};
use heliograph_store::{StoreResult, Tx};
use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;
use std::time::Instant;

/// The dependencies of the writer.
pub struct WriterDeps {
    /// The context; its database is the one that the writer commits to.
    pub context: Context,
    /// The local queues that accepted messages are handed to.
    pub dispatch_queues: DispatchQueues,
    /// The local queues that webhook deliveries are handed to.
    pub delivery_queues: DeliveryQueues,
}

/// A row that exists exactly when its batch was committed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum CommitProbe {
    /// A message created by the batch.
    Message(AccountId, MessageId),
    /// An inbound message stored by the batch.
    InboundMessage(AccountId, InboundId),
}

/// Leased deliveries with their events.
type Collected = (Vec<(DeliveryLease, event::StoredEvent)>, Vec<Option<Arc<event::WebhookEvent>>>);

/// The replies to send when a batch is durable.
#[derive(Debug)]
pub struct BatchReplies {
    stored: StoredBatch,
    claimed: Vec<(Vec<LeasedMessage>, bool)>,
    cancelled: Vec<CancelOutcome>,
    collected: Vec<Collected>,
    /// One of the stored inbound messages.
    stored_inbound: Option<CommitProbe>,
    /// The keyword replies, for each progress of the batch.
    confirmations: Vec<Vec<KeywordReply>>,
    pending: PendingHandOver,
    /// The accounts that changed; empty when nobody has subscribed.
    changed_accounts: BTreeSet<AccountId>,
    since: Instant,
}

/// Applies a batch in a transaction. A batch is applied again when that transaction was rolled back.
#[boxed]
pub async fn apply(deps: &WriterDeps, tx: &mut Tx, batch: &Batch) -> StoreResult<BatchReplies> {
    let cx = &deps.context;
    let start = StartTime { now: cx.db.now(), since: Instant::now() };
    let now = start.now;
    let mut changes = MessageChanges::default();
    let inbound: Vec<_> = batch.progress.iter().map(|c| c.progress.inbound.as_slice()).collect();
    // First, so that a STOP applies to messages accepted in the same batch.
    let mut stored_inbound = inbound::receive(cx, tx, &inbound, now).await?;
    let mut tally = std::mem::take(&mut stored_inbound.tally);
    let outcomes = accept::check(tx, &batch.accepts, now).await?;
    // Before the claims, which could lease the messages to be cancelled.
    let cancelled = cancel::apply(tx, &batch.cancels, &mut changes).await?;
    let progress: Vec<_> = batch.progress.iter().map(|c| &c.progress).collect();
    progress::record(tx, &progress, now, &mut changes).await?;
    for renew in &batch.renewals {
        queue::renew(tx, &renew.leases, now.after(LEASE)).await?;
    }
    let mut claimed = Vec::with_capacity(batch.claims.len());
    for c in &batch.claims {
        claimed.push(dispatch::claim(cx, tx, c, now, &mut changes).await?);
    }
    for expire in &batch.expiries {
        for key in queue::expire(tx, &expire.entries, now).await? {
            changes.add(key, MessageEvent::SendFailed(Failure::new(FailureCode::Expired)));
        }
    }
    let mut changed_accounts = changed_accounts(cx, batch);
    changed_accounts.extend(changes.accounts());
    let (balances, ends) = progress::apply(tx, changes, now, &mut tally).await?;
    let pending = record_events(deps, tx, &ends, &stored_inbound.messages, start).await?;
    changed_accounts.extend(stored_inbound.messages.iter().map(|m| m.account));
    let confirmations = stored_inbound.confirmations;
    let stored_inbound =
        stored_inbound.messages.first().map(|m| CommitProbe::InboundMessage(m.account, m.id));
    let collected = process_deliveries(cx, tx, batch, now).await?;
    let checked = CheckedAccepts { accepts: &batch.accepts, outcomes };
    let stored = accept::store(cx, &deps.dispatch_queues, tx, checked, balances).await?;
    if !batch.commit_checks.is_empty() {
        nodes::record_commit(tx, cx.node, now).await?;
    }
    count(&mut tally, batch, &stored);
    stats::add(tx, hour_of(now), &tally).await?;
    Ok(BatchReplies {
        stored,
        claimed,
        cancelled,
        collected,
        stored_inbound,
        confirmations,
        pending,
        changed_accounts,
        since: start.since,
    })
}

/// Sends the replies of a batch after its commit, and hands its work to the local workers.
pub fn answer(deps: &WriterDeps, batch: Batch, replies: BatchReplies) {
    deps.context.notifier.notify(&replies.changed_accounts);
    let BatchReplies {
        stored, claimed, cancelled, collected, confirmations, pending, since, ..
    } = replies;
    let made = stored.outcomes.iter().filter(|v| **v == AcceptOutcome::Done).count();
    metrics().accepted.inc_by(made as u64);
    for (command, confirmations) in batch.progress.into_iter().zip(confirmations) {
        let _ = command.reply.send(Ok(confirmations));
    }
    for command in batch.renewals {
        let _ = command.reply.send(Ok(()));
    }
    for command in batch.expiries {
        let _ = command.reply.send(Ok(()));
    }
    for (cancel, cancelled) in batch.cancels.into_iter().zip(cancelled) {
        let _ = cancel.reply.send(Ok(cancelled));
    }
    for (claim, (leased, more)) in batch.claims.into_iter().zip(claimed) {
        // Before `mark_backlogged` below: messages of this batch were accepted after this claim.
        if more {
            deps.dispatch_queues.mark_backlogged(claim.carrier);
        } else {
            deps.dispatch_queues.mark_drained(claim.carrier);
        }
        let _ = claim.reply.send(Ok(dispatch::assign_slots(leased, claim.room, since)));
    }
    for command in batch.delivery_reports {
        let _ = command.reply.send(Ok(()));
    }
    for command in batch.commit_checks {
        let _ = command.reply.send(Ok(()));
    }
    for (collect, (found, events)) in batch.delivery_claims.into_iter().zip(collected) {
        if !collect.urgent && found.len() < collect.room.num_permits() {
            deps.delivery_queues.mark_drained(collect.endpoint);
        }
        let leased_deliveries = deliveries::assign_slots(found, events, collect.room, since);
        let _ = collect.reply.send(Ok(leased_deliveries));
    }
    deliveries::hand_over(&deps.delivery_queues, pending);
    hand_over(deps, stored.handed_over);
    for carrier in stored.backlogged {
        deps.dispatch_queues.mark_backlogged(carrier);
    }
    // After the work was handed over: a node that shuts down stops its workers once all
    // requests are answered.
    for (accept, outcome) in batch.accepts.into_iter().zip(stored.outcomes) {
        let _ = accept.reply.send(Ok(outcome));
    }
}

/// Returns a row that proves whether a batch was committed, for a commit that got no answer; `None`
/// if the batch can be applied again without harm.
pub fn commit_probe(batch: &Batch, replies: &BatchReplies) -> Option<CommitProbe> {
    // New messages need a probe; all else is fenced by its lease or by the state machine.
    let mut accepted = batch.accepts.iter().zip(&replies.stored.outcomes);
    let made = accepted.find(|(_, outcome)| **outcome == AcceptOutcome::Done);
    let made = made.map(|(made, _)| CommitProbe::Message(made.message.account, made.message.id));
    made.or(replies.stored_inbound)
}

/// Counts the accepted messages.
fn count(tally: &mut Tally, batch: &Batch, stored: &StoredBatch) {
    let outcomes = batch.accepts.iter().zip(&stored.outcomes);
    for (Accept { message, .. }, _) in outcomes.filter(|(_, v)| **v == AcceptOutcome::Done) {
        tally.add((message.account, message.mode), Measure::Accepted, 1);
    }
}

/// Stores the events and deliveries for the endpoints that subscribed to them.
async fn record_events(
    deps: &WriterDeps,
    tx: &mut Tx,
    ends: &[EndedMessage],
    received: &[InboundMessage],
    start: StartTime,
) -> StoreResult<PendingHandOver> {
    let ended = ends.iter().map(|((a, _), _)| *a);
    let accounts: BTreeSet<_> = ended.chain(received.iter().map(|m| m.account)).collect();
    if accounts.is_empty() {
        return Ok(PendingHandOver::default());
    }
    let mut events =
        EventRecorder::load(tx, accounts, &deps.context, &deps.delivery_queues, start).await?;
    events.add_ended(tx, ends).await?;
    events.add_received(received);
    events.store(tx).await
}

/// Applies the reports of endpoint workers and serves their claims.
async fn process_deliveries(
    cx: &Context,
    tx: &mut Tx,
    batch: &Batch,
    now: Timestamp,
) -> StoreResult<Vec<Collected>> {
    let mut reports: Vec<_> = batch.delivery_reports.iter().map(|c| &c.report).collect();
    reports.sort_by_key(|report| report.endpoint);
    for report in reports {
        if deliveries::settle(tx, report, now).await? {
            tracing::warn!(endpoint = report.endpoint.0, "webhook endpoint switched off");
        }
    }
    let mut collected = Vec::with_capacity(batch.delivery_claims.len());
    for c in &batch.delivery_claims {
        let found = deliveries::claim(cx, tx, c, now).await?;
        let events = deliveries::load_events(tx, &found).await?;
        // The subject of the event was deleted: there is nothing left to deliver.
        let orphaned = found.iter().zip(&events).filter(|(_, event)| event.is_none());
        let orphaned: Vec<_> = orphaned.map(|((lease, _), _)| lease).collect();
        heliograph_store::webhooks::deliveries::settle(tx, &orphaned).await?;
        collected.push((found, events));
    }
    Ok(collected)
}

fn hand_over(deps: &WriterDeps, handed: HashMap<CarrierId, Vec<DispatchItem>>) {
    for (carrier, messages) in handed {
        deps.dispatch_queues.hand_over(carrier, messages);
    }
}

/// Returns the accounts that a batch changes, if any page has subscribed.
fn changed_accounts(cx: &Context, batch: &Batch) -> BTreeSet<AccountId> {
    if !cx.notifier.has_subscribers() {
        return BTreeSet::new();
    }
    let accepted = batch.accepts.iter().map(|a| a.message.account);
    let attempts = batch.delivery_reports.iter().flat_map(|c| &c.report.attempts);
    accepted.chain(attempts.map(|a| a.account)).collect()
}
