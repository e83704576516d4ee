//! The delivery worker of one webhook endpoint.
//!
//! The worker claims leased deliveries, sends as many requests at once as the circuit breaker of
//! the endpoint allows, and reports the outcomes to the writer in batches.

use crate::http::client::HttpClient;
use crate::http::connection::HttpConnection;
use crate::webhooks::circuit_breaker::CircuitBreaker;
use crate::webhooks::post::WebhookPost;
use crate::webhooks::request_slots::{RequestSlot, RequestSlots};
use futures_util::future::{BoxFuture, FutureExt};
use futures_util::stream::{FuturesUnordered, StreamExt};
use heliograph_domain::egress_policy::EgressPolicy;
use heliograph_domain::id::EndpointId;
use heliograph_domain::lease::STOP_AFTER;
use heliograph_domain::lease_fence::LeaseFence;
use heliograph_domain::time::Timestamp;
use heliograph_domain::webhook::WebhookEndpoint;
use heliograph_domain::webhook_url::WebhookUrl;
use heliograph_service::kernel::commands::claim_deliveries::{ClaimDeliveries, LeasedDelivery};
use heliograph_service::kernel::commands::command::Command;
use heliograph_service::kernel::commands::report_deliveries::{
    AttemptResult, DeliveryOutcome, DeliveryReport, ReportDeliveries,
};
use heliograph_service::kernel::context::Context;
use heliograph_service::kernel::local_queue::LocalQueue;
use heliograph_service::kernel::log_limit::LogLimit;
use heliograph_service::kernel::metrics::metrics;
use heliograph_service::kernel::writer::{self, Writer};
use heliograph_service::webhooks::deliveries::{self, DeliveryAttemptInfo, WebhookResponse};
use heliograph_service::webhooks::events::DeliveryQueues;
use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{OwnedSemaphorePermit, mpsc, oneshot, watch};
use tokio::time::Instant;

/// The size of the local queue: deliveries that a worker leases ahead.
const QUEUE_SIZE: usize = 512;
/// The number of waiting deliveries below which more are claimed: as many as a quick endpoint gets at
/// once, so that the next ones are there before the last one is started.
const CLAIM_BELOW: usize = 64;
/// The maximum number of rows per claim.
const MAX_CLAIM: usize = 256;
/// The retries that are brought forward per second after an outage.
const MAX_FORWARD: u64 = 500;
/// The pause before a report that could not be committed is retried.
const RETRY_DELAY: Duration = Duration::from_secs(1);
/// After this time without work a worker accepts no more direct hand-overs; after twice this time
/// it ends.
const IDLE_TIMEOUT: Duration = Duration::from_secs(300);

/// The state of an endpoint as the supervisor sees it.
#[derive(Clone)]
pub(crate) struct EndpointConfig {
    /// The current settings of the endpoint.
    pub(crate) endpoint: Arc<WebhookEndpoint>,
    /// True while a test event is pending, which bypasses an open circuit breaker.
    pub(crate) urgent: bool,
}

/// The dependencies shared by all endpoint workers.
#[derive(Clone)]
pub(crate) struct WorkerDeps {
    pub(crate) context: Context,
    pub(crate) writer: Writer,
    pub(crate) queues: DeliveryQueues,
    pub(crate) client: HttpClient,
    /// Limits the concurrent requests of the node.
    pub(crate) request_slots: RequestSlots,
    /// Decides which deliveries may still be attempted.
    pub(crate) fence: LeaseFence,
    pub(crate) stop: watch::Receiver<bool>,
}

type Claimed = Result<Vec<LeasedDelivery>, writer::StoreError>;

/// A finished request.
struct FinishedPost {
    delivery: LeasedDelivery,
    response: WebhookResponse,
    /// The start time, which is also the signed timestamp.
    started_at: Timestamp,
    took: Duration,
    connection: Option<HttpConnection>,
    /// True if the request opened a connection of its own.
    dialed: bool,
    /// The URL, which may have changed since.
    target: Arc<WebhookUrl>,
}

