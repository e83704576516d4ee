//! Webhook events: what happened is recorded for the subscribed endpoints in the same transaction.

use crate::kernel::commands::claim_deliveries::LeasedDelivery;
use crate::kernel::context::Context;
use crate::kernel::local_queue::LocalQueues;
use async_recursion::async_recursion as boxed;
use heliograph_domain::account::Mode;
use heliograph_domain::event::{
    EventContent, EventKind, FinishedMessage, StoredEvent, WebhookEvent,
};
use heliograph_domain::id::{AccountId, EndpointId, EventId, MessageId};
use heliograph_domain::inbound_message::InboundMessage;
use heliograph_domain::lease::{DeliveryLease, LEASE};
use heliograph_domain::message::MessageStatus;
use heliograph_domain::time::Timestamp;
use heliograph_store::messaging::messages;
use heliograph_store::webhooks::deliveries::{self, NewDelivery};
use heliograph_store::webhooks::endpoints::{self, SubscribedEndpoint};
use heliograph_store::webhooks::events;
use heliograph_store::{Conn, StoreResult};
use std::collections::{BTreeSet, HashMap, HashSet};
use std::sync::Arc;
use std::time::Instant;
use uuid::Uuid;

/// The local queues of this node's endpoint workers.
pub type DeliveryQueues = LocalQueues<EndpointId, LeasedDelivery>;

/// Deliveries to hand to the endpoint workers when the transaction is durable.
#[derive(Debug, Default)]
pub struct PendingHandOver {
    /// The deliveries that are already leased to this node's endpoint workers.
    pub handed_over: HashMap<EndpointId, Vec<LeasedDelivery>>,
    /// The endpoints whose worker has to claim, since not everything could be handed over.
    pub backlogged: HashSet<EndpointId>,
}

/// A message that reached its final status.
pub type EndedMessage = ((AccountId, MessageId), MessageStatus);

/// The start of a transaction.
#[derive(Clone, Copy, Debug)]
pub struct StartTime {
    /// The time by the clock of the database.
    pub now: Timestamp,
    /// The time by the monotonic clock.
    pub since: Instant,
}

/// The message or inbound message that an event is about.
struct EventSubject {
    account: AccountId,
    mode: Mode,
    id: Uuid,
}

/// Collects the events of one transaction for the subscribed endpoints.
pub struct EventRecorder<'a> {
    cx: &'a Context,
    queues: &'a DeliveryQueues,
    start: StartTime,
    listeners: Vec<SubscribedEndpoint>,
    rows: Vec<StoredEvent>,
    deliveries: Vec<NewDelivery>,
    pending: PendingHandOver,
}

impl<'a> EventRecorder<'a> {
    /// Loads the endpoints that subscribed to events of these accounts.
    #[boxed]
    pub async fn load(
        tx: &mut Conn,
        accounts: BTreeSet<AccountId>,
        cx: &'a Context,
        queues: &'a DeliveryQueues,
        start: StartTime,
    ) -> StoreResult<Self> {
        let accounts: Vec<AccountId> = accounts.into_iter().collect();
        let listeners = endpoints::subscribed(tx, &accounts, start.now).await?;
        let rows = Vec::new();
        let deliveries = Vec::new();
        let pending = PendingHandOver::default();
        Ok(Self { cx, queues, start, listeners, rows, deliveries, pending })
    }

    /// Adds ended messages.
    #[boxed]
    pub async fn add_ended(&mut self, tx: &mut Conn, ends: &[EndedMessage]) -> StoreResult<()> {
        let wanted = |&((account, id), status): &EndedMessage| {
            let kind = FinishedMessage::event_kind(status)?;
            let mut all = self.listeners.iter();
            all.any(|l| l.account == account && l.kinds.contains(kind)).then_some((account, id))
        };
        let keys: Vec<_> = ends.iter().filter_map(wanted).collect();
        for (message, state) in messages::get_many(tx, &keys).await? {
            let Some(kind) = FinishedMessage::event_kind(state.status) else { continue };
            let subject =
                EventSubject { account: message.account, mode: message.mode, id: message.id.0 };
            let message = Arc::new(message);
            self.add(kind, subject, |currency| {
                EventContent::Message(Box::new(FinishedMessage { message, state, currency }))
            });
        }
        Ok(())
    }

    /// Adds inbound messages.
    pub fn add_received(&mut self, messages: &[InboundMessage]) {
        for m in messages {
            let subject = EventSubject { account: m.account, mode: m.mode, id: m.id.0 };
            let content = |_| EventContent::Received(Box::new(m.clone()));
            self.add(EventKind::MessageReceived, subject, content);
        }
    }

    /// Adds one event, if any endpoint subscribed to it.
    fn add(
        &mut self,
        kind: EventKind,
        subject: EventSubject,
        content: impl FnOnce(Arc<str>) -> EventContent,
    ) {
        let EventSubject { account, mode, id: subject } = subject;
        let wants = |l: &&SubscribedEndpoint| {
            l.account == account && l.mode == mode && l.kinds.contains(kind)
        };
        let listeners: Vec<_> = self.listeners.iter().filter(wants).collect();
        let Some(primary) = listeners.first() else { return };
        let id = EventId(self.cx.ids.next(self.start.now));
        let content = content(primary.currency.as_str().into());
        let event = Arc::new(WebhookEvent { id, account, mode, at: self.start.now, content });
        let endpoint = primary.id;
        let subject = Some(subject);
        let at = self.start.now;
        self.rows.push(StoredEvent { account, id, mode, kind, test: false, subject, at, endpoint });
        for to in listeners.iter().filter(|l| !l.off).map(|l| l.id) {
            let room = self.queues.reserve(to);
            let owner = room.as_ref().map(|_| self.cx.node);
            self.deliveries.push(NewDelivery {
                endpoint: to,
                due_at: self.start.now,
                event: id,
                account,
                owner,
            });
            let Some(room) = room else {
                self.pending.backlogged.insert(to);
                continue;
            };
            let lease = DeliveryLease {
                endpoint: to,
                due_at: self.start.now,
                event: id,
                owner: self.cx.node,
                attempt: 1,
                tries: 0,
            };
            let event = event.clone();
            let primary = to == endpoint;
            let since = self.start.since;
            let delivery = LeasedDelivery { lease, event, primary, since, room };
            self.pending.handed_over.entry(to).or_default().push(delivery);
        }
    }

    /// Stores all added events and deliveries.
    pub async fn store(self, tx: &mut Conn) -> StoreResult<PendingHandOver> {
        events::insert(tx, &self.rows).await?;
        deliveries::insert(tx, &self.deliveries, self.start.now.after(LEASE)).await?;
        Ok(self.pending)
    }
}
