//! What one transaction of the writer does, kind by kind.
//!
//! The order is the order of locks, the same on every node: what people sent, idempotency keys, the queue, messages by
//! id, endpoints by number and what waits for them, accounts by number; new rows, since nobody waits for those; and at
//! the very end the counters by key, which the batches of all nodes add to: theirs is the lock that is held shortest.

use crate::accept::{self, Closed};
use crate::cancel;
use crate::context::Context;
use crate::deliveries;
use crate::dispatch::{self, Desks};
use crate::events::{Couriers, End, Events, Told};
use crate::progress::{self, Changes};
use crate::replies::{self, Confirmation};
use crate::writer::{Accept, Accepted, Batch, Cancelled, Handed, Rules, Witness};
use heliograph_domain::event;
use heliograph_domain::id::{AccountId, CarrierId};
use heliograph_domain::inbound_message::InboundMessage;
use heliograph_domain::lease::{DeliveryLease, LEASE, Leased};
use heliograph_domain::message::{Event, Failure, FailureCode};
use heliograph_domain::stats::{Measure, Tally, hour};
use heliograph_domain::time::Timestamp;
use heliograph_store::{Result, Tx, queue, stats};
use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;
use std::time::Instant;

/// The writer's rules.
pub struct Road {
    context: Context,
    desks: Desks,
    couriers: Couriers,
}

/// Leased deliveries, and what each tells.
type Collected = (Vec<(DeliveryLease, event::Occurrence)>, Vec<Option<Arc<event::Event>>>);

/// What has to be told when a batch is durable.
#[derive(Debug)]
pub struct Answers {
    closed: Closed,
    claimed: Vec<(Vec<Leased>, bool)>,
    cancelled: Vec<Cancelled>,
    collected: Vec<Collected>,
    /// One of the messages that people sent.
    taken_in: Option<Witness>,
    /// For each of the batch's news.
    confirmations: Vec<Vec<Confirmation>>,
    told: Told,
    /// Accounts of which something changed, if anybody looks.
    touched: BTreeSet<AccountId>,
    since: Instant,
}

impl Road {
    /// Rules that hand freshly accepted messages to these desks, and webhooks to these couriers.
    pub const fn new(context: Context, desks: Desks, couriers: Couriers) -> Self {
        Self { context, desks, couriers }
    }
}

impl Rules for Road {
    type Answers = Answers;

    async fn apply(&mut self, tx: &mut Tx, batch: &Batch) -> Result<Answers> {
        let (now, since) = (self.context.db.now(), Instant::now());
        let mut changes = Changes::default();
        let heard: Vec<_> = batch.progress.iter().map(|(p, _)| p.heard.as_slice()).collect();
        // First, so that a STOP holds for what was accepted with it.
        let mut taken_in = replies::take_in(&self.context, tx, &heard, now).await?;
        let mut tally = std::mem::take(&mut taken_in.tally);
        let verdicts = accept::open(tx, &batch.accepts, now).await?;
        // Before the claims, which would take what is called back.
        let cancelled = cancel::apply(tx, &batch.cancels, &mut changes).await?;
        let settlements: Vec<_> = batch.progress.iter().flat_map(|(p, _)| &p.settlements).collect();
        let receipts: Vec<_> = batch.progress.iter().flat_map(|(p, _)| &p.receipts).collect();
        progress::note(tx, &settlements, &receipts, now, &mut changes).await?;
        for (leases, _) in &batch.renewals {
            queue::renew(tx, leases, now.after(LEASE)).await?;
        }
        let mut claimed = Vec::with_capacity(batch.claims.len());
        for c in &batch.claims {
            claimed.push(dispatch::claim(tx, self.context.node, c, now, &mut changes).await?);
        }
        for (expired, _) in &batch.expiries {
            for key in queue::expire(tx, expired, now).await? {
                changes.add(key, Event::SendFailed(Failure::plain(FailureCode::Expired)));
            }
        }
        let mut touched = touched(&self.context, batch);
        touched.extend(changes.accounts());
        let (moves, ends) = progress::fold(tx, changes, now, &mut tally).await?;
        let told = self.tell(tx, &ends, &taken_in.messages, (now, since)).await?;
        touched.extend(taken_in.messages.iter().map(|m| m.account));
        let confirmations = taken_in.confirmations;
        let taken_in = taken_in.messages.first().map(|m| Witness::TakenIn(m.account, m.id));
        let collected = self.deliver(tx, batch, now).await?;
        let closed =
            accept::close(&self.context, &self.desks, tx, &batch.accepts, (verdicts, moves))
                .await?;
        count(&mut tally, batch, &closed);
        stats::add(tx, hour(now), &tally).await?;
        Ok(Answers {
            closed,
            claimed,
            cancelled,
            collected,
            taken_in,
            confirmations,
            told,
            touched,
            since,
        })
    }

