//! Webhooks: events and deliveries are created in the transaction that causes them.

use crate::endpoint_worker::{
    EndpointWorker, OK, endpoint, endpoint_for_kind, events, new_endpoint, rows, secret,
    send_delivered, waiting,
};
use crate::node::{Node, accepted, delivered, outcome, parts, text};
use heliograph_domain::account::Mode;
use heliograph_domain::endpoint_error::DisabledReason;
use heliograph_domain::event::{EventContent, EventKind};
use heliograph_domain::message::{Failure, FailureCode, MessageStatus};
use heliograph_domain::submission::SubmitOutcome;
use heliograph_service::kernel::audit::Actor;
use heliograph_service::kernel::commands::command::Command;
use heliograph_service::kernel::commands::progress::{Progress, RecordProgress};
use heliograph_service::kernel::error::Error;
use heliograph_service::operations::maintenance;
use heliograph_service::webhooks::endpoints::{self, NewEndpoint};
use heliograph_testing::TestDb;
use std::time::Duration;
use tokio::sync::oneshot;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn final_status_triggers_a_delivery() {
    let db = TestDb::new().await;
    let node = Node::start(&db).await;
    let ann = node.account("ann@example.com", 1_000).await;
    node.open_queue().await;
    let worker = EndpointWorker::start(&node, endpoint(&node, &ann).await).await;
    let id = send_delivered(&node, &ann).await;
    let deliveries = worker.arrived();
    assert_eq!((deliveries.len(), rows(&db, "events").await), (1, 1));
    let (lease, event) = (&deliveries[0].lease, deliveries[0].event.clone());
    assert_eq!((lease.owner, lease.attempt, lease.tries), (node.cx.node, 1, 0));
    assert!(deliveries[0].primary);
    let EventContent::Message(content) = &event.content else { panic!("{event:?}") };
    assert_eq!((content.message.id, content.state.status), (id, MessageStatus::Delivered));
    assert_eq!(&*content.currency, "EUR");
    assert_eq!((worker.queue.free_slots(), waiting(&node, worker.id).await), (31, 1));
    assert_eq!(worker.claim(&node).await.len(), 0, "the delivery is already leased");
    worker.answer(&node, deliveries, OK).await;
    assert_eq!((worker.queue.free_slots(), waiting(&node, worker.id).await), (32, 0));
    let outcome = endpoints::event_attempts(&node.cx, ann.account, event.id).await.unwrap();
    assert_eq!(outcome.first.map(|f| (f.outcome.status(), f.duration)), Some((Some(200), 7)));
    assert_eq!(outcome.attempts, []);
}

