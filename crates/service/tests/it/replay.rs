//! Replays of events by id or time range, without duplicating pending deliveries.

use crate::endpoint_worker::{
    BROKEN, EndpointWorker, GONE, OK, attempt, endpoint, events, new_endpoint, secret,
    send_delivered, waiting,
};
use crate::node::Node;
use heliograph_domain::account::Mode;
use heliograph_domain::event::EventKind;
use heliograph_domain::id::EventId;
use heliograph_domain::time::Timestamp;
use heliograph_domain::webhook::SECRET_OVERLAP;
use heliograph_service::kernel::audit::Actor;
use heliograph_service::kernel::caller::Caller;
use heliograph_service::kernel::error::Error;
use heliograph_service::webhooks::deliveries::{self, WebhookResponse};
use heliograph_service::webhooks::endpoints;
use heliograph_service::webhooks::replay::{ReplaySelection, replay};
use heliograph_testing::TestDb;
use std::sync::Arc;
use std::time::Duration;
use uuid::Uuid;

async fn start(db: &TestDb) -> (Node, Arc<Caller>, EndpointWorker) {
    let node = Node::start(db).await;
    let ann = node.account("ann@example.com", 200_000).await;
    node.open_queue().await;
    let worker = EndpointWorker::start(&node, endpoint(&node, &ann).await).await;
    (node, ann, worker)
}

/// Creates events a second apart, each delivered with the given status.
async fn create_events(
    node: &Node,
    db: &TestDb,
    ann: &Caller,
    worker: &EndpointWorker,
    statuses: &[u16],
) -> Vec<EventId> {
    let mut ids = Vec::new();
    for status in statuses {
        db.clock.advance(Duration::from_secs(1));
        send_delivered(node, ann).await;
        let deliveries = worker.arrived();
        ids.extend(events(&deliveries));
        worker.answer(node, deliveries, *status).await;
    }
    ids
}