    fn answer(&mut self, batch: Batch, answers: Answers) {
        self.context.bells.ring(&answers.touched);
        let Answers { closed, claimed, cancelled, collected, confirmations, told, since, .. } =
            answers;
        let made = closed.verdicts.iter().filter(|v| **v == Accepted::Done).count();
        metrics::counter!("heliograph_accepted_total").increment(made as u64);
        for ((_, reply), confirmations) in batch.progress.into_iter().zip(confirmations) {
            let _ = reply.send(Ok(confirmations));
        }
        for (_, reply) in batch.renewals {
            let _ = reply.send(Ok(()));
        }
        for (_, reply) in batch.expiries {
            let _ = reply.send(Ok(()));
        }
        for (cancel, cancelled) in batch.cancels.into_iter().zip(cancelled) {
            let _ = cancel.reply.send(Ok(cancelled));
        }
        for (claim, (leased, more)) in batch.claims.into_iter().zip(claimed) {
            // Before `left` below: what was accepted in this very batch came after this claim.
            match more {
                true => self.desks.left(claim.carrier),
                false => self.desks.drained(claim.carrier),
            }
            let _ = claim.reply.send(Ok(dispatch::place(leased, claim.room, since)));
        }
        for (_, reply) in batch.reports {
            let _ = reply.send(Ok(()));
        }
        for (collect, (found, events)) in batch.collects.into_iter().zip(collected) {
            if !collect.urgent && found.len() < collect.room.num_permits() {
                self.couriers.drained(collect.endpoint);
            }
            let parcels = deliveries::place(found, events, collect.room, since);
            let _ = collect.reply.send(Ok(parcels));
        }
        deliveries::hand_over(&self.couriers, told);
        self.hand_over(closed.handed);
        for carrier in closed.left {
            self.desks.left(carrier);
        }
        // After what came of it was handed over: a node that goes stops its workers once all are answered.
        for (accept, verdict) in batch.accepts.into_iter().zip(closed.verdicts) {
            let _ = accept.reply.send(Ok(verdict));
        }
    }

    fn probe(&mut self, batch: &Batch, answers: &Answers) -> Option<Witness> {
        // Everything but what comes into being is fenced by its lease or by the state machine.
        let mut told = batch.accepts.iter().zip(&answers.closed.verdicts);
        let made = told.find(|(_, verdict)| **verdict == Accepted::Done);
        let made = made.map(|(made, _)| Witness::Made(made.message.account, made.message.id));
        made.or(answers.taken_in)
    }
}

/// Counts what came into being.
fn count(tally: &mut Tally, batch: &Batch, closed: &Closed) {
    let verdicts = batch.accepts.iter().zip(&closed.verdicts);
    for (Accept { message, .. }, _) in verdicts.filter(|(_, v)| **v == Accepted::Done) {
        tally.add((message.account, message.mode), Measure::Accepted, 1);
    }
}

impl Road {
    /// Stores what those who listen are to be told.
    async fn tell(
        &self,
        tx: &mut Tx,
        ends: &[End],
        received: &[InboundMessage],
        when: (Timestamp, Instant),
    ) -> Result<Told> {
        let ended = ends.iter().map(|((a, _), _)| *a);
        let accounts: BTreeSet<_> = ended.chain(received.iter().map(|m| m.account)).collect();
        if accounts.is_empty() {
            return Ok(Told::default());
        }
        let with = (&self.context, &self.couriers);
        let mut events = Events::of(tx, accounts, with, when).await?;
        events.ended(tx, ends).await?;
        events.received(received);
        events.store(tx).await
    }

    /// What couriers have to say, and what they want.
    async fn deliver(&self, tx: &mut Tx, batch: &Batch, now: Timestamp) -> Result<Vec<Collected>> {
        let mut reports: Vec<_> = batch.reports.iter().map(|(report, _)| report).collect();
        reports.sort_by_key(|report| report.endpoint);
        for report in reports {
            if deliveries::settle(tx, report, now).await? {
                tracing::warn!(endpoint = report.endpoint.0, "webhook endpoint switched off");
            }
        }
        let mut collected = Vec::with_capacity(batch.collects.len());
        for c in &batch.collects {
            let found = deliveries::claim(tx, self.context.node, c, now).await?;
            let events = deliveries::unfold(tx, &found).await?;
            // What an event speaks of is gone: there is nothing left to tell.
            let void = found.iter().zip(&events).filter(|(_, event)| event.is_none());
            let void: Vec<_> = void.map(|((lease, _), _)| lease).collect();
            heliograph_store::deliveries::settle(tx, &void).await?;
            collected.push((found, events));
        }
        Ok(collected)
    }

    fn hand_over(&self, handed: HashMap<CarrierId, Vec<Handed>>) {
        for (carrier, messages) in handed {
            self.desks.hand_over(carrier, messages);
        }
    }
}

/// The accounts of what a batch brings, if anybody looks at any.
fn touched(cx: &Context, batch: &Batch) -> BTreeSet<AccountId> {
    if !cx.bells.is_heard() {
        return BTreeSet::new();
    }
    let accepted = batch.accepts.iter().map(|a| a.message.account);
    let attempts = batch.reports.iter().flat_map(|(report, _)| &report.attempts);
    accepted.chain(attempts.map(|a| a.account)).collect()
}
