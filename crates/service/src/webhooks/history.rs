//! The delivery history of a webhook endpoint.

use crate::kernel::caller::Caller;
use crate::kernel::context::Context;
use crate::kernel::error::Result;
use crate::webhooks::deliveries as webhook_deliveries;
use async_recursion::async_recursion as boxed;
use heliograph_domain::account::Scope;
use heliograph_domain::event::{EventKind, StoredEvent, WebhookEvent};
use heliograph_domain::id::{AccountId, EndpointId, EventId, InboundId, MessageId};
use heliograph_domain::time::Timestamp;
use heliograph_domain::webhook::WebhookEndpoint;
use heliograph_store::Conn;
use heliograph_store::messaging::inbound_messages;
use heliograph_store::messaging::messages;
use heliograph_store::webhooks::attempts;
pub use heliograph_store::webhooks::attempts::DeliveryAttempt;
use heliograph_store::webhooks::deliveries;
use heliograph_store::webhooks::events;
use heliograph_store::webhooks::events::FirstAttempt;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use uuid::Uuid;

/// The number of deliveries on a page.
const SHOWN: usize = 25;
/// The largest number of rows read for a page; a page may hold less without being the last.
const READ: i64 = 500;
/// The number of pending deliveries that are examined; the due time of others is not shown.
const WAITING: i64 = 1_000;

/// A filter of deliveries, and the position to continue from.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum HistoryFilter {
    /// All deliveries of events before this one, the newest first.
    All(EventId),
    /// Deliveries whose last attempt failed, by attempts before this instant.
    Failed(Timestamp),
    /// Pending deliveries, the first due first.
    Waiting,
}

/// The status of a delivery.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum DeliveryStatus {
    /// The endpoint accepted the delivery.
    Delivered,
    /// The first attempt has not been made yet.
    Pending,
    /// The last attempt failed and will be retried.
    Retrying,
    /// All attempts failed; only a replay sends it again.
    Failed,
    /// No attempt was or will be made, for example because the endpoint was off.
    NotSent,
}

/// The subject of an event.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum EventSubject {
    /// A message to this number.
    Message(MessageId, String),
    /// An inbound message from this number.
    Received(String),
}

/// The delivery of an event to an endpoint.
#[derive(Clone, Debug)]
pub struct WebhookDelivery {
    /// The event.
    pub event: StoredEvent,
    /// The status.
    pub status: DeliveryStatus,
    /// The last attempts, the oldest first.
    pub attempts: Vec<DeliveryAttempt>,
    /// The time of the next attempt.
    pub next: Option<Timestamp>,
    /// The subject; `None` for tests and deleted subjects.
    pub about: Option<EventSubject>,
    /// The body of the requests; empty when the subject was deleted.
    pub payload: String,
}

/// A page of deliveries.
#[derive(Clone, Debug)]
pub struct DeliveryPage {
    /// The deliveries in the requested order.
    pub deliveries: Vec<WebhookDelivery>,
    /// The filter of the next page.
    pub older: Option<HistoryFilter>,
}

type Found = (StoredEvent, Option<FirstAttempt>);

/// Reads the history of one endpoint.
struct Reader<'a> {
    conn: Conn,
    endpoint: &'a WebhookEndpoint,
    whose: (AccountId, EndpointId),
    /// Pending deliveries with their due times.
    waiting: Vec<(EventId, Timestamp)>,
}

/// Returns a page of an endpoint's deliveries.
#[boxed]
pub async fn page(
    cx: &Context,
    caller: &Caller,
    endpoint: &WebhookEndpoint,
    show: HistoryFilter,
) -> Result<DeliveryPage> {
    caller.require_scope(Scope::Read)?;
    let mut conn = cx.db.read().await?;
    let whose = (caller.account, endpoint.id);
    let waiting = deliveries::list_pending(&mut conn, whose, WAITING).await?;
    let waiting = waiting.into_iter().map(|(event, due, _)| (event, due)).collect();
    let mut reader = Reader { conn, endpoint, whose, waiting };
    match show {
        HistoryFilter::All(before) => reader.all(before).await,
        HistoryFilter::Failed(before) => reader.failed(before).await,
        HistoryFilter::Waiting => reader.waiting().await,
    }
}

