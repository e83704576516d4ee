//! A courier: takes webhooks to one endpoint, many at once while it answers, none while it does not.

use crate::breaker::Breaker;
use crate::http_client::HttpClient;
use crate::line::Line;
use crate::post::Post;
use futures_util::future::{BoxFuture, FutureExt};
use futures_util::stream::{FuturesUnordered, StreamExt};
use heliograph_domain::id::EndpointId;
use heliograph_domain::lease::STOP_AFTER;
use heliograph_domain::target::{Reach, Target};
use heliograph_domain::time::Timestamp;
use heliograph_domain::webhook::Endpoint;
use heliograph_service::context::Context;
use heliograph_service::deliveries::{self, Response};
use heliograph_service::desk::Desk;
use heliograph_service::events::Couriers;
use heliograph_service::parcel::{Attempted, Collect, Parcel, Report, Verdict};
use heliograph_service::writer::{self, Command, Writer};
use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc, oneshot, watch};
use tokio::time::Instant;

/// Parcels that a courier takes in ahead, at most.
const AHEAD: usize = 512;
/// Rows that one claim leases at most.
const CLAIM: usize = 256;
/// How long a report waits that the database could not take.
const AGAIN: Duration = Duration::from_secs(1);
/// A courier without work for so long takes nothing in any more, and ends after as long again.
const IDLE: Duration = Duration::from_secs(300);

/// What a courier is told from outside.
#[derive(Clone)]
pub(crate) struct Orders {
    /// The endpoint as it is now.
    pub(crate) endpoint: Arc<Endpoint>,
    /// Whether a test waits, which goes before everything else.
    pub(crate) urgent: bool,
}

/// What all couriers share.
#[derive(Clone)]
pub(crate) struct Equipment {
    pub(crate) context: Context,
    pub(crate) writer: Writer,
    pub(crate) couriers: Couriers,
    pub(crate) client: HttpClient,
    /// One for each POST that the node may have under way.
    pub(crate) sockets: Arc<Semaphore>,
    pub(crate) stop: watch::Receiver<bool>,
}

type Claimed = Result<Vec<Parcel>, writer::Error>;

/// A POST that has ended.
struct Done {
    parcel: Parcel,
    response: Response,
    /// When it began, by the clock that it was signed with.
    begun_at: Timestamp,
    took: Duration,
    line: Option<Line>,
}

pub(crate) struct Courier {
    with: Equipment,
    id: EndpointId,
    orders: watch::Receiver<Orders>,
    target: Arc<Target>,
    reach: Arc<Reach>,
    desk: Arc<Desk<Parcel>>,
    arrivals: mpsc::Receiver<Vec<Parcel>>,
    waiting: VecDeque<Parcel>,
    posts: FuturesUnordered<BoxFuture<'static, Done>>,
    lines: Vec<Line>,
    breaker: Breaker,
    /// Something waits in the table.
    more: bool,
    claim: Option<oneshot::Receiver<Claimed>>,
    attempts: Vec<Attempted>,
    /// The places of what is in `attempts`: free when that is durable.
    places: Vec<OwnedSemaphorePermit>,
    report: Option<BoxFuture<'static, ()>>,
    last_work: Instant,
}

/// What a courier waits for.
enum Next {
    Arrived(Vec<Parcel>),
    Done(Box<Done>),
    Claimed(Option<Claimed>),
    Reported,
    Bell,
    Look,
    /// Stopped, or its endpoint is gone.
    End,
}

impl Courier {
    /// A courier, and its desk. `None` when the endpoint's URL can't be read any more.
    pub(crate) fn new(with: Equipment, orders: watch::Receiver<Orders>) -> Option<Self> {
        let endpoint = orders.borrow().endpoint.clone();
        let target = Arc::new(Target::parse(&endpoint.url).ok()?);
        let reach = with.context.settings().reach.clone();
        let reach = if endpoint.local { reach.and_loopback() } else { reach };
        let (desk, arrivals) = Desk::new(AHEAD);
        with.couriers.set(endpoint.id, desk.clone());
        Some(Self {
            id: endpoint.id,
            orders,
            target,
            reach: Arc::new(reach),
            desk,
            arrivals,
            waiting: VecDeque::new(),
            posts: FuturesUnordered::new(),
            lines: Vec::new(),
            breaker: Breaker::default(),
            more: true,
            claim: None,
            attempts: Vec::new(),
            places: Vec::new(),
            report: None,
            last_work: Instant::now(),
            with,
        })
    }

