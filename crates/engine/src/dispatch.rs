//! Dispatch: leased messages go to their carrier, and what the carrier says goes to the writer.

use crate::flight::{Flight, Landing};
use futures_util::future::BoxFuture;
use futures_util::stream::{FuturesUnordered, StreamExt};
use heliograph_carrier::carrier::{Ack, Event, Line};
use heliograph_carrier::condition::Condition;
use heliograph_domain::id::CarrierId;
use heliograph_domain::lease::{RENEW_AFTER, STOP_AFTER};
use heliograph_domain::message::{Failure, FailureCode};
use heliograph_domain::submission::{Outcome, Recall, Submission};
use heliograph_domain::text;
use heliograph_service::context::Context;
use heliograph_service::dispatch::{Desk, Desks, judge};
use heliograph_service::replies::{self, Confirmation, Heard};
use heliograph_service::writer::{Claim, Command, Handed, Progress, Writer};
use heliograph_service::{messages, optouts};
use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::{mpsc, oneshot, watch};
use tokio::time::Interval;
use uuid::Uuid;

/// How often the table is looked at even when no bell rang: what other nodes left, and what is due
/// by the clock.
const LOOK: Duration = Duration::from_secs(1);
/// Rows that one claim leases at most.
const CLAIM: usize = 512;
/// Batches of news that may be under way to the database; beyond it the carrier has to wait.
const FLIGHTS: usize = 64;

/// One carrier's dispatcher.
pub(crate) struct Dispatcher {
    carrier: CarrierId,
    name: String,
    claim_ahead: usize,
    context: Context,
    writer: Writer,
    desk: Arc<Desk>,
    arrivals: mpsc::Receiver<Vec<Handed>>,
    submissions: mpsc::Sender<Submission>,
    events: mpsc::Receiver<Vec<Event>>,
    acks: mpsc::Sender<Vec<Ack>>,
    stop: watch::Receiver<bool>,
    /// Messages under way to the carrier, by token.
    held: HashMap<u64, Held>,
    next_token: u64,
    /// Something waits in the table.
    more: bool,
    /// Opt-outs are being looked for.
    looking: bool,
    flights: FuturesUnordered<BoxFuture<'static, Step>>,
    claim: Option<oneshot::Receiver<Claimed>>,
}

type Claimed = Result<Vec<Handed>, heliograph_service::writer::Error>;

struct Held {
    handed: Handed,
    outcomes: Vec<(u8, Outcome)>,
    /// Parts whose outcome is still to come.
    left: usize,
    renewed: Instant,
    recall: Recall,
}

/// What a dispatcher waits for.
enum Next {
    Events(Vec<Event>),
    Ended,
    Arrived(Vec<Handed>),
    Step(Step),
    Claimed(Option<Claimed>),
    Bell,
    Look,
    Stop,
}

enum Step {
    Landed(Landing),
    Rested(Flight),
    Confirmed,
    Looked(HashSet<Uuid>),
}

impl Dispatcher {
    /// A dispatcher, and the carrier's end of its line.
    pub(crate) fn new(
        (carrier, name): (CarrierId, String),
        claim_ahead: usize,
        (context, writer, desks): (&Context, &Writer, &Desks),
        condition: Arc<Condition>,
        stop: &watch::Receiver<bool>,
    ) -> (Self, Line) {
        let (desk, arrivals) = Desk::new(claim_ahead);
        desks.set(carrier, desk.clone());
        let most_parts = usize::from(text::MAX_PARTS);
        let (submissions, to_submit) = mpsc::channel(claim_ahead.saturating_mul(most_parts));
        let (to_engine, events) = mpsc::channel(FLIGHTS);
        let (acks, to_ack) = mpsc::channel(FLIGHTS);
        let line = Line {
            submissions: to_submit,
            events: to_engine,
            acks: to_ack,
            condition,
            stop: stop.clone(),
        };
        let dispatcher = Self {
            carrier,
            name,
            claim_ahead,
            context: context.clone(),
            writer: writer.clone(),
            desk,
            arrivals,
            submissions,
            events,
            acks,
            stop: stop.clone(),
            held: HashMap::new(),
            next_token: 0,
            more: true,
            looking: false,
            flights: FuturesUnordered::new(),
            claim: None,
        };
        (dispatcher, line)
    }

    /// Runs until the node stops and the carrier has said its last word; gives back what it still held.
    pub(crate) async fn run(mut self) {
        let mut look = tokio::time::interval(LOOK);
        look.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        let mut stopping = false;
        loop {
            match self.next(&mut look, stopping).await {
                Next::Events(events) => self.on_events(events).await,
                Next::Ended => break,
                Next::Arrived(arrived) => self.submit_all(arrived),
                Next::Step(step) => self.on_step(step).await,
                Next::Claimed(claimed) => self.on_claimed(claimed),
                Next::Bell => self.more = true,
                Next::Look => self.on_look().await,
                Next::Stop => {
                    stopping = true;
                    self.desk.set_bound(false);
                }
            }
            if !stopping {
                self.claim_if_due();
            }
        }
        self.wind_up().await;
    }