/// Delivers the webhooks of one endpoint.
pub(crate) struct EndpointWorker {
    deps: WorkerDeps,
    id: EndpointId,
    config: watch::Receiver<EndpointConfig>,
    target: Arc<WebhookUrl>,
    host: Arc<str>,
    egress_policy: Arc<EgressPolicy>,
    queue: Arc<LocalQueue<LeasedDelivery>>,
    arrivals: mpsc::Receiver<Vec<LeasedDelivery>>,
    waiting: VecDeque<LeasedDelivery>,
    posts: FuturesUnordered<BoxFuture<'static, FinishedPost>>,
    connections: Vec<HttpConnection>,
    /// The requests in flight that open a connection.
    dialing: usize,
    /// True if the endpoint is known to speak HTTP/1.1, where each request needs a connection.
    is_http1: bool,
    breaker: CircuitBreaker,
    /// True if a request waits for a slot of the node.
    starved: bool,
    /// True after an outage, while retries are brought forward.
    recovering: bool,
    recovery: Option<BoxFuture<'static, u64>>,
    /// True if the table may contain deliveries to claim.
    may_have_work: bool,
    claim: Option<oneshot::Receiver<Claimed>>,
    attempts: Vec<AttemptResult>,
    /// The queue slots of `attempts`, freed when the attempts are committed.
    slots: Vec<OwnedSemaphorePermit>,
    report: Option<BoxFuture<'static, ()>>,
    last_work: Instant,
}

/// The events that a worker waits for.
enum Next {
    Arrived(Vec<LeasedDelivery>),
    Done(Box<FinishedPost>),
    Claimed(Option<Claimed>),
    Reported,
    BroughtForward(u64),
    Wake,
    Poll,
    /// The node stops, or the endpoint was deleted.
    End,
}

impl EndpointWorker {
    /// Creates a worker and its local queue; `None` if the URL of the endpoint is invalid.
    pub(crate) fn new(deps: WorkerDeps, config: watch::Receiver<EndpointConfig>) -> Option<Self> {
        let endpoint = config.borrow().endpoint.clone();
        let target = Arc::new(WebhookUrl::parse(&endpoint.url).ok()?);
        let egress_policy = deps.context.settings().egress_policy.clone();
        let egress_policy =
            if endpoint.local { egress_policy.with_loopback() } else { egress_policy };
        let (queue, arrivals) = LocalQueue::new(QUEUE_SIZE);
        deps.queues.insert(endpoint.id, queue.clone());
        Some(Self {
            id: endpoint.id,
            config,
            host: Arc::from(target.host()),
            is_http1: !target.is_https(),
            target,
            egress_policy: Arc::new(egress_policy),
            queue,
            arrivals,
            waiting: VecDeque::new(),
            posts: FuturesUnordered::new(),
            connections: Vec::new(),
            dialing: 0,
            breaker: CircuitBreaker::default(),
            starved: false,
            recovering: false,
            recovery: None,
            may_have_work: true,
            claim: None,
            attempts: Vec::new(),
            slots: Vec::new(),
            report: None,
            last_work: Instant::now(),
            deps,
        })
    }

    /// Runs until the worker is stopped or has been idle for a long time; then releases its leases.
    ///
    /// This is not a [`Worker`](crate::worker::Worker): most of its events belong to one delivery,
    /// and it ends by itself.
    pub(crate) async fn run(mut self) {
        let mut poll = tokio::time::interval(Duration::from_secs(1));
        poll.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        loop {
            self.start_posts();
            self.send_report();
            self.claim_if_due();
            match self.next(&mut poll).await {
                Next::Arrived(deliveries) => self.waiting.extend(deliveries),
                Next::Done(done) => self.on_done(*done),
                Next::Claimed(claimed) => self.on_claimed(claimed),
                Next::Reported => self.report = None,
                Next::BroughtForward(moved) => self.on_brought_forward(moved),
                Next::Wake => {
                    self.follow_url();
                    self.may_have_work = true;
                }
                Next::Poll => {
                    let now = Instant::now();
                    self.connections.retain(|connection| connection.is_reusable(now));
                    self.bring_forward();
                    if self.is_idle() {
                        break;
                    }
                }
                Next::End => break,
            }
        }
        self.shut_down().await;
    }

