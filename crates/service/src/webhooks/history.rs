//! History: what an endpoint was told, what it answered, and what it is still to be told.

use crate::caller::Caller;
use crate::context::Context;
use crate::error::Result;
use heliograph_domain::account::Scope;
use heliograph_domain::event::{Kind, Occurrence};
use heliograph_domain::id::{AccountId, EndpointId, EventId, InboundId, MessageId};
use heliograph_domain::time::Timestamp;
use heliograph_domain::webhook::Endpoint;
pub use heliograph_store::attempts::Attempt;
use heliograph_store::events::First;
use heliograph_store::{Conn, attempts, deliveries, events, inbound_messages, messages};
use std::collections::{HashMap, HashSet};
use uuid::Uuid;

/// Deliveries on a page.
const SHOWN: usize = 25;
/// Rows that are read for one at most; a page may hold less, and still not be the last.
const READ: i64 = 500;
/// Waiting deliveries that are looked at: of those beyond, it is not said when they are due.
const WAITING: i64 = 1_000;

/// Which deliveries are asked for, and from where on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Show {
    /// All, the newest first: those of before this event.
    All(EventId),
    /// Those whose last attempt failed: by attempts of before this instant.
    Failed(Timestamp),
    /// Those that are still to be told, the first due first.
    Waiting,
}

/// Where a delivery stands.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Standing {
    /// The endpoint took it.
    Taken,
    /// It was not tried yet.
    Waiting,
    /// It failed, and is tried again.
    Retrying,
    /// It failed, and is not tried again by itself.
    Failed,
    /// It was never tried, and will not be: the endpoint was off, or something of that kind.
    Untold,
}

/// What an event is about.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum About {
    /// A message to this number.
    Message(MessageId, String),
    /// A message from this number.
    Received(String),
}

/// One event on its way to one endpoint.
#[derive(Clone, Debug)]
pub struct Delivery {
    /// What happened.
    pub event: Occurrence,
    /// Where it stands.
    pub standing: Standing,
    /// The last attempts, the oldest first.
    pub attempts: Vec<Attempt>,
    /// When it is due.
    pub next: Option<Timestamp>,
    /// What it is about; nothing for a test, and for what is gone.
    pub about: Option<About>,
}

/// A page of deliveries.
#[derive(Clone, Debug)]
pub struct Page {
    /// In the order that was asked for.
    pub deliveries: Vec<Delivery>,
    /// Where it goes on.
    pub older: Option<Show>,
}

type Found = (Occurrence, Option<First>);

/// Reads the history of one endpoint.
struct Reader<'a> {
    conn: Conn,
    endpoint: &'a Endpoint,
    whose: (AccountId, EndpointId),
    /// What waits, with when it is due.
    waiting: Vec<(EventId, Timestamp)>,
}

/// A page of what an endpoint of the caller's was told.
///
/// # Errors
/// [`crate::error::Error::Scope`], or what keeps the database away.
pub async fn page(cx: &Context, caller: &Caller, endpoint: &Endpoint, show: Show) -> Result<Page> {
    caller.needs(Scope::Read)?;
    let mut conn = cx.db.read().await?;
    let whose = (caller.account, endpoint.id);
    let waiting = deliveries::next(&mut conn, whose, WAITING).await?;
    let waiting = waiting.into_iter().map(|(event, due, _)| (event, due)).collect();
    let mut reader = Reader { conn, endpoint, whose, waiting };
    match show {
        Show::All(before) => reader.all(before).await,
        Show::Failed(before) => reader.failed(before).await,
        Show::Waiting => reader.waiting().await,
    }
}