    /// Works until it is told to end or has had nothing to do for long; then gives back what it holds.
    pub(crate) async fn run(mut self) {
        let mut look = tokio::time::interval(Duration::from_secs(1));
        look.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        loop {
            self.start_posts();
            self.send_report();
            self.claim_if_due();
            match self.next(&mut look).await {
                Next::Arrived(parcels) => self.waiting.extend(parcels),
                Next::Done(done) => self.on_done(*done),
                Next::Claimed(claimed) => self.on_claimed(claimed),
                Next::Reported => self.report = None,
                Next::Bell => self.more = true,
                Next::Look => {
                    let now = Instant::now();
                    self.lines.retain(|line| line.is_good(now));
                    if self.is_idle() {
                        break;
                    }
                }
                Next::End => break,
            }
        }
        self.wind_up().await;
    }

    async fn next(&mut self, look: &mut tokio::time::Interval) -> Next {
        tokio::select! {
            Some(done) = self.posts.next() => Next::Done(Box::new(done)),
            Some(arrived) = self.arrivals.recv() => Next::Arrived(arrived),
            claimed = claimed(&mut self.claim) => Next::Claimed(claimed),
            () = reported(&mut self.report) => Next::Reported,
            () = self.desk.bell.notified() => Next::Bell,
            changed = self.orders.changed() => match changed {
                Ok(()) => Next::Bell,
                Err(_) => Next::End,
            },
            _ = look.tick() => Next::Look,
            _ = self.with.stop.wait_for(|stop| *stop) => Next::End,
        }
    }

    /// Starts as many as the endpoint is fit for. While it is left alone, all that waits goes back.
    fn start_posts(&mut self) {
        let room = match self.breaker.room(Instant::now()) {
            0 if self.is_urgent() => 1,
            room => room,
        };
        if room == 0 {
            let waiting = std::mem::take(&mut self.waiting);
            waiting.into_iter().for_each(|parcel| self.put_off(parcel));
            return;
        }
        while self.posts.len() < room && !self.waiting.is_empty() {
            // Each endpoint may have one under way, however many wait for others that take their time.
            let socket = self.with.sockets.clone().try_acquire_owned().ok();
            if socket.is_none() && !self.posts.is_empty() {
                return;
            }
            if let Some(parcel) = self.waiting.pop_front() {
                self.start(parcel, socket);
            }
        }
    }

    fn start(&mut self, parcel: Parcel, socket: Option<OwnedSemaphorePermit>) {
        let timeout = self.with.context.settings().webhook_timeout;
        // An attempt that begins now has to end before another node may begin one.
        if parcel.since.elapsed() + timeout > STOP_AFTER {
            return self.put_off(parcel);
        }
        let post = Post {
            client: self.with.client.clone(),
            endpoint: self.orders.borrow().endpoint.clone(),
            target: self.target.clone(),
            reach: self.reach.clone(),
            event: parcel.event.clone(),
            now: self.with.context.db.now(),
            timeout,
        };
        let begun_at = post.now;
        let line = self.line();
        let work = async move {
            let begun = Instant::now();
            let (response, line) = post.send(line).await;
            drop(socket);
            Done { parcel, response, begun_at, took: begun.elapsed(), line }
        };
        self.posts.push(work.boxed());
    }

    /// A line that is free, or can be shared.
    fn line(&mut self) -> Option<Line> {
        let now = Instant::now();
        while let Some(line) = self.lines.pop() {
            if line.is_good(now) {
                if let Some(shared) = line.share() {
                    self.lines.push(shared);
                }
                return Some(line);
            }
        }
        None
    }

    fn put_off(&mut self, parcel: Parcel) {
        let now = self.with.context.db.now();
        self.note(parcel, (now, Duration::ZERO), Verdict::NotTried);
    }

    /// The end is counted from the beginning, so that who knows both knows what was signed.
    fn note(&mut self, parcel: Parcel, (begun_at, took): (Timestamp, Duration), verdict: Verdict) {
        let (account, at) = (parcel.event.account, begun_at.after(took));
        let (lease, primary) = (parcel.lease, parcel.primary);
        self.attempts.push(Attempted { lease, account, primary, at, took, verdict });
        self.places.push(parcel.room);
    }