    async fn next(&mut self, poll: &mut tokio::time::Interval) -> Next {
        tokio::select! {
            Some(done) = self.posts.next() => Next::Done(Box::new(done)),
            Some(arrived) = self.arrivals.recv() => Next::Arrived(arrived),
            claimed = claimed(&mut self.claim) => Next::Claimed(claimed),
            () = reported(&mut self.report) => Next::Reported,
            moved = brought_forward(&mut self.recovery) => Next::BroughtForward(moved),
            () = self.deps.request_slots.freed(), if self.starved => Next::Wake,
            () = self.queue.wake.notified() => Next::Wake,
            changed = self.config.changed() => match changed {
                Ok(()) => Next::Wake,
                Err(_) => Next::End,
            },
            _ = poll.tick() => Next::Poll,
            _ = self.deps.stop.wait_for(|stop| *stop) => Next::End,
        }
    }

    /// Sends further requests to the new URL after it was changed. What is known about the previous
    /// server is forgotten.
    fn follow_url(&mut self) {
        let endpoint = self.config.borrow().endpoint.clone();
        match WebhookUrl::parse(&endpoint.url) {
            Ok(target) if target.as_str() != self.target.as_str() => {
                self.host = Arc::from(target.host());
                self.is_http1 = !target.is_https();
                self.target = Arc::new(target);
                self.connections.clear();
                self.breaker = CircuitBreaker::default();
            }
            _ => {}
        }
    }

    /// Starts as many requests as the circuit breaker allows. While the breaker is open, waiting
    /// deliveries are returned to the table.
    fn start_posts(&mut self) {
        let room = match self.breaker.capacity(Instant::now()) {
            0 if self.is_urgent() => 1,
            room => room,
        };
        if room == 0 {
            let waiting = std::mem::take(&mut self.waiting);
            waiting.into_iter().for_each(|delivery| self.put_off(delivery));
            return;
        }
        self.starved = false;
        while self.posts.len() < room && !self.waiting.is_empty() && self.may_connect() {
            let account = self.config.borrow().endpoint.account;
            let Some(slot) = self.deps.request_slots.try_acquire(account, &self.host) else {
                self.starved = true;
                return;
            };
            if let Some(delivery) = self.waiting.pop_front() {
                self.start(delivery, slot);
            }
        }
    }

    /// Returns whether a request can start. Until the endpoint is known to speak HTTP/1.1, only one
    /// request at a time opens a connection: the others can share it if it speaks HTTP/2.
    fn may_connect(&self) -> bool {
        let now = Instant::now();
        self.is_http1 || self.dialing == 0 || self.connections.iter().any(|c| c.is_reusable(now))
    }

    fn start(&mut self, delivery: LeasedDelivery, slot: RequestSlot) {
        let timeout = self.deps.context.settings().webhook_timeout;
        // The attempt has to end before another node may claim the delivery.
        let allowed = self.deps.fence.allows(delivery.since, Instant::now().into_std());
        if !allowed || delivery.since.elapsed() + timeout > STOP_AFTER {
            return self.put_off(delivery);
        }
        let post = WebhookPost {
            client: self.deps.client.clone(),
            endpoint: self.config.borrow().endpoint.clone(),
            target: self.target.clone(),
            egress_policy: self.egress_policy.clone(),
            event: delivery.event.clone(),
            now: self.deps.context.db.now(),
            timeout,
        };
        let started_at = post.now;
        let connection = self.idle_connection();
        let (dialed, target) = (connection.is_none(), self.target.clone());
        self.dialing += usize::from(dialed);
        let work = async move {
            let started = Instant::now();
            let (response, connection) = post.send(connection).await;
            drop(slot);
            let took = started.elapsed();
            FinishedPost { delivery, response, started_at, took, connection, dialed, target }
        };
        self.posts.push(work.boxed());
    }

    /// Returns a connection that is idle or can be shared.
    fn idle_connection(&mut self) -> Option<HttpConnection> {
        let now = Instant::now();
        while let Some(connection) = self.connections.pop() {
            if connection.is_reusable(now) {
                if let Some(shared) = connection.share() {
                    self.connections.push(shared);
                }
                return Some(connection);
            }
        }
        None
    }

