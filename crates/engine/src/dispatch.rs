//! The dispatcher of one carrier: submits leased messages and passes the carrier's events to the
//! writer.
//!
//! A dispatcher gets fresh messages through its local queue and claims all others from the table.
//! It renews the leases of messages that the carrier is slow to answer.

use crate::pending_batch::{CommitResult, PendingBatch};
use futures_util::future::BoxFuture;
use futures_util::stream::{FuturesUnordered, StreamExt};
use heliograph_carrier::carrier::{Ack, CarrierChannels, CarrierEvent};
use heliograph_carrier::link_status::LinkStatus;
use heliograph_domain::id::CarrierId;
use heliograph_domain::lease::{RENEW_AFTER, STOP_AFTER};
use heliograph_domain::message::{Failure, FailureCode};
use heliograph_domain::submission::{Recall, Submission, SubmitOutcome};
use heliograph_domain::text;
use heliograph_service::audience::optouts;
use heliograph_service::kernel::commands::claim::{ClaimMessages, DispatchItem};
use heliograph_service::kernel::commands::command::Command;
use heliograph_service::kernel::commands::progress::{InboundUpdate, KeywordReply, Progress};
use heliograph_service::kernel::commands::renew::Renew;
use heliograph_service::kernel::context::Context;
use heliograph_service::kernel::writer::Writer;
use heliograph_service::messaging::dispatch::{DispatchQueue, DispatchQueues, evaluate_outcomes};
use heliograph_service::messaging::inbound;
use heliograph_service::messaging::messages;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::{mpsc, oneshot, watch};
use tokio::time::Interval;
use uuid::Uuid;

/// The polling interval of the table without a notification, for messages left by other nodes and
/// for retries that come due.
const POLL_INTERVAL: Duration = Duration::from_secs(1);
/// The maximum number of rows per claim.
const MAX_CLAIM: usize = 512;
/// The number of batches in flight to the writer; beyond it the carrier has to wait
/// (back-pressure).
const MAX_PENDING: usize = 64;

/// The dispatcher of one carrier.
pub(crate) struct Dispatcher {
    carrier: CarrierId,
    name: String,
    claim_ahead: usize,
    context: Context,
    writer: Writer,
    queue: Arc<DispatchQueue>,
    arrivals: mpsc::Receiver<Vec<DispatchItem>>,
    submissions: mpsc::Sender<Submission>,
    events: mpsc::Receiver<Vec<CarrierEvent>>,
    acks: mpsc::Sender<Vec<Ack>>,
    stop: watch::Receiver<bool>,
    /// Messages submitted to the carrier and not settled, by token.
    in_flight: HashMap<u64, InFlight>,
    next_token: u64,
    /// True if the table may contain messages to claim.
    may_have_work: bool,
    /// True while opt-outs are being looked up.
    checking_optouts: bool,
    pending: FuturesUnordered<BoxFuture<'static, Step>>,
    claim: Option<oneshot::Receiver<Claimed>>,
}

type Claimed = Result<Vec<DispatchItem>, heliograph_service::kernel::writer::StoreError>;

/// A message that was submitted to the carrier.
struct InFlight {
    item: DispatchItem,
    outcomes: Vec<(u8, SubmitOutcome)>,
    /// The number of parts without an outcome.
    parts_left: usize,
    renewed: Instant,
    recall: Recall,
}

/// The events that a dispatcher waits for.
enum Next {
    Events(Vec<CarrierEvent>),
    Ended,
    Arrived(Vec<DispatchItem>),
    Step(Step),
    Claimed(Option<Claimed>),
    Wake,
    Poll,
    Stop,
}

/// The completion of a background future.
enum Step {
    Committed(CommitResult),
    RetryDue(PendingBatch),
    KeywordReplySent,
    OptoutsFound(HashSet<Uuid>),
}

