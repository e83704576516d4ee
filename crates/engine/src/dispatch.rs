//! The dispatcher of one carrier: submits leased messages and passes the carrier's events to the
//! writer.
//!
//! A dispatcher gets fresh messages through its local queue and claims all others from the table.
//! It renews the leases of messages that the carrier is slow to answer.

mod claim;
mod events;
mod in_flight;
mod submit;
mod upkeep;

use crate::dispatch::in_flight::InFlight;
use crate::pending_batch::{CommitResult, PendingBatch};
use futures_util::future::BoxFuture;
use futures_util::stream::{FuturesUnordered, StreamExt};
use heliograph_carrier::carrier::{Ack, CarrierChannels, CarrierEvent};
use heliograph_carrier::link_status::LinkStatus;
use heliograph_domain::carrier::ReceiptPolicy;
use heliograph_domain::id::CarrierId;
use heliograph_domain::lease_fence::LeaseFence;
use heliograph_domain::submission::{Submission, SubmitOutcome};
use heliograph_domain::text;
use heliograph_service::kernel::commands::claim::DispatchItem;
use heliograph_service::kernel::context::Context;
use heliograph_service::kernel::writer::{StoreError, Writer};
use heliograph_service::messaging::dispatch::{DispatchQueue, DispatchQueues};
use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{mpsc, oneshot, watch};
use tokio::time::Interval;
use uuid::Uuid;

/// The polling interval of the table without a notification, for messages left by other nodes and
/// for retries that come due.
const POLL_INTERVAL: Duration = Duration::from_secs(1);
/// The number of batches in flight to the writer; beyond it the carrier has to wait
/// (back-pressure).
const MAX_PENDING: usize = 64;

/// The dispatcher of one carrier.
pub(crate) struct Dispatcher {
    carrier: CarrierId,
    name: String,
    receipts: ReceiptPolicy,
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
    /// True while the carrier is bound.
    bound: bool,
    /// The number of batches of outcomes that wait for the database. Meanwhile nothing is submitted.
    unsaved: usize,
    /// True while opt-outs are being looked up.
    checking_optouts: bool,
    pending: FuturesUnordered<BoxFuture<'static, Step>>,
    claim: Option<oneshot::Receiver<Claimed>>,
}

/// The answer to a claim.
type Claimed = Result<Vec<DispatchItem>, StoreError>;

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
    /// A commit succeeded or failed; `waited` is true if it had failed before.
    Committed {
        result: CommitResult,
        waited: bool,
    },
    RetryDue(PendingBatch),
    KeywordReplySent,
    OptoutsFound(HashSet<Uuid>),
}

impl Dispatcher {
    /// Creates a dispatcher and the carrier's end of its channels.
    pub(crate) fn new(
        (carrier, name, receipts): (CarrierId, String, ReceiptPolicy),
        claim_ahead: usize,
        (context, writer, queues): (&Context, &Writer, &DispatchQueues),
        (link_status, fence): (Arc<LinkStatus>, &LeaseFence),
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
            fence: fence.clone(),
            link_status,
            stop: stop.clone(),
        };
        let dispatcher = Self {
            carrier,
            name,
            receipts,
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
            bound: false,
            unsaved: 0,
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

    async fn on_step(&mut self, step: Step) {
        match step {
            Step::RetryDue(batch) => self.commit(batch).await,
            Step::Committed { result, waited } => self.on_committed(result, waited).await,
            Step::KeywordReplySent => {}
            Step::OptoutsFound(out) => self.recall(&out),
        }
    }

    async fn on_committed(&mut self, result: CommitResult, waited: bool) {
        match result {
            CommitResult::Committed(acks, replies) => {
                self.count_unsaved(waited, 0);
                self.send_keyword_replies(replies);
                self.acknowledge(acks).await;
            }
            CommitResult::Retry(acks, batches) => {
                let waiting = batches.iter().filter(|batch| batch.waits_for_database());
                self.count_unsaved(waited, waiting.count());
                for batch in batches {
                    self.pending.push(Box::pin(async move { Step::RetryDue(batch.pause().await) }));
                }
                self.acknowledge(acks).await;
            }
            CommitResult::WriterClosed => {}
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
        let mut batch = PendingBatch::default();
        for (_, mut entry) in std::mem::take(&mut self.in_flight) {
            entry.outcomes.push((1, SubmitOutcome::NotSent));
            entry.settle(self.receipts, &mut batch);
        }
        self.commit(batch).await;
        // Outcomes that cannot be committed are retried; the shutdown of the node sets the time
        // limit.
        while let Some(step) = self.pending.next().await {
            self.on_step(step).await;
        }
    }
}

/// Waits for the answer to the claim in flight; pending forever if there is none.
async fn claimed(claim: &mut Option<oneshot::Receiver<Claimed>>) -> Option<Claimed> {
    match claim {
        Some(answer) => answer.await.ok(),
        None => std::future::pending().await,
    }
}