/// The capture fails, so that the whole command is rolled back.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rolled_back_event_is_not_delivered() {
    let db = TestDb::new().await;
    let node = Node::start(&db).await;
    let ann = node.account("ann@example.com", 1_000).await;
    node.open_queue().await;
    let worker = EndpointWorker::start(&node, endpoint(&node, &ann).await).await;
    let id = node.send(&ann, text("Hello")).await;
    let held = node.arrived().pop().unwrap();
    let refused = SubmitOutcome::Refused(Failure::new(FailureCode::RejectedContent));
    let settlements = vec![outcome(&held, refused)];
    db.execute_raw("UPDATE accounts SET reserved = reserved - 100").await;
    let (reply, mut answer) = oneshot::channel();
    let progress = Progress { settlements, ..Progress::default() };
    node.write(vec![Command::RecordProgress(RecordProgress { progress, reply })]).await;
    let (_, progress) = answer.try_recv().unwrap().unwrap_err();
    assert_eq!((rows(&db, "events").await, waiting(&node, worker.id).await), (0, 0));
    assert_eq!((worker.arrived().len(), worker.queue.free_slots()), (0, 32));
    db.execute_raw("UPDATE accounts SET reserved = reserved + 100").await;
    node.commit_progress(progress).await;
    assert_eq!((rows(&db, "events").await, waiting(&node, worker.id).await), (1, 1));
    let EventContent::Message(content) = worker.arrived().pop().unwrap().event.content.clone()
    else {
        panic!("unexpected content")
    };
    assert_eq!((content.message.id, content.state.status), (id, MessageStatus::Failed));
    node.check().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn unclaimed_deliveries_wait_in_the_table() {
    let db = TestDb::new().await;
    let node = Node::start(&db).await;
    let ann = node.account("ann@example.com", 1_000).await;
    node.open_queue().await;
    let id = endpoint(&node, &ann).await;
    send_delivered(&node, &ann).await;
    let worker = EndpointWorker::idle(&node, id);
    send_delivered(&node, &ann).await;
    assert_eq!(worker.arrived().len(), 0);
    worker.queue.set_available(true);
    send_delivered(&node, &ann).await;
    assert_eq!(worker.arrived().len(), 0, "nothing is handed over before the first claim");
    let deliveries = worker.claim(&node).await;
    assert_eq!((deliveries.len(), waiting(&node, id).await), (3, 3));
    let last = send_delivered(&node, &ann).await;
    let handed = worker.arrived();
    assert_eq!(handed.len(), 1, "no older deliveries wait");
    let EventContent::Message(content) = &handed[0].event.content else { panic!("{handed:?}") };
    assert_eq!(content.message.id, last);
    // A claimed delivery has the same content as one that was handed over.
    drop(handed);
    db.clock.advance(Duration::from_secs(61));
    let again = worker.claim(&node).await;
    let EventContent::Message(found) = &again.last().unwrap().event.content else { panic!() };
    assert_eq!(again.len(), 4);
    assert_eq!(found.message.id, last);
    assert_eq!(deliveries[0].event.render(), again[0].event.render(), "the same bytes each time");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn duplicate_receipt_triggers_one_event() {
    let db = TestDb::new().await;
    let node = Node::start(&db).await;
    let ann = node.account("ann@example.com", 1_000).await;
    node.open_queue().await;
    let worker = EndpointWorker::start(&node, endpoint(&node, &ann).await).await;
    node.send(&ann, parts(2)).await;
    let held = node.arrived().pop().unwrap();
    let outcomes = vec![(1, accepted("a")), (2, accepted("b"))];
    node.settle(vec![heliograph_service::messaging::dispatch::evaluate_outcomes(
        &held.leased,
        outcomes,
    )])
    .await;
    node.commit_receipts(vec![delivered("a"), delivered("a")]).await;
    assert_eq!(worker.arrived().len(), 0, "one part is missing");
    node.commit_receipts(vec![delivered("b"), delivered("a"), delivered("b")]).await;
    node.commit_receipts(vec![delivered("b"), delivered("a")]).await;
    assert_eq!((worker.arrived().len(), rows(&db, "events").await), (1, 1));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn endpoints_share_one_event() {
    let db = TestDb::new().await;
    let node = Node::start(&db).await;
    let ann = node.account("ann@example.com", 1_000).await;
    node.open_queue().await;
    let one = EndpointWorker::start(&node, endpoint(&node, &ann).await).await;
    let two = EndpointWorker::start(&node, endpoint(&node, &ann).await).await;
    send_delivered(&node, &ann).await;
    let (ones, twos) = (one.arrived(), two.arrived());
    assert_eq!((events(&ones), ones.len()), (events(&twos), 1));
    assert!(ones[0].primary && !twos[0].primary);
    let id = ones[0].event.id;
    one.answer(&node, ones, OK).await;
    assert_eq!((waiting(&node, one.id).await, waiting(&node, two.id).await), (0, 1));
    two.answer(&node, twos, OK).await;
    let outcome = endpoints::event_attempts(&node.cx, ann.account, id).await.unwrap();
    assert_eq!(outcome.first.and_then(|f| f.outcome.status()), Some(200));
    assert_eq!(outcome.attempts.iter().map(|a| a.endpoint).collect::<Vec<_>>(), [two.id]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn endpoints_get_only_selected_event_kinds() {
    let db = TestDb::new().await;
    let node = Node::start(&db).await;
    let ann = node.account("ann@example.com", 1_000).await;
    let bob = node.account("bob@example.com", 1_000).await;
    node.open_queue().await;
    let others = [
        endpoint_for_kind(&node, &ann, Mode::Live, EventKind::MessageFailed).await,
        endpoint_for_kind(&node, &ann, Mode::Test, EventKind::MessageDelivered).await,
        endpoint(&node, &bob).await,
    ];
    send_delivered(&node, &ann).await;
    assert_eq!(rows(&db, "events").await, 0, "no endpoint selected this kind");
    let for_delivered =
        endpoint_for_kind(&node, &ann, Mode::Live, EventKind::MessageDelivered).await;
    send_delivered(&node, &ann).await;
    assert_eq!((rows(&db, "events").await, waiting(&node, for_delivered).await), (1, 1));
    for id in others {
        assert_eq!(waiting(&node, id).await, 0);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn disabled_endpoint_gets_no_deliveries() {
    let db = TestDb::new().await;
    let node = Node::start(&db).await;
    let ann = node.account("ann@example.com", 1_000).await;
    node.open_queue().await;
    let worker = EndpointWorker::start(&node, endpoint(&node, &ann).await).await;
    send_delivered(&node, &ann).await;
    endpoints::switch_off(&node.cx, &worker.owner(&node).await, worker.id).await.unwrap();
    assert_eq!(waiting(&node, worker.id).await, 0, "pending deliveries are dropped");
    send_delivered(&node, &ann).await;
    assert_eq!((rows(&db, "events").await, waiting(&node, worker.id).await), (2, 0));
    assert_eq!(worker.endpoint(&node).await.off.map(|o| o.1), Some(DisabledReason::Manual));
    // A late report of the worker has no effect.
    let deliveries = worker.arrived();
    worker.answer(&node, deliveries, OK).await;
    endpoints::switch_on(&node.cx, &worker.owner(&node).await, worker.id).await.unwrap();
    send_delivered(&node, &ann).await;
    assert_eq!((rows(&db, "events").await, waiting(&node, worker.id).await), (3, 1));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn expired_endpoint_is_deleted() {
    let db = TestDb::new().await;
    let node = Node::start(&db).await;
    let ann = node.account("ann@example.com", 1_000).await;
    node.open_queue().await;
    let until = node.cx.db.now().after(Duration::from_secs(60));
    let new = NewEndpoint {
        listening_until: Some(until),
        ..new_endpoint(&ann, "http://127.0.0.1:3000/")
    };
    let id =
        endpoints::add(&node.cx, &Actor::operator(ann.account), new, secret()).await.unwrap().id;
    send_delivered(&node, &ann).await;
    assert_eq!(waiting(&node, id).await, 1);
    db.clock.advance(Duration::from_secs(60));
    send_delivered(&node, &ann).await;
    assert_eq!(waiting(&node, id).await, 1, "the endpoint has expired");
    maintenance::delete_expired_endpoints(&node.cx).await.unwrap();
    assert_eq!((rows(&db, "endpoints").await, rows(&db, "deliveries").await), (0, 0));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn deleted_endpoint_leaves_no_rows() {
    let db = TestDb::new().await;
    let node = Node::start(&db).await;
    let ann = node.account("ann@example.com", 1_000).await;
    node.open_queue().await;
    let worker = EndpointWorker::start(&node, endpoint(&node, &ann).await).await;
    send_delivered(&node, &ann).await;
    let owner = worker.owner(&node).await;
    endpoints::remove(&node.cx, &owner, worker.id).await.unwrap();
    assert_eq!(rows(&db, "deliveries").await, 0);
    let again = endpoints::remove(&node.cx, &owner, worker.id).await;
    assert!(matches!(again, Err(Error::NotFound)), "{again:?}");
    // Another node with a stale cache has queued a delivery after that.
    db.execute_raw(
        "INSERT INTO deliveries SELECT 77, 0, id, account, NULL, NULL, 0, 0 FROM events",
    )
    .await;
    maintenance::delete_outdated(&node.cx).await.unwrap();
    assert_eq!((rows(&db, "deliveries").await, rows(&db, "events").await), (0, 1));
}

/// An old event is replayed to an endpoint that does not answer until the event is deleted.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn delivery_of_an_expired_event_is_deleted() {
    let db = TestDb::new().await;
    let node = Node::start(&db).await;
    let ann = node.account("ann@example.com", 1_000).await;
    node.open_queue().await;
    let id = endpoint(&node, &ann).await;
    send_delivered(&node, &ann).await;
    db.clock.advance(Duration::from_secs(30 * 86_400));
    send_delivered(&node, &ann).await;
    maintenance::delete_outdated(&node.cx).await.unwrap();
    assert_eq!(
        (rows(&db, "events").await, waiting(&node, id).await),
        (2, 2),
        "exactly at the limit"
    );
    db.clock.advance(Duration::from_millis(1));
    maintenance::delete_outdated(&node.cx).await.unwrap();
    assert_eq!((rows(&db, "events").await, waiting(&node, id).await), (1, 1));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn private_addresses_are_refused_as_webhook_urls() {
    let db = TestDb::new().await;
    let node = Node::start(&db).await;
    let ann = node.account("ann@example.com", 0).await;
    for (url, allowed) in [
        ("https://example.com/hook", true),
        ("https://93.184.216.34:8443/", true),
        ("http://example.com/hook", false),
        ("https://inside.example.com/", false),
        ("https://both.example.com/", false),
        ("https://nowhere.example.com/", false),
        ("https://127.0.0.1/", false),
        ("https://0x7f000001/", false),
        ("https://[::1]/", false),
        ("https://[::ffff:10.0.0.1]/", false),
        ("https://169.254.169.254/latest/meta-data", false),
        ("ftp://example.com/", false),
        ("https://ann:secret@example.com/", false),
        ("example.com", false),
    ] {
        let done = endpoints::add(
            &node.cx,
            &Actor::operator(ann.account),
            new_endpoint(&ann, url),
            secret(),
        )
        .await;
        assert_eq!(done.is_ok(), allowed, "{url}: {done:?}");
        assert!(allowed || matches!(done, Err(Error::InvalidEndpoint(_))), "{url}: {done:?}");
    }
    assert_eq!(endpoints::list(&node.cx, ann.account).await.unwrap().len(), 2);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn loopback_url_is_allowed_only_for_listen() {
    let db = TestDb::new().await;
    let node = Node::start(&db).await;
    let ann = node.account("ann@example.com", 0).await;
    let until = Some(node.cx.db.now().after(Duration::from_secs(60)));
    for (url, allowed) in [
        ("http://127.0.0.1:3000/", true),
        ("http://[::1]:3000/", true),
        ("https://inside.example.com/", false),
        ("http://10.0.0.1/", false),
    ] {
        let new = NewEndpoint { listening_until: until, ..new_endpoint(&ann, url) };
        let done = endpoints::add(&node.cx, &Actor::operator(ann.account), new, secret()).await;
        assert_eq!(done.is_ok(), allowed, "{url}: {done:?}");
    }
    assert!(endpoints::list(&node.cx, ann.account).await.unwrap().iter().all(|e| e.local));
}