impl Dispatcher {
    /// Creates a dispatcher and the carrier's end of its channels.
    pub(crate) fn new(
        (carrier, name): (CarrierId, String),
        claim_ahead: usize,
        (context, writer, queues): (&Context, &Writer, &DispatchQueues),
        link_status: Arc<LinkStatus>,
        stop: &watch::Receiver<bool>,
    ) -> (Self, CarrierChannels) {
        let (queue, arrivals) = DispatchQueue::new(claim_ahead);
        queues.insert(carrier, queue.clone());
        let max_parts = usize::from(text::MAX_PARTS);
        let (submissions, to_submit) = mpsc::channel(claim_ahead.saturating_mul(max_parts));
        let (to_engine, events) = mpsc::channel(MAX_PENDING);
        let (acks, to_ack) = mpsc::channel(MAX_PENDING);
        let channels = CarrierChannels {
            submissions: to_submit,
            events: to_engine,
            acks: to_ack,
            link_status,
            stop: stop.clone(),
        };
        let dispatcher = Self {
            carrier,
            name,
            claim_ahead,
            context: context.clone(),
            writer: writer.clone(),
            queue,
            arrivals,
            submissions,
            events,
            acks,
            stop: stop.clone(),
            in_flight: HashMap::new(),
            next_token: 0,
            may_have_work: true,
            checking_optouts: false,
            pending: FuturesUnordered::new(),
            claim: None,
        };
        (dispatcher, channels)
    }

    /// Runs until the node stops and the carrier has ended, then releases its leases.
    ///
    /// This is not a [`Worker`](crate::worker::Worker): it has seven sources of events, most of
    /// them per message, and after the node stops it goes on until the carrier has answered.
    pub(crate) async fn run(mut self) {
        let mut poll = tokio::time::interval(POLL_INTERVAL);
        poll.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        let mut stopping = false;
        loop {
            match self.next(&mut poll, stopping).await {
                Next::Events(events) => self.on_events(events).await,
                Next::Ended => break,
                Next::Arrived(arrived) => self.submit_all(arrived),
                Next::Step(step) => self.on_step(step).await,
                Next::Claimed(claimed) => self.on_claimed(claimed),
                Next::Wake => self.may_have_work = true,
                Next::Poll => self.on_poll().await,
                Next::Stop => {
                    stopping = true;
                    self.queue.set_available(false);
                }
            }
            if !stopping {
                self.claim_if_due();
            }
        }
        self.shut_down().await;
    }

    /// Waits for the next event.
    async fn next(&mut self, poll: &mut Interval, stopping: bool) -> Next {
        tokio::select! {
            events = self.events.recv(), if self.pending.len() < MAX_PENDING => {
                events.map_or(Next::Ended, Next::Events)
            }
            Some(arrived) = self.arrivals.recv() => Next::Arrived(arrived),
            Some(step) = self.pending.next() => Next::Step(step),
            claimed = claimed(&mut self.claim) => Next::Claimed(claimed),
            () = self.queue.wake.notified() => Next::Wake,
            _ = poll.tick() => Next::Poll,
            _ = self.stop.wait_for(|stop| *stop), if !stopping => Next::Stop,
        }
    }

    /// Submits messages to the carrier, part by part.
    fn submit_all(&mut self, arrived: Vec<DispatchItem>) {
        metrics::counter!("heliograph_dispatched_total").increment(arrived.len() as u64);
        for item in arrived {
            self.submit(item);
        }
    }

    fn submit(&mut self, item: DispatchItem) {
        let token = self.next_token;
        self.next_token = self.next_token.wrapping_add(1);
        let message = item.leased.message.clone();
        let validity = message.expires_at.since(self.context.db.now());
        let recall = Recall::default();
        let mut entry =
            InFlight { renewed: item.since, item, outcomes: Vec::new(), parts_left: 0, recall };
        let segments = if validity.is_zero() {
            let expired = SubmitOutcome::Refused(Failure::new(FailureCode::Expired));
            entry.outcomes.push((1, expired));
            Vec::new()
        } else {
            text::segments(&message.text, token.to_le_bytes()[0])
        };
        for (part, segment) in (1u8..).zip(segments) {
            if entry.item.leased.accepted_parts.contains(&part) {
                continue;
            }
            let submission = Submission {
                token,
                part,
                originator: message.originator.clone(),
                recipient: message.recipient,
                segment,
                label: inbound::label(message.account, message.mode),
                validity,
                not_after: entry.item.since + STOP_AFTER,
                recall: entry.recall.clone(),
            };
            match self.submissions.try_send(submission) {
                Ok(()) => entry.parts_left += 1,
                Err(_) => entry.outcomes.push((part, SubmitOutcome::NotSent)),
            }
        }
        if entry.parts_left > 0 {
            self.in_flight.insert(token, entry);
        } else {
            let mut batch = PendingBatch {
                progress: Progress::default(),
                settled: Vec::new(),
                handles: Vec::new(),
            };
            settle(entry, &mut batch);
            self.pending.push(Box::pin(async move { Step::RetryDue(batch) }));
        }
    }

