//! The rows that tests of webhooks begin with.

use crate::rows::at;
use crate::support::{BEGIN, TestDb};
use heliograph_domain::account::Mode;
use heliograph_domain::event::{Kind, Occurrence};
use heliograph_domain::id::{AccountId, EndpointId, EventId, Ids, NodeId};
use heliograph_domain::lease::{DeliveryLease, LEASE};
use heliograph_domain::time::Timestamp;
use heliograph_domain::webhook::{Endpoint, Kinds, SECRET_BYTES, Secret};
use heliograph_store::deliveries::{self, Claim, Fresh};
use heliograph_store::{Db, endpoints, events};

pub(crate) fn secret(n: u8) -> Secret {
    Secret::from_random(&[n; SECRET_BYTES])
}

/// An endpoint of this account that wants to be told everything.
pub(crate) fn endpoint(account: AccountId) -> Endpoint {
    Endpoint {
        id: EndpointId(0),
        account,
        mode: Mode::Live,
        url: "https://example.com/hook".to_owned(),
        kinds: Kinds::ALL,
        secret: secret(1),
        old_secret: None,
        local: false,
        created_at: BEGIN,
        expires_at: None,
        failing_since: None,
        off: None,
    }
}

/// Registers it; its number.
pub(crate) async fn registered(db: &TestDb, endpoint: &Endpoint) -> EndpointId {
    let mut tx = db.db.write().await.unwrap();
    let id = endpoints::insert(&mut tx, endpoint).await.unwrap();
    tx.commit().await.unwrap();
    id
}

/// Something that happened so many seconds after the beginning, for one endpoint first.
pub(crate) fn event(
    db: &TestDb,
    account: AccountId,
    first: EndpointId,
    seconds: u64,
) -> Occurrence {
    let at = at(seconds);
    Occurrence {
        account,
        id: EventId(db.ids.next(at)),
        mode: Mode::Live,
        kind: Kind::MessageDelivered,
        test: false,
        subject: Some(db.ids.next(at)),
        at,
        endpoint: first,
    }
}

/// Stores what happened, and nothing to be told of it.
pub(crate) async fn happened(db: &TestDb, all: &[Occurrence]) {
    let mut tx = db.db.write().await.unwrap();
    events::insert(&mut tx, all).await.unwrap();
    tx.commit().await.unwrap();
}

/// Lines up an event for an endpoint, free for everyone.
pub(crate) async fn lined_up(
    db: &TestDb,
    endpoint: EndpointId,
    event: &Occurrence,
    due: Timestamp,
) {
    insert(db, fresh(endpoint, event, due)).await;
}

pub(crate) fn fresh(endpoint: EndpointId, event: &Occurrence, due_at: Timestamp) -> Fresh {
    Fresh { endpoint, due_at, event: event.id, account: event.account, owner: None }
}

pub(crate) async fn insert(db: &TestDb, fresh: Fresh) {
    let mut tx = db.db.write().await.unwrap();
    deliveries::insert(&mut tx, &[fresh], BEGIN.after(LEASE)).await.unwrap();
    tx.commit().await.unwrap();
}

/// What `node` wants to tell an endpoint at `now`.
pub(crate) fn wish(node: NodeId, endpoint: EndpointId, now: Timestamp, limit: usize) -> Claim {
    Claim { node, endpoint, due: now, now, until: now.after(LEASE), limit }
}

/// Claims in a transaction of its own.
pub(crate) async fn claim(db: &Db, wish: Claim) -> Vec<(DeliveryLease, Occurrence)> {
    let mut tx = db.write().await.unwrap();
    let found = deliveries::claim(&mut tx, &wish).await.unwrap();
    tx.commit().await.unwrap();
    found
}

pub(crate) async fn depth(db: &TestDb, endpoint: EndpointId) -> i64 {
    deliveries::depth(&mut db.db.read().await.unwrap(), endpoint).await.unwrap()
}