impl Reader<'_> {
    async fn all(&mut self, before: EventId) -> Result<DeliveryPage> {
        let rows = events::list_before(&mut self.conn, self.whose.0, before, READ).await?;
        let cut = rows.len() == usize::try_from(READ).unwrap_or(0);
        let last = rows.last().map(|(e, _)| e.id);
        let mut found: Vec<Found> = rows.into_iter().filter(|(e, _)| self.concerns(e)).collect();
        let more = found.len() > SHOWN;
        found.truncate(SHOWN);
        let shown = found.last().map(|(e, _)| e.id);
        let older = if more { shown } else { last.filter(|_| cut) };
        let deliveries = self.unfold(found).await?;
        Ok(DeliveryPage { deliveries, older: older.map(HistoryFilter::All) })
    }

    /// Returns whether an event is meant for this endpoint.
    fn concerns(&self, e: &StoredEvent) -> bool {
        let chosen = self.endpoint.kinds.contains(e.kind) && e.at >= self.endpoint.created_at;
        e.mode == self.endpoint.mode && (e.endpoint == self.endpoint.id || chosen && !e.test)
    }

    /// Finds failed deliveries by their attempts, however few they are among many others.
    async fn failed(&mut self, before: Timestamp) -> Result<DeliveryPage> {
        let rows = attempts::list_before(&mut self.conn, self.whose, before, READ).await?;
        let cut = rows.len() == usize::try_from(READ).unwrap_or(0);
        let mut met = HashSet::new();
        let mut ids = Vec::new();
        let mut end = None;
        let mut left = false;
        for (event, at, failed) in rows {
            if ids.len() >= SHOWN && end != Some(at) {
                left = true;
                break;
            }
            end = Some(at);
            // The newest attempt decides.
            if met.insert(event) && failed {
                ids.push(event);
            }
        }
        let found = self.these(&ids).await?;
        let mut deliveries = self.unfold(found).await?;
        // A delivery with a newer attempt was shown on an earlier page.
        deliveries.retain(|d| {
            let fails = matches!(d.status, DeliveryStatus::Failed | DeliveryStatus::Retrying);
            fails && d.attempts.last().is_some_and(|a| a.at < before)
        });
        Ok(DeliveryPage {
            deliveries,
            older: end.filter(|_| left || cut).map(HistoryFilter::Failed),
        })
    }

    async fn waiting(&mut self) -> Result<DeliveryPage> {
        let ids: Vec<EventId> = self.waiting.iter().map(|(e, _)| *e).take(SHOWN).collect();
        let found = self.these(&ids).await?;
        Ok(DeliveryPage { deliveries: self.unfold(found).await?, older: None })
    }

    /// Returns these events in this order.
    async fn these(&mut self, ids: &[EventId]) -> Result<Vec<Found>> {
        let found = events::get_many(&mut self.conn, self.whose.0, ids).await?;
        let mut found: HashMap<EventId, Found> = found.into_iter().map(|f| (f.0.id, f)).collect();
        Ok(ids.iter().filter_map(|id| found.remove(id)).collect())
    }

    async fn unfold(&mut self, found: Vec<Found>) -> Result<Vec<WebhookDelivery>> {
        let ids: Vec<EventId> = found.iter().map(|(e, _)| e.id).collect();
        let mut tried: HashMap<EventId, Vec<DeliveryAttempt>> = HashMap::new();
        for attempt in attempts::list_for_events(&mut self.conn, self.whose, &ids).await? {
            tried.entry(attempt.event).or_default().push(attempt);
        }
        let about = self.about(&found).await?;
        let events: Vec<&StoredEvent> = found.iter().map(|(event, _)| event).collect();
        let events = webhook_deliveries::with_contents(&mut self.conn, &events).await?;
        let delivery = |((event, first), content): (Found, Option<Arc<WebhookEvent>>)| {
            let mut attempts = tried.remove(&event.id).unwrap_or_default();
            attempts.sort_by_key(|a| a.at);
            // A successful first attempt is stored only with the event.
            if let Some(first) = first.filter(|_| event.endpoint == self.whose.1)
                && !attempts.iter().any(|a| a.at == first.at)
                && first.outcome.is_success()
            {
                attempts.insert(0, self.attempt(first));
                attempts.sort_by_key(|a| a.at);
            }
            let next = self.waiting.iter().find(|(e, _)| *e == event.id).map(|(_, due)| *due);
            let status = self.standing(&event, &attempts, next);
            let about = event.subject.and_then(|id| about.get(&id).cloned());
            let body = content.map(|content| content.render()).unwrap_or_default();
            let payload = String::from_utf8_lossy(&body).into_owned();
            WebhookDelivery { event, status, attempts, next, about, payload }
        };
        Ok(found.into_iter().zip(events).map(delivery).collect())
    }

    fn attempt(&self, first: FirstAttempt) -> DeliveryAttempt {
        let FirstAttempt { account, event, outcome, duration, at } = first;
        DeliveryAttempt {
            account,
            event,
            endpoint: self.whose.1,
            at,
            outcome,
            duration,
            detail: None,
            body: None,
        }
    }

    fn standing(
        &self,
        e: &StoredEvent,
        tried: &[DeliveryAttempt],
        next: Option<Timestamp>,
    ) -> DeliveryStatus {
        let unknown = self.waiting.len() == usize::try_from(WAITING).unwrap_or(0) && !e.test;
        let taken = tried.iter().any(|a| a.outcome.is_success());
        let waits = next.is_some() || unknown && !taken;
        match tried.last() {
            Some(last) if waits && !last.outcome.is_success() => DeliveryStatus::Retrying,
            _ if waits => DeliveryStatus::Pending,
            _ if taken => DeliveryStatus::Delivered,
            Some(_) => DeliveryStatus::Failed,
            None => DeliveryStatus::NotSent,
        }
    }

    /// Returns the subjects of events by id.
    async fn about(&mut self, found: &[Found]) -> Result<HashMap<Uuid, EventSubject>> {
        let of = |received: bool| {
            let wanted = found.iter().filter(move |(e, _)| {
                !e.test && (e.kind == EventKind::MessageReceived) == received
            });
            wanted.filter_map(|(e, _)| Some((e.account, e.subject?)))
        };
        let sent: Vec<_> = of(false).map(|(account, id)| (account, MessageId(id))).collect();
        let received: Vec<_> = of(true).map(|(account, id)| (account, InboundId(id))).collect();
        let sent = messages::get_many(&mut self.conn, &sent).await?.into_iter();
        let received = inbound_messages::get_many(&mut self.conn, &received).await?.into_iter();
        let sent =
            sent.map(|(m, _)| (m.id.0, EventSubject::Message(m.id, m.recipient.to_string())));
        Ok(sent.chain(received.map(|m| (m.id.0, EventSubject::Received(m.from)))).collect())
    }
}