impl Reader<'_> {
    async fn all(&mut self, before: EventId) -> Result<Page> {
        let rows = events::newest(&mut self.conn, self.whose.0, before, READ).await?;
        let cut = rows.len() == usize::try_from(READ).unwrap_or(0);
        let last = rows.last().map(|(e, _)| e.id);
        let mut found: Vec<Found> = rows.into_iter().filter(|(e, _)| self.concerns(e)).collect();
        let more = found.len() > SHOWN;
        found.truncate(SHOWN);
        let shown = found.last().map(|(e, _)| e.id);
        let older = if more { shown } else { last.filter(|_| cut) };
        let deliveries = self.unfold(found).await?;
        Ok(Page { deliveries, older: older.map(Show::All) })
    }

    /// Whether an event is one that this endpoint is told.
    fn concerns(&self, e: &Occurrence) -> bool {
        let chosen = self.endpoint.kinds.has(e.kind) && e.at >= self.endpoint.created_at;
        e.mode == self.endpoint.mode && (e.endpoint == self.endpoint.id || chosen && !e.test)
    }

    /// By their attempts, which lead to them however few they are among many others.
    async fn failed(&mut self, before: Timestamp) -> Result<Page> {
        let rows = attempts::before(&mut self.conn, self.whose, before, READ).await?;
        let cut = rows.len() == usize::try_from(READ).unwrap_or(0);
        let (mut met, mut ids, mut end) = (HashSet::new(), Vec::new(), None);
        let mut left = false;
        for (event, at, failed) in rows {
            if ids.len() >= SHOWN && end != Some(at) {
                left = true;
                break;
            }
            end = Some(at);
            // The newest attempt is the one that says how it stands.
            if met.insert(event) && failed {
                ids.push(event);
            }
        }
        let found = self.these(&ids).await?;
        let mut deliveries = self.unfold(found).await?;
        // One whose newest attempt stands above this page was shown there.
        deliveries.retain(|d| {
            let fails = matches!(d.standing, Standing::Failed | Standing::Retrying);
            fails && d.attempts.last().is_some_and(|a| a.at < before)
        });
        Ok(Page { deliveries, older: end.filter(|_| left || cut).map(Show::Failed) })
    }

    async fn waiting(&mut self) -> Result<Page> {
        let ids: Vec<EventId> = self.waiting.iter().map(|(e, _)| *e).take(SHOWN).collect();
        let found = self.these(&ids).await?;
        Ok(Page { deliveries: self.unfold(found).await?, older: None })
    }

    /// These events, in this order.
    async fn these(&mut self, ids: &[EventId]) -> Result<Vec<Found>> {
        let found = events::these(&mut self.conn, self.whose.0, ids).await?;
        let mut found: HashMap<EventId, Found> = found.into_iter().map(|f| (f.0.id, f)).collect();
        Ok(ids.iter().filter_map(|id| found.remove(id)).collect())
    }

    async fn unfold(&mut self, found: Vec<Found>) -> Result<Vec<Delivery>> {
        let ids: Vec<EventId> = found.iter().map(|(e, _)| e.id).collect();
        let mut tried: HashMap<EventId, Vec<Attempt>> = HashMap::new();
        for attempt in attempts::of_these(&mut self.conn, self.whose, &ids).await? {
            tried.entry(attempt.event).or_default().push(attempt);
        }
        let about = self.about(&found).await?;
        let delivery = |(event, first): Found| {
            let mut attempts = tried.remove(&event.id).unwrap_or_default();
            attempts.sort_by_key(|a| a.at);
            // A success at the first attempt stands with the event alone.
            if let Some(first) = first.filter(|_| event.endpoint == self.whose.1)
                && !attempts.iter().any(|a| a.at == first.at)
                && is_good(first.outcome)
            {
                attempts.insert(0, self.attempt(first));
                attempts.sort_by_key(|a| a.at);
            }
            let next = self.waiting.iter().find(|(e, _)| *e == event.id).map(|(_, due)| *due);
            let standing = self.standing(&event, &attempts, next);
            let about = event.subject.and_then(|id| about.get(&id).cloned());
            Delivery { event, standing, attempts, next, about }
        };
        Ok(found.into_iter().map(delivery).collect())
    }

    fn attempt(&self, first: First) -> Attempt {
        let First { account, event, outcome, duration, at } = first;
        let (endpoint, detail, body) = (self.whose.1, None, None);
        Attempt { account, event, endpoint, at, outcome, duration, detail, body }
    }

    fn standing(&self, e: &Occurrence, tried: &[Attempt], next: Option<Timestamp>) -> Standing {
        let unknown = self.waiting.len() == usize::try_from(WAITING).unwrap_or(0) && !e.test;
        let taken = tried.iter().any(|a| is_good(a.outcome));
        let waits = next.is_some() || unknown && !taken;
        match tried.last() {
            Some(last) if waits && !is_good(last.outcome) => Standing::Retrying,
            _ if waits => Standing::Waiting,
            _ if taken => Standing::Taken,
            Some(_) => Standing::Failed,
            None => Standing::Untold,
        }
    }

    /// What events are about, by the ids of that.
    async fn about(&mut self, found: &[Found]) -> Result<HashMap<Uuid, About>> {
        let of = |received: bool| {
            let wanted = found
                .iter()
                .filter(move |(e, _)| !e.test && (e.kind == Kind::MessageReceived) == received);
            wanted.filter_map(|(e, _)| Some((e.account, e.subject?)))
        };
        let sent: Vec<_> = of(false).map(|(account, id)| (account, MessageId(id))).collect();
        let received: Vec<_> = of(true).map(|(account, id)| (account, InboundId(id))).collect();
        let sent = messages::whole(&mut self.conn, &sent).await?.into_iter();
        let received = inbound_messages::whole(&mut self.conn, &received).await?.into_iter();
        let sent = sent.map(|(m, _)| (m.id.0, About::Message(m.id, m.recipient.to_string())));
        Ok(sent.chain(received.map(|m| (m.id.0, About::Received(m.from)))).collect())
    }
}

fn is_good(outcome: i16) -> bool {
    (200..300).contains(&outcome)
}