    /// Combines carrier events, in wire order, into one command for the writer.
    async fn on_events(&mut self, events: Vec<CarrierEvent>) {
        let mut batch = PendingBatch {
            progress: Progress::default(),
            settled: Vec::new(),
            handles: Vec::new(),
        };
        let mut receipts = 0;
        for event in events {
            match event {
                CarrierEvent::Bound => {
                    self.set_available(true);
                    self.may_have_work = true;
                }
                // The carrier implementation logs the reason.
                CarrierEvent::Unbound(_) => self.set_available(false),
                CarrierEvent::Submitted { token, part, outcome } => {
                    self.on_outcome(token, (part, outcome), &mut batch);
                }
                CarrierEvent::Receipt { handle, receipt } => {
                    batch.handles.push(handle);
                    batch.progress.receipts.push((self.carrier, receipt));
                    receipts += 1;
                }
                CarrierEvent::Message { handle, incoming } => {
                    batch.handles.push(handle);
                    batch.progress.inbound.push(InboundUpdate::Incoming(self.carrier, incoming));
                }
            }
        }
        let settled = batch.progress.settlements.len() as u64;
        metrics::counter!("heliograph_settled_total").increment(settled);
        let inbound = batch.progress.inbound.len() as u64;
        metrics::counter!("heliograph_receipts_total").increment(receipts);
        metrics::counter!("heliograph_inbound_total").increment(inbound);
        self.commit(batch).await;
    }

    fn set_available(&self, bound: bool) {
        self.queue.set_available(bound);
        let gauge = metrics::gauge!("heliograph_carrier_bound", "carrier" => self.name.clone());
        gauge.set(f64::from(u8::from(bound)));
    }

    fn on_outcome(&mut self, token: u64, outcome: (u8, SubmitOutcome), batch: &mut PendingBatch) {
        let Some(entry) = self.in_flight.get_mut(&token) else { return };
        entry.outcomes.push(outcome);
        entry.parts_left = entry.parts_left.saturating_sub(1);
        if entry.parts_left == 0
            && let Some(entry) = self.in_flight.remove(&token)
        {
            settle(entry, batch);
        }
    }

    async fn commit(&mut self, mut batch: PendingBatch) {
        if batch.is_empty() {
            return;
        }
        let answer = batch.send(&self.writer).await;
        self.pending.push(Box::pin(async move { Step::Committed(batch.committed(answer).await) }));
    }

    async fn on_step(&mut self, step: Step) {
        match step {
            Step::RetryDue(batch) => self.commit(batch).await,
            Step::Committed(CommitResult::Committed(acks, replies)) => {
                self.send_keyword_replies(replies);
                self.acknowledge(acks).await;
            }
            Step::KeywordReplySent => {}
            Step::OptoutsFound(out) => self.recall(&out),
            Step::Committed(CommitResult::Retry(acks, batch)) => {
                self.pending.push(Box::pin(async move { Step::RetryDue(batch.pause().await) }));
                self.acknowledge(acks).await;
            }
            Step::Committed(CommitResult::WriterClosed) => {}
        }
    }

    /// Sends the replies to keywords such as STOP.
    fn send_keyword_replies(&mut self, all: Vec<KeywordReply>) {
        for reply in all {
            let (context, writer) = (self.context.clone(), self.writer.clone());
            self.pending.push(Box::pin(async move {
                if let Err(error) = messages::send_keyword_reply(&context, &writer, reply).await {
                    tracing::warn!(%error, "failed to send a keyword reply");
                }
                Step::KeywordReplySent
            }));
        }
    }

    async fn acknowledge(&mut self, acks: Vec<Ack>) {
        if !acks.is_empty() {
            // If the carrier has ended, the SMSC sends the unacknowledged receipts again.
            drop(self.acks.send(acks).await);
        }
    }