    /// Returns a delivery to the table without an attempt.
    fn put_off(&mut self, delivery: LeasedDelivery) {
        let now = self.deps.context.db.now();
        self.record(delivery, (now, Duration::ZERO), DeliveryOutcome::NotAttempted);
    }

    /// Records an attempt. The end time is the start time plus the duration, so that the signed
    /// timestamp can be derived from the stored attempt.
    fn record(
        &mut self,
        delivery: LeasedDelivery,
        (started_at, took): (Timestamp, Duration),
        outcome: DeliveryOutcome,
    ) {
        let (account, at) = (delivery.event.account, started_at.after(took));
        let (lease, primary) = (delivery.lease, delivery.primary);
        self.attempts.push(AttemptResult { lease, account, primary, at, took, outcome });
        self.slots.push(delivery.room);
    }

    fn on_done(&mut self, done: FinishedPost) {
        let FinishedPost { delivery, response, started_at, took, connection, dialed, target } =
            done;
        self.dialing -= usize::from(dialed);
        if let Some(connection) = connection.filter(|_| Arc::ptr_eq(&target, &self.target)) {
            self.is_http1 = !connection.is_http2();
            let kept =
                !connection.is_http2() || !self.connections.iter().any(HttpConnection::is_http2);
            if kept {
                self.connections.push(connection);
            }
        }
        let attempt = DeliveryAttemptInfo {
            tries: delivery.lease.tries,
            age: started_at.since(delivery.event.at),
            endpoint_works: self.breaker.works(Instant::now()),
        };
        let outcome = deliveries::evaluate_response(attempt, response, fastrand::f64());
        let result = match &outcome {
            DeliveryOutcome::Delivered { .. } => {
                self.recovering |= self.breaker.has_opened();
                self.breaker.record_success(Instant::now(), took);
                "delivered"
            }
            DeliveryOutcome::Failed { failure, .. } => {
                self.breaker.record_failure(Instant::now(), fastrand::f64());
                let event = delivery.event.id;
                let (outcome, detail) = (failure.outcome, &failure.detail);
                tracing::debug!(endpoint = self.id.0, %event, ?outcome, detail, "webhook failed");
                "failed"
            }
            DeliveryOutcome::NotAttempted => "postponed",
        };
        metrics().webhook_attempts.with_label_values(&[result]).inc();
        if self.queue.is_available() != self.breaker.is_healthy() {
            self.queue.set_available(self.breaker.is_healthy());
        }
        self.record(delivery, (started_at, took), outcome);
    }

    /// Reports attempts to the writer. One report is in flight at a time; later attempts go into
    /// the next.
    fn send_report(&mut self) {
        if self.report.is_some() || self.attempts.is_empty() {
            return;
        }
        let attempts = std::mem::take(&mut self.attempts);
        let slots = std::mem::take(&mut self.slots);
        let mut report = DeliveryReport { endpoint: self.id, attempts };
        let writer = self.deps.writer.clone();
        let work = async move {
            loop {
                let (reply, answer) = oneshot::channel();
                let command = Command::ReportDeliveries(ReportDeliveries { report, reply });
                if writer.send(command).await.is_err() {
                    break;
                }
                let Ok(Err((error, returned))) = answer.await else { break };
                if let Some(omitted) = REPORT_FAILED.admit() {
                    tracing::warn!(%error, omitted, "failed to save webhook delivery attempts");
                }
                report = returned;
                tokio::time::sleep(RETRY_DELAY).await;
            }
            drop(slots);
        };
        self.report = Some(work.boxed());
    }

    /// Brings retries forward after an outage, a limited number with each poll, until none is left
    /// or the endpoint fails again.
    fn bring_forward(&mut self) {
        self.recovering &= !self.breaker.has_opened();
        if !self.recovering || self.recovery.is_some() {
            return;
        }
        let (context, id) = (self.deps.context.clone(), self.id);
        let work = async move {
            let moved = deliveries::bring_forward(&context, id, MAX_FORWARD).await;
            moved.unwrap_or_else(|error| {
                tracing::warn!(%error, endpoint = id.0, "failed to bring webhook retries forward");
                // As if there were more: the next poll tries again.
                MAX_FORWARD
            })
        };
        self.recovery = Some(work.boxed());
    }