    /// Waits for whatever comes first.
    async fn next(&mut self, look: &mut Interval, stopping: bool) -> Next {
        tokio::select! {
            events = self.events.recv(), if self.flights.len() < FLIGHTS => {
                events.map_or(Next::Ended, Next::Events)
            }
            Some(arrived) = self.arrivals.recv() => Next::Arrived(arrived),
            Some(step) = self.flights.next() => Next::Step(step),
            claimed = claimed(&mut self.claim) => Next::Claimed(claimed),
            () = self.desk.bell.notified() => Next::Bell,
            _ = look.tick() => Next::Look,
            _ = self.stop.wait_for(|stop| *stop), if !stopping => Next::Stop,
        }
    }

    /// Hands messages to the carrier, part by part.
    fn submit_all(&mut self, arrived: Vec<Handed>) {
        metrics::counter!("heliograph_dispatched_total").increment(arrived.len() as u64);
        for handed in arrived {
            self.submit(handed);
        }
    }

    fn submit(&mut self, handed: Handed) {
        let token = self.next_token;
        self.next_token = self.next_token.wrapping_add(1);
        let message = handed.leased.message.clone();
        let validity = message.expires_at.since(self.context.db.now());
        let recall = Recall::default();
        let mut held =
            Held { renewed: handed.since, handed, outcomes: Vec::new(), left: 0, recall };
        let segments = if validity.is_zero() {
            let expired = Outcome::Refused(Failure::plain(FailureCode::Expired));
            held.outcomes.push((1, expired));
            Vec::new()
        } else {
            text::segments(&message.text, token.to_le_bytes()[0])
        };
        for (part, segment) in (1u8..).zip(segments) {
            if held.handed.leased.parts_taken.contains(&part) {
                continue;
            }
            let submission = Submission {
                token,
                part,
                originator: message.originator.clone(),
                recipient: message.recipient,
                segment,
                label: replies::label(message.account, message.mode),
                validity,
                not_after: held.handed.since + STOP_AFTER,
                recall: held.recall.clone(),
            };
            match self.submissions.try_send(submission) {
                Ok(()) => held.left += 1,
                Err(_) => held.outcomes.push((part, Outcome::NotSent)),
            }
        }
        if held.left > 0 {
            self.held.insert(token, held);
        } else {
            let mut flight =
                Flight { news: Progress::default(), held: Vec::new(), handles: Vec::new() };
            settle(held, &mut flight);
            self.flights.push(Box::pin(async move { Step::Rested(flight) }));
        }
    }

    /// Turns what happened on the wire into one command, in wire order.
    async fn on_events(&mut self, events: Vec<Event>) {
        let mut flight =
            Flight { news: Progress::default(), held: Vec::new(), handles: Vec::new() };
        let mut receipts = 0;
        for event in events {
            match event {
                Event::Bound => {
                    self.set_bound(true);
                    self.more = true;
                }
                // The carrier itself says why, by its name.
                Event::Unbound(_) => self.set_bound(false),
                Event::Submitted { token, part, outcome } => {
                    self.on_outcome(token, (part, outcome), &mut flight);
                }
                Event::Receipt { handle, receipt } => {
                    flight.handles.push(handle);
                    flight.news.receipts.push((self.carrier, receipt));
                    receipts += 1;
                }
                Event::Message { handle, incoming } => {
                    flight.handles.push(handle);
                    flight.news.heard.push(Heard::Incoming(self.carrier, incoming));
                }
            }
        }
        let settled = flight.news.settlements.len() as u64;
        metrics::counter!("heliograph_settled_total").increment(settled);
        let heard = flight.news.heard.len() as u64;
        metrics::counter!("heliograph_receipts_total").increment(receipts);
        metrics::counter!("heliograph_inbound_total").increment(heard);
        self.launch(flight).await;
    }

    fn set_bound(&self, bound: bool) {
        self.desk.set_bound(bound);
        let gauge = metrics::gauge!("heliograph_carrier_bound", "carrier" => self.name.clone());
        gauge.set(f64::from(u8::from(bound)));
    }

    fn on_outcome(&mut self, token: u64, outcome: (u8, Outcome), flight: &mut Flight) {
        let Some(held) = self.held.get_mut(&token) else { return };
        held.outcomes.push(outcome);
        held.left = held.left.saturating_sub(1);
        if held.left == 0
            && let Some(held) = self.held.remove(&token)
        {
            settle(held, flight);
        }
    }

    async fn launch(&mut self, mut flight: Flight) {
        if flight.is_empty() {
            return;
        }
        let answer = flight.send(&self.writer).await;
        self.flights.push(Box::pin(async move { Step::Landed(flight.land(answer).await) }));
    }