fn all_time() -> (Timestamp, Timestamp) {
    (Timestamp(0), Timestamp(i64::MAX / 2))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn event_is_replayed_by_id() {
    let db = TestDb::new().await;
    let (node, ann, worker) = start(&db).await;
    let ids = create_events(&node, &db, &ann, &worker, &[OK, OK, OK]).await;
    let these = ReplaySelection::Events(vec![ids[2], ids[0], ids[2]]);
    assert_eq!(replay(&node.cx, &Actor::operator(ann.account), worker.id, these).await.unwrap(), 2);
    let deliveries = worker.claim(&node).await;
    assert_eq!(events(&deliveries), [ids[0], ids[2]]);
    worker.answer(&node, deliveries, OK).await;
    assert_eq!(waiting(&node, worker.id).await, 0);
}

/// Two rows of one event could be rescheduled to the same time, and their report never committed.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn pending_delivery_is_not_duplicated_by_a_replay() {
    let db = TestDb::new().await;
    let (node, ann, worker) = start(&db).await;
    let ids = create_events(&node, &db, &ann, &worker, &[OK, BROKEN]).await;
    for expected in [1, 0] {
        db.clock.advance(Duration::from_millis(1));
        let again = ReplaySelection::Events(ids.clone());
        assert_eq!(
            replay(&node.cx, &Actor::operator(ann.account), worker.id, again).await.unwrap(),
            expected
        );
    }
    let (from, to) = all_time();
    assert_eq!(
        replay(&node.cx, &Actor::operator(ann.account), worker.id, ReplaySelection::All(from, to))
            .await
            .unwrap(),
        0
    );
    db.clock.advance(Duration::from_secs(9));
    let deliveries = worker.claim(&node).await;
    assert_eq!(deliveries.len(), 2);
    let retry_after = Some(Duration::from_secs(3_600));
    let busy = WebhookResponse::Http { status: 429, body: String::new(), retry_after };
    let busy = |tries| deliveries::evaluate_response(attempt(tries), busy.clone(), 0.5);
    worker.report(&node, deliveries.into_iter().map(|p| (busy(p.lease.tries), p)).collect()).await;
    assert_eq!(waiting(&node, worker.id).await, 2);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn time_range_is_replayed() {
    let db = TestDb::new().await;
    let (node, ann, worker) = start(&db).await;
    let begin = node.cx.db.now();
    let ids = create_events(&node, &db, &ann, &worker, &[OK, OK, OK, OK]).await;
    let second = |n| begin.after(Duration::from_secs(n));
    let again = ReplaySelection::All(second(2), second(4));
    assert_eq!(
        replay(&node.cx, &Actor::operator(ann.account), worker.id, again.clone()).await.unwrap(),
        2
    );
    assert_eq!(
        replay(&node.cx, &Actor::operator(ann.account), worker.id, again).await.unwrap(),
        0,
        "the deliveries are pending"
    );
    let deliveries = worker.claim(&node).await;
    assert_eq!(events(&deliveries), ids[1..3]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn undelivered_events_are_replayed() {
    let db = TestDb::new().await;
    let (node, ann, worker) = start(&db).await;
    let ids = create_events(&node, &db, &ann, &worker, &[OK, BROKEN, BROKEN]).await;
    db.clock.advance(Duration::from_secs(6));
    let mut deliveries = worker.claim(&node).await;
    assert_eq!(events(&deliveries), ids[1..]);
    let last = deliveries.split_off(1);
    worker.answer(&node, deliveries, OK).await;
    worker.answer(&node, last, GONE).await;
    endpoints::switch_on(&node.cx, &worker.owner(&node).await, worker.id).await.unwrap();
    let (from, to) = all_time();
    assert_eq!(
        replay(
            &node.cx,
            &Actor::operator(ann.account),
            worker.id,
            ReplaySelection::Failed(from, to)
        )
        .await
        .unwrap(),
        1
    );
    let deliveries = worker.claim(&node).await;
    assert_eq!(events(&deliveries), ids[2..]);
    worker.answer(&node, deliveries, OK).await;
    assert_eq!(
        replay(
            &node.cx,
            &Actor::operator(ann.account),
            worker.id,
            ReplaySelection::Failed(from, to)
        )
        .await
        .unwrap(),
        0
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn failed_replay_does_not_undo_a_success() {
    let db = TestDb::new().await;
    let (node, ann, worker) = start(&db).await;
    let ids = create_events(&node, &db, &ann, &worker, &[OK]).await;
    replay(
        &node.cx,
        &Actor::operator(ann.account),
        worker.id,
        ReplaySelection::Events(ids.clone()),
    )
    .await
    .unwrap();
    let deliveries = worker.claim(&node).await;
    worker.answer(&node, deliveries, GONE).await;
    endpoints::switch_on(&node.cx, &worker.owner(&node).await, worker.id).await.unwrap();
    let history = endpoints::event_attempts(&node.cx, ann.account, ids[0]).await.unwrap();
    assert_eq!(
        (history.first.and_then(|f| f.outcome.status()), history.attempts.len()),
        (Some(200), 1)
    );
    let (from, to) = all_time();
    assert_eq!(
        replay(
            &node.cx,
            &Actor::operator(ann.account),
            worker.id,
            ReplaySelection::Failed(from, to)
        )
        .await
        .unwrap(),
        0
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn deliveries_dropped_by_disabling_can_be_replayed() {
    let db = TestDb::new().await;
    let (node, ann, worker) = start(&db).await;
    create_events(&node, &db, &ann, &worker, &[OK, BROKEN]).await;
    endpoints::switch_off(&node.cx, &worker.owner(&node).await, worker.id).await.unwrap();
    send_delivered(&node, &ann).await;
    endpoints::switch_on(&node.cx, &worker.owner(&node).await, worker.id).await.unwrap();
    let (from, to) = all_time();
    assert_eq!(
        replay(
            &node.cx,
            &Actor::operator(ann.account),
            worker.id,
            ReplaySelection::Failed(from, to)
        )
        .await
        .unwrap(),
        2
    );
    assert_eq!(worker.claim(&node).await.len(), 2);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn more_than_a_page_is_replayed() {
    let db = TestDb::new().await;
    let (node, _, worker) = start(&db).await;
    for _ in 0..3 {
        endpoints::send_test(
            &node.cx,
            worker.owner(&node).await.account,
            worker.id,
            EventKind::MessageFailed,
        )
        .await
        .unwrap();
    }
    // Test deliveries are never replayed: turn more than a page of them into real events.
    let (one, begin) = (worker.claim_urgent(&node).await.remove(0).event.id, node.cx.db.now());
    db.execute_raw("DELETE FROM deliveries").await;
    let copy = |i: u128| {
        let id = Uuid::from_u128(one.0.as_u128() + 1_000 + i);
        let id = match node.cx.db.is_shared() {
            true => format!("'{id}'"),
            false => format!("x'{}'", id.simple()),
        };
        format!("({}, {id}, 1, 1, 0, NULL, {}, {})", 1, begin.0, worker.id.0)
    };
    let rows: Vec<_> = (0..2_100).map(copy).collect();
    let insert = "INSERT INTO events (account, id, mode, kind, test, subject, at, endpoint) VALUES";
    db.execute_raw(&format!("{insert} {}", rows.join(", "))).await;
    let account = worker.endpoint(&node).await.account;
    db.execute_raw(&format!(
        "UPDATE events SET account = {}, mode = {}",
        account.0,
        Mode::Live.code()
    ))
    .await;
    let (from, to) = all_time();
    let all = async || {
        replay(&node.cx, &Actor::operator(account), worker.id, ReplaySelection::All(from, to))
            .await
            .unwrap()
    };
    assert_eq!(all().await, 2_100);
    assert_eq!(waiting(&node, worker.id).await, 2_100);
    assert_eq!(all().await, 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn replay_is_refused_for_disabled_endpoints_and_other_accounts() {
    let db = TestDb::new().await;
    let (node, ann, worker) = start(&db).await;
    let bob = node.account("bob@example.com", 1_000).await;
    let ids = create_events(&node, &db, &ann, &worker, &[OK]).await;
    let of_bob = endpoint(&node, &bob).await;
    let (test, by) = (node.key(ann.account, Mode::Test).await, worker.owner(&node).await);
    let in_test =
        endpoints::add(&node.cx, &by, new_endpoint(&test, "https://example.com/"), secret()).await;
    for other in [of_bob, in_test.unwrap().id] {
        let refused = replay(
            &node.cx,
            &Actor::operator(ann.account),
            other,
            ReplaySelection::Events(ids.clone()),
        )
        .await;
        assert!(matches!(refused, Err(Error::NotFound)), "{refused:?}");
    }
    let by = Actor::operator(ann.account);
    let unknown = replay(
        &node.cx,
        &by,
        worker.id,
        ReplaySelection::Events(vec![ids[0], EventId(Uuid::nil())]),
    );
    assert!(matches!(unknown.await, Err(Error::NotFound)));
    endpoints::switch_off(&node.cx, &worker.owner(&node).await, worker.id).await.unwrap();
    let refused =
        replay(&node.cx, &Actor::operator(ann.account), worker.id, ReplaySelection::Events(ids))
            .await;
    assert!(matches!(refused, Err(Error::InvalidEndpoint(_))), "{refused:?}");
    assert_eq!(waiting(&node, worker.id).await, 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rotated_secret_stays_valid_for_a_day() {
    let db = TestDb::new().await;
    let (node, _, worker) = start(&db).await;
    let next = heliograph_domain::webhook::WebhookSecret::from_random(&[6; 24]);
    let until =
        endpoints::rotate(&node.cx, &worker.owner(&node).await, worker.id, &next).await.unwrap();
    assert_eq!(until, node.cx.db.now().after(SECRET_OVERLAP));
    let endpoint = worker.endpoint(&node).await;
    let count = |now| endpoint.signatures(now, "id", 0, b"body").split(' ').count();
    assert_eq!((count(node.cx.db.now()), count(until)), (2, 1));
    assert!(next.verify("id", 0, b"body", &endpoint.signatures(until, "id", 0, b"body")));
}