    fn on_brought_forward(&mut self, moved: u64) {
        self.recovery = None;
        self.may_have_work |= moved > 0;
        self.recovering &= moved >= MAX_FORWARD;
    }

    /// Claims deliveries if there may be some, as many as can be started soon.
    fn claim_if_due(&mut self) {
        if !self.may_have_work || self.claim.is_some() || self.waiting.len() >= CLAIM_BELOW {
            return;
        }
        let urgent = self.is_urgent();
        let room = self.breaker.capacity(Instant::now());
        let limit = match room {
            0 if urgent => 1,
            room if self.breaker.is_healthy() => MAX_CLAIM.max(room),
            room => room.saturating_sub(self.posts.len() + self.waiting.len()),
        };
        let Some(slots) = self.queue.reserve_up_to(limit) else { return };
        let (reply, answer) = oneshot::channel();
        let collect = ClaimDeliveries { endpoint: self.id, urgent: room == 0, room: slots, reply };
        if self.deps.writer.try_send(Command::ClaimDeliveries(collect)).is_ok() {
            self.claim = Some(answer);
            self.may_have_work = false;
        }
    }

    fn on_claimed(&mut self, claimed: Option<Claimed>) {
        self.claim = None;
        match claimed {
            Some(Ok(deliveries)) => {
                self.may_have_work |= !deliveries.is_empty();
                self.waiting.extend(deliveries);
            }
            Some(Err(error)) => {
                if let Some(omitted) = CLAIM_FAILED.admit() {
                    tracing::warn!(%error, omitted, "failed to claim webhook deliveries");
                }
            }
            None => {}
        }
    }

    fn is_urgent(&self) -> bool {
        self.config.borrow().urgent
    }

    /// Returns whether the worker has been idle for so long that no hand-over can be on its way.
    fn is_idle(&mut self) -> bool {
        let busy = !(self.waiting.is_empty() && self.posts.is_empty() && self.attempts.is_empty());
        if busy || self.report.is_some() || self.claim.is_some() {
            self.last_work = Instant::now();
        }
        let idle = self.last_work.elapsed();
        if idle > IDLE_TIMEOUT && self.queue.is_available() {
            self.queue.set_available(false);
        }
        idle > 2 * IDLE_TIMEOUT
    }

    /// Finishes requests in flight and returns deliveries that were not started.
    async fn shut_down(mut self) {
        self.queue.set_available(false);
        self.deps.queues.remove(self.id);
        if let Some(claim) = self.claim.take()
            && let Ok(Ok(deliveries)) = claim.await
        {
            self.waiting.extend(deliveries);
        }
        while let Ok(deliveries) = self.arrivals.try_recv() {
            self.waiting.extend(deliveries);
        }
        for delivery in std::mem::take(&mut self.waiting) {
            self.put_off(delivery);
        }
        while let Some(done) = self.posts.next().await {
            self.on_done(done);
        }
        while self.report.is_some() || !self.attempts.is_empty() {
            self.send_report();
            reported(&mut self.report).await;
            self.report = None;
        }
    }
}

static REPORT_FAILED: LogLimit = LogLimit::new();
static CLAIM_FAILED: LogLimit = LogLimit::new();

/// Waits for the answer to the claim in flight; pending forever if there is none.
async fn claimed(claim: &mut Option<oneshot::Receiver<Claimed>>) -> Option<Claimed> {
    match claim {
        Some(answer) => answer.await.ok(),
        None => std::future::pending().await,
    }
}

/// Waits for the retries that are being brought forward; pending forever if there are none.
async fn brought_forward(recovery: &mut Option<BoxFuture<'static, u64>>) -> u64 {
    match recovery {
        Some(recovery) => recovery.await,
        None => std::future::pending().await,
    }
}

/// Waits for the end of the report in flight; pending forever if there is none.
async fn reported(report: &mut Option<BoxFuture<'static, ()>>) {
    match report {
        Some(report) => report.await,
        None => std::future::pending().await,
    }
}
