//! Fixtures for tests of webhooks.

use crate::fixtures::at;
use heliograph_domain::account::Mode;
use heliograph_domain::event::{EventKind, StoredEvent};
use heliograph_domain::id::{AccountId, EndpointId, EventId, Ids, NodeId};
use heliograph_domain::lease::{DeliveryLease, LEASE};
use heliograph_domain::time::Timestamp;
use heliograph_domain::webhook::{EventKinds, SECRET_BYTES, WebhookEndpoint, WebhookSecret};
use heliograph_store::Db;
use heliograph_store::webhooks::deliveries::{self, DeliveryClaim, NewDelivery};
use heliograph_store::webhooks::endpoints;
use heliograph_store::webhooks::events;
use heliograph_testing::{START, TestDb};
use std::sync::atomic::{AtomicU32, Ordering};

pub(crate) fn secret(n: u8) -> WebhookSecret {
    WebhookSecret::from_random(&[n; SECRET_BYTES])
}

/// Returns an endpoint of this account that subscribes to all events.
pub(crate) fn endpoint(account: AccountId) -> WebhookEndpoint {
    static COUNT: AtomicU32 = AtomicU32::new(0);
    let number = COUNT.fetch_add(1, Ordering::Relaxed);
    WebhookEndpoint {
        id: EndpointId(0),
        account,
        mode: Mode::Live,
        url: format!("https://example.com/hook/{number}"),
        kinds: EventKinds::ALL,
        secret: secret(1),
        old_secret: None,
        local: false,
        created_at: START,
        expires_at: None,
        failing_since: None,
        off: None,
    }
}

/// Registers an endpoint and returns its id.
pub(crate) async fn register(db: &TestDb, endpoint: &WebhookEndpoint) -> EndpointId {
    let mut tx = db.db.write().await.unwrap();
    let id = endpoints::insert(&mut tx, endpoint).await.unwrap();
    tx.commit().await.unwrap();
    id
}

/// Returns an event at this second, whose first endpoint is `first`.
pub(crate) fn event(
    db: &TestDb,
    account: AccountId,
    first: EndpointId,
    seconds: u64,
) -> StoredEvent {
    let at = at(seconds);
    StoredEvent {
        account,
        id: EventId(db.ids.next(at)),
        mode: Mode::Live,
        kind: EventKind::MessageDelivered,
        test: false,
        subject: Some(db.ids.next(at)),
        at,
        endpoint: first,
    }
}

/// Stores events without deliveries.
pub(crate) async fn store_events(db: &TestDb, all: &[StoredEvent]) {
    let mut tx = db.db.write().await.unwrap();
    events::insert(&mut tx, all).await.unwrap();
    tx.commit().await.unwrap();
}

/// Inserts a delivery without an owner.
pub(crate) async fn queue_delivery(
    db: &TestDb,
    endpoint: EndpointId,
    event: &StoredEvent,
    due: Timestamp,
) {
    insert(db, new_delivery(endpoint, event, due)).await;
}

pub(crate) fn new_delivery(
    endpoint: EndpointId,
    event: &StoredEvent,
    due_at: Timestamp,
) -> NewDelivery {
    NewDelivery { endpoint, due_at, event: event.id, account: event.account, owner: None }
}

pub(crate) async fn insert(db: &TestDb, delivery: NewDelivery) {
    let mut tx = db.db.write().await.unwrap();
    deliveries::insert(&mut tx, &[delivery], START.after(LEASE)).await.unwrap();
    tx.commit().await.unwrap();
}

/// Returns a claim of `node` for an endpoint at `now`.
pub(crate) fn delivery_claim(
    node: NodeId,
    endpoint: EndpointId,
    now: Timestamp,
    limit: usize,
) -> DeliveryClaim {
    DeliveryClaim {
        node,
        endpoint,
        due: now,
        now,
        now_for_own: now,
        until: now.after(LEASE),
        limit,
    }
}

/// Claims in its own transaction.
pub(crate) async fn claim(db: &Db, wanted: DeliveryClaim) -> Vec<(DeliveryLease, StoredEvent)> {
    let mut tx = db.write().await.unwrap();
    let found = deliveries::claim(&mut tx, &wanted).await.unwrap();
    tx.commit().await.unwrap();
    found
}

pub(crate) async fn depth(db: &TestDb, endpoint: EndpointId) -> i64 {
    deliveries::depth(&mut db.db.read().await.unwrap(), endpoint).await.unwrap()
}