    /// Claims messages if there may be some and a good part of the local queue is free.
    fn claim_if_due(&mut self) {
        let worthwhile = (self.claim_ahead / 4).clamp(1, MAX_CLAIM);
        let due = self.may_have_work && self.claim.is_none() && self.queue.is_available();
        if !due || self.queue.free_slots() < worthwhile {
            return;
        }
        let Some(room) = self.queue.reserve_up_to(MAX_CLAIM) else { return };
        let (reply, answer) = oneshot::channel();
        let claim = ClaimMessages { carrier: self.carrier, room, reply };
        if self.writer.try_send(Command::ClaimMessages(claim)).is_ok() {
            self.claim = Some(answer);
            self.may_have_work = false;
        }
    }

    fn on_claimed(&mut self, claimed: Option<Claimed>) {
        self.claim = None;
        match claimed {
            Some(Ok(item)) => {
                // Claim again until a claim finds nothing.
                self.may_have_work |= !item.is_empty();
                self.submit_all(item);
            }
            Some(Err(error)) => tracing::warn!(%error, "failed to claim messages"),
            None => {}
        }
    }

    async fn on_poll(&mut self) {
        self.may_have_work = true;
        let now = Instant::now();
        let mut leases = Vec::new();
        for entry in self.in_flight.values_mut() {
            if now.duration_since(entry.renewed) > RENEW_AFTER {
                entry.renewed = now;
                leases.push(entry.item.leased.lease.clone());
            }
        }
        if !leases.is_empty() {
            // Only messages that the carrier is slow to answer get here. If the renewal fails,
            // another node takes over after the lease expires, and fencing makes this node's result
            // harmless.
            let (reply, _) = oneshot::channel();
            drop(self.writer.send(Command::Renew(Renew { leases, reply })).await);
        }
        self.check_optouts();
    }

    /// Looks up which recipients of messages in flight have opted out since.
    fn check_optouts(&mut self) {
        let entry = self.in_flight.values().filter(|h| h.item.leased.message.optout_list.is_some());
        let messages: Vec<_> = entry.map(|h| h.item.leased.message.clone()).collect();
        if self.checking_optouts || messages.is_empty() {
            return;
        }
        self.checking_optouts = true;
        let context = self.context.clone();
        self.pending.push(Box::pin(async move {
            let out = optouts::opted_out(&context, &messages).await;
            Step::OptoutsFound(
                out.inspect_err(|error| tracing::warn!(%error, "failed to check opt-outs"))
                    .unwrap_or_default(),
            )
        }));
    }

    /// Recalls parts that were not submitted yet. Their messages return to the table, where the
    /// next claim fails them.
    fn recall(&mut self, out: &HashSet<Uuid>) {
        self.checking_optouts = false;
        for entry in self.in_flight.values() {
            if out.contains(&entry.item.leased.message.id.0) {
                entry.recall.recall();
            }
        }
    }

    /// Settles all messages after the carrier has ended: unanswered parts count as not sent.
    async fn shut_down(mut self) {
        self.queue.set_available(false);
        if let Some(claim) = self.claim.take()
            && let Ok(Ok(item)) = claim.await
        {
            self.submit_all(item);
        }
        while let Ok(item) = self.arrivals.try_recv() {
            self.submit_all(item);
        }
        let mut batch = PendingBatch {
            progress: Progress::default(),
            settled: Vec::new(),
            handles: Vec::new(),
        };
        for (_, mut entry) in std::mem::take(&mut self.in_flight) {
            entry.outcomes.push((1, SubmitOutcome::NotSent));
            settle(entry, &mut batch);
        }
        self.commit(batch).await;
        // Outcomes that cannot be committed are retried; the shutdown of the node sets the time
        // limit.
        while let Some(step) = self.pending.next().await {
            self.on_step(step).await;
        }
    }
}

fn settle(entry: InFlight, batch: &mut PendingBatch) {
    batch.progress.settlements.push(evaluate_outcomes(&entry.item.leased, entry.outcomes));
    batch.settled.push(entry.item);
}

/// Waits for the answer to the claim in flight; pending forever if there is none.
async fn claimed(claim: &mut Option<oneshot::Receiver<Claimed>>) -> Option<Claimed> {
    match claim {
        Some(answer) => answer.await.ok(),
        None => std::future::pending().await,
    }
}