    fn on_done(&mut self, done: Done) {
        let Done { parcel, response, begun_at, took, line } = done;
        if let Some(line) = line {
            let kept = !line.is_http2() || !self.lines.iter().any(Line::is_http2);
            if kept {
                self.lines.push(line);
            }
        }
        let verdict = deliveries::judge(parcel.lease.tries, response, fastrand::f64());
        let result = match &verdict {
            Verdict::Taken { .. } => {
                self.breaker.succeeded(took);
                "taken"
            }
            Verdict::Failed { failure, .. } => {
                self.breaker.failed(Instant::now(), fastrand::f64());
                let event = parcel.event.id;
                tracing::debug!(endpoint = self.id.0, %event, why = failure.detail, "webhook");
                "failed"
            }
            Verdict::NotTried => "put off",
        };
        metrics::counter!("heliograph_webhook_attempts_total", "result" => result).increment(1);
        if self.desk.is_bound() != self.breaker.is_well() {
            self.desk.set_bound(self.breaker.is_well());
        }
        self.note(parcel, (begun_at, took), verdict);
    }

    /// One report is under way at a time: what happens meanwhile goes with the next.
    fn send_report(&mut self) {
        if self.report.is_some() || self.attempts.is_empty() {
            return;
        }
        let attempts = std::mem::take(&mut self.attempts);
        let places = std::mem::take(&mut self.places);
        let mut report = Report { endpoint: self.id, attempts };
        let writer = self.with.writer.clone();
        let work = async move {
            loop {
                let (reply, answer) = oneshot::channel();
                if writer.send(Command::Report(report, reply)).await.is_err() {
                    break;
                }
                let Ok(Err((error, back))) = answer.await else { break };
                tracing::warn!(%error, "a report of webhooks has to wait");
                report = back;
                tokio::time::sleep(AGAIN).await;
            }
            drop(places);
        };
        self.report = Some(work.boxed());
    }

    /// Asks for work when there may be some, and as much as can be begun soon.
    fn claim_if_due(&mut self) {
        if !self.more || self.claim.is_some() || !self.waiting.is_empty() {
            return;
        }
        let urgent = self.is_urgent();
        let room = self.breaker.room(Instant::now());
        let most = match room {
            0 if urgent => 1,
            room if self.breaker.is_well() => CLAIM.max(room),
            room => room.saturating_sub(self.posts.len()),
        };
        let Some(places) = self.desk.free_room(most) else { return };
        let (reply, answer) = oneshot::channel();
        let collect = Collect { endpoint: self.id, urgent: room == 0, room: places, reply };
        if self.with.writer.try_send(Command::Collect(collect)).is_ok() {
            self.claim = Some(answer);
            self.more = false;
        }
    }

    fn on_claimed(&mut self, claimed: Option<Claimed>) {
        self.claim = None;
        match claimed {
            Some(Ok(parcels)) => {
                self.more |= !parcels.is_empty();
                self.waiting.extend(parcels);
            }
            Some(Err(error)) => tracing::warn!(%error, "webhooks could not be claimed"),
            None => {}
        }
    }

    fn is_urgent(&self) -> bool {
        self.orders.borrow().urgent
    }

    /// Whether it has had nothing to do for so long that nothing can be on its way to it either.
    fn is_idle(&mut self) -> bool {
        let busy = !(self.waiting.is_empty() && self.posts.is_empty() && self.attempts.is_empty());
        if busy || self.report.is_some() || self.claim.is_some() {
            self.last_work = Instant::now();
        }
        let idle = self.last_work.elapsed();
        if idle > IDLE && self.desk.is_bound() {
            self.desk.set_bound(false);
        }
        idle > 2 * IDLE
    }

    /// Ends what is under way, and gives back what was not begun.
    async fn wind_up(mut self) {
        self.desk.set_bound(false);
        self.with.couriers.remove(self.id);
        if let Some(claim) = self.claim.take()
            && let Ok(Ok(parcels)) = claim.await
        {
            self.waiting.extend(parcels);
        }
        while let Ok(parcels) = self.arrivals.try_recv() {
            self.waiting.extend(parcels);
        }
        for parcel in std::mem::take(&mut self.waiting) {
            self.put_off(parcel);
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

/// The answer to the claim that is under way; waits for ever when none is.
async fn claimed(claim: &mut Option<oneshot::Receiver<Claimed>>) -> Option<Claimed> {
    match claim {
        Some(answer) => answer.await.ok(),
        None => std::future::pending().await,
    }
}

/// The end of the report that is under way; waits for ever when none is.
async fn reported(report: &mut Option<BoxFuture<'static, ()>>) {
    match report {
        Some(report) => report.await,
        None => std::future::pending().await,
    }
}