    async fn on_step(&mut self, step: Step) {
        match step {
            Step::Rested(flight) => self.launch(flight).await,
            Step::Landed(Landing::Done(acks, confirmations)) => {
                self.confirm(confirmations);
                self.acknowledge(acks).await;
            }
            Step::Confirmed => {}
            Step::Looked(out) => self.call_back(&out),
            Step::Landed(Landing::Again(acks, flight)) => {
                self.flights.push(Box::pin(async move { Step::Rested(flight.pause().await) }));
                self.acknowledge(acks).await;
            }
            Step::Landed(Landing::Closed) => {}
        }
    }

    /// Sends people the answers to their one word.
    fn confirm(&mut self, all: Vec<Confirmation>) {
        for confirmation in all {
            let (context, writer) = (self.context.clone(), self.writer.clone());
            self.flights.push(Box::pin(async move {
                if let Err(error) = messages::confirm(&context, &writer, confirmation).await {
                    tracing::warn!(%error, "a confirmation could not be sent");
                }
                Step::Confirmed
            }));
        }
    }

    async fn acknowledge(&mut self, acks: Vec<Ack>) {
        if !acks.is_empty() {
            // A carrier that has ended needs no acknowledgement: its SMSC sends the receipt again.
            drop(self.acks.send(acks).await);
        }
    }

    /// Asks for work when there may be some, and room for a good part of it.
    fn claim_if_due(&mut self) {
        let worthwhile = (self.claim_ahead / 4).clamp(1, CLAIM);
        let due = self.more && self.claim.is_none() && self.desk.is_bound();
        if !due || self.desk.places() < worthwhile {
            return;
        }
        let Some(room) = self.desk.free_room(CLAIM) else { return };
        let (reply, answer) = oneshot::channel();
        let claim = Claim { carrier: self.carrier, room, reply };
        if self.writer.try_send(Command::Claim(claim)).is_ok() {
            self.claim = Some(answer);
            self.more = false;
        }
    }

    fn on_claimed(&mut self, claimed: Option<Claimed>) {
        self.claim = None;
        match claimed {
            Some(Ok(handed)) => {
                // Whoever finds something looks again; a look that finds nothing ends it.
                self.more |= !handed.is_empty();
                self.submit_all(handed);
            }
            Some(Err(error)) => tracing::warn!(%error, "work could not be claimed"),
            None => {}
        }
    }

    async fn on_look(&mut self) {
        self.more = true;
        let now = Instant::now();
        let mut leases = Vec::new();
        for held in self.held.values_mut() {
            if now.duration_since(held.renewed) > RENEW_AFTER {
                held.renewed = now;
                leases.push(held.handed.leased.lease.clone());
            }
        }
        if !leases.is_empty() {
            // Only what a carrier is slow to answer comes here. If the renewal fails, another node
            // takes over after the lease, and the state machine tells the two apart.
            let (reply, _) = oneshot::channel();
            drop(self.writer.send(Command::Renew(leases, reply)).await);
        }
        self.look_for_optouts();
    }

    /// Asks who of those whose messages are on their way to the carrier has opted out since.
    fn look_for_optouts(&mut self) {
        let held = self.held.values().filter(|h| h.handed.leased.message.optout_list.is_some());
        let messages: Vec<_> = held.map(|h| h.handed.leased.message.clone()).collect();
        if self.looking || messages.is_empty() {
            return;
        }
        self.looking = true;
        let context = self.context.clone();
        self.flights.push(Box::pin(async move {
            let out = optouts::opted_out(&context, &messages).await;
            Step::Looked(
                out.inspect_err(|error| tracing::warn!(%error, "opt-outs")).unwrap_or_default(),
            )
        }));
    }

    /// Calls back what has not been submitted yet; it goes back into the table, where the next claim fails it.
    fn call_back(&mut self, out: &HashSet<Uuid>) {
        self.looking = false;
        for held in self.held.values() {
            if out.contains(&held.handed.leased.message.id.0) {
                held.recall.recall();
            }
        }
    }

    /// The carrier has ended: whatever has not been answered was not sent.
    async fn wind_up(mut self) {
        self.desk.set_bound(false);
        if let Some(claim) = self.claim.take()
            && let Ok(Ok(handed)) = claim.await
        {
            self.submit_all(handed);
        }
        while let Ok(handed) = self.arrivals.try_recv() {
            self.submit_all(handed);
        }
        let mut flight =
            Flight { news: Progress::default(), held: Vec::new(), handles: Vec::new() };
        for (_, mut held) in std::mem::take(&mut self.held) {
            held.outcomes.push((1, Outcome::NotSent));
            settle(held, &mut flight);
        }
        self.launch(flight).await;
        // Outcomes that the database can't take now are tried until it can; whoever runs us sets the limit.
        while let Some(step) = self.flights.next().await {
            self.on_step(step).await;
        }
    }
}

fn settle(held: Held, flight: &mut Flight) {
    flight.news.settlements.push(judge(&held.handed.leased, held.outcomes));
    flight.held.push(held.handed);
}

/// The answer to the claim that is under way; waits for ever when none is.
async fn claimed(claim: &mut Option<oneshot::Receiver<Claimed>>) -> Option<Claimed> {
    match claim {
        Some(answer) => answer.await.ok(),
        None => std::future::pending().await,
    }
}
