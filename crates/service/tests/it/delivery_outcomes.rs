//! The effect of an endpoint's responses on its deliveries and on the endpoint itself.

use crate::endpoint_worker::{
    BROKEN, EndpointWorker, GONE, OK, attempt, endpoint, events, http_result, rows, send_delivered,
    waiting,
};
use crate::node::Node;
use heliograph_domain::endpoint_error::DisabledReason;
use heliograph_domain::event::EventKind;
use heliograph_domain::webhook::DISABLE_AFTER;
use heliograph_service::kernel::caller::Caller;
use heliograph_service::kernel::commands::report_deliveries::DeliveryOutcome;
use heliograph_service::operations::nodes;
use heliograph_service::webhooks::deliveries::{self, DeliveryAttemptInfo, WebhookResponse};
use heliograph_service::webhooks::endpoints;
use heliograph_testing::TestDb;
use std::sync::Arc;
use std::time::Duration;
use uuid::Uuid;

async fn start(db: &TestDb) -> (Node, Arc<Caller>, EndpointWorker) {
    let node = Node::start(db).await;
    let ann = node.account("ann@example.com", 10_000).await;
    node.open_queue().await;
    let worker = EndpointWorker::start(&node, endpoint(&node, &ann).await).await;
    (node, ann, worker)
}

/// The retry schedule, in seconds.
const GAPS: [u64; 9] = [5, 300, 1_800, 7_200, 18_000, 36_000, 50_400, 72_000, 86_400];

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn failed_delivery_is_retried_on_schedule() {
    let db = TestDb::new().await;
    let (node, ann, worker) = start(&db).await;
    send_delivered(&node, &ann).await;
    let mut deliveries = worker.arrived();
    let (id, body) = (deliveries[0].event.id, deliveries[0].event.render());
    for (tries, gap) in GAPS.into_iter().enumerate() {
        assert_eq!(usize::from(deliveries[0].lease.tries), tries);
        worker.answer(&node, deliveries, BROKEN).await;
        db.clock.advance(Duration::from_secs(gap) - Duration::from_millis(1));
        assert_eq!(worker.claim(&node).await.len(), 0, "after {tries} attempts");
        db.clock.advance(Duration::from_millis(1));
        deliveries = worker.claim(&node).await;
        assert_eq!(events(&deliveries), [id], "the same event, after {tries} attempts");
        assert_eq!(deliveries[0].event.render(), body);
    }
    worker.answer(&node, deliveries, OK).await;
    assert_eq!(waiting(&node, worker.id).await, 0);
    let outcome = endpoints::event_attempts(&node.cx, ann.account, id).await.unwrap();
    assert_eq!(outcome.first.and_then(|f| f.outcome.status()), Some(500));
    let outcomes: Vec<_> = outcome.attempts.iter().filter_map(|a| a.outcome.status()).collect();
    assert_eq!(outcomes, [500, 500, 500, 500, 500, 500, 500, 500, 500, 200]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn delivery_is_given_up_after_the_last_attempt() {
    let db = TestDb::new().await;
    let (node, ann, worker) = start(&db).await;
    send_delivered(&node, &ann).await;
    let mut deliveries = worker.arrived();
    for gap in GAPS {
        worker.answer(&node, deliveries, BROKEN).await;
        db.clock.advance(Duration::from_secs(gap));
        deliveries = worker.claim(&node).await;
    }
    assert_eq!(deliveries[0].lease.tries, 9);
    worker.answer(&node, deliveries, BROKEN).await;
    assert_eq!((waiting(&node, worker.id).await, rows(&db, "events").await), (0, 1));
    assert_eq!(worker.endpoint(&node).await.off, None, "disabled only after five days");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn delivery_that_was_not_attempted_keeps_its_due_time() {
    let db = TestDb::new().await;
    let (node, ann, worker) = start(&db).await;
    send_delivered(&node, &ann).await;
    let delivery = worker.arrived().pop().unwrap();
    let due = delivery.lease.due_at;
    db.clock.advance(Duration::from_secs(9));
    worker.report(&node, vec![(DeliveryOutcome::NotAttempted, delivery)]).await;
    let deliveries = worker.claim(&node).await;
    let lease = &deliveries[0].lease;
    assert_eq!((lease.due_at, lease.tries, lease.attempt), (due, 0, 2));
    assert_eq!(rows(&db, "attempts").await, 0);
    assert_eq!(worker.endpoint(&node).await.failing_since, None);
    let outcome = endpoints::event_attempts(&node.cx, ann.account, lease.event).await.unwrap();
    assert_eq!(outcome.first, None);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn endpoint_that_answers_gone_is_disabled() {
    let db = TestDb::new().await;
    let (node, ann, worker) = start(&db).await;
    let other = EndpointWorker::start(&node, endpoint(&node, &ann).await).await;
    for _ in 0..3 {
        send_delivered(&node, &ann).await;
    }
    let mut deliveries = worker.arrived();
    let last = deliveries.split_off(1);
    worker.answer(&node, deliveries, GONE).await;
    let off = Some((node.cx.db.now(), DisabledReason::Gone));
    assert_eq!((worker.endpoint(&node).await.off, waiting(&node, worker.id).await), (off, 0));
    assert_eq!((waiting(&node, other.id).await, rows(&db, "events").await), (3, 3));
    // The report of an attempt that was in progress changes nothing.
    worker.answer(&node, last, BROKEN).await;
    assert_eq!((worker.endpoint(&node).await.off, waiting(&node, worker.id).await), (off, 0));
    send_delivered(&node, &ann).await;
    assert_eq!(waiting(&node, worker.id).await, 0);
}

/// Delivers a new event and reports this HTTP status.
async fn attempt_new_event(node: &Node, ann: &Caller, worker: &EndpointWorker, status: u16) {
    send_delivered(node, ann).await;
    let mut deliveries = worker.arrived();
    deliveries.retain(|p| p.lease.tries == 0);
    worker.answer(node, deliveries, status).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn endpoint_that_fails_for_five_days_is_disabled() {
    let db = TestDb::new().await;
    let (node, ann, worker) = start(&db).await;
    attempt_new_event(&node, &ann, &worker, BROKEN).await;
    let since = worker.endpoint(&node).await.failing_since;
    assert_eq!(since, Some(node.cx.db.now()));
    db.clock.advance(DISABLE_AFTER - Duration::from_millis(1));
    attempt_new_event(&node, &ann, &worker, BROKEN).await;
    let now = worker.endpoint(&node).await;
    assert_eq!((now.failing_since, now.off), (since, None));
    assert_eq!(waiting(&node, worker.id).await, 2);
    db.clock.advance(Duration::from_millis(1));
    attempt_new_event(&node, &ann, &worker, BROKEN).await;
    let off = worker.endpoint(&node).await.off;
    assert_eq!(off, Some((node.cx.db.now(), DisabledReason::Failing)));
    assert_eq!(waiting(&node, worker.id).await, 0);
    endpoints::switch_on(&node.cx, &worker.owner(&node).await, worker.id).await.unwrap();
    attempt_new_event(&node, &ann, &worker, BROKEN).await;
    assert_eq!(worker.endpoint(&node).await.off, None, "the endpoint had no failures before");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_success_keeps_an_endpoint_enabled() {
    let db = TestDb::new().await;
    let (node, ann, worker) = start(&db).await;
    for status in [BROKEN, OK, BROKEN] {
        attempt_new_event(&node, &ann, &worker, status).await;
        db.clock.advance(DISABLE_AFTER / 2);
    }
    attempt_new_event(&node, &ann, &worker, BROKEN).await;
    assert_eq!(worker.endpoint(&node).await.off, None);
    db.clock.advance(DISABLE_AFTER / 2);
    attempt_new_event(&node, &ann, &worker, BROKEN).await;
    assert!(worker.endpoint(&node).await.off.is_some());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn success_in_the_same_report_counts() {
    let db = TestDb::new().await;
    let (node, ann, worker) = start(&db).await;
    attempt_new_event(&node, &ann, &worker, BROKEN).await;
    for _ in 0..2 {
        send_delivered(&node, &ann).await;
    }
    let deliveries = worker.arrived().into_iter().zip([BROKEN, OK]);
    worker
        .report(&node, deliveries.map(|(p, status)| (http_result(&p, status), p)).collect())
        .await;
    assert_eq!(worker.endpoint(&node).await.failing_since, None);
    assert_eq!(waiting(&node, worker.id).await, 2);
}

/// A test of an endpoint that is not ready yet does not start the five days.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn failed_test_delivery_does_not_count_against_the_endpoint() {
    let db = TestDb::new().await;
    let (node, ann, worker) = start(&db).await;
    endpoints::send_test(
        &node.cx,
        worker.owner(&node).await.account,
        worker.id,
        EventKind::MessageFailed,
    )
    .await
    .unwrap();
    let deliveries = worker.claim_urgent(&node).await;
    worker.answer(&node, deliveries, BROKEN).await;
    assert_eq!(worker.endpoint(&node).await.failing_since, None);
    db.clock.advance(DISABLE_AFTER);
    attempt_new_event(&node, &ann, &worker, BROKEN).await;
    assert_eq!(worker.endpoint(&node).await.off, None);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn test_delivery_goes_first_and_is_never_retried() {
    let db = TestDb::new().await;
    let (node, ann, worker) = start(&db).await;
    worker.queue.set_available(false);
    send_delivered(&node, &ann).await;
    let test = endpoints::send_test(
        &node.cx,
        worker.owner(&node).await.account,
        worker.id,
        EventKind::MessageReceived,
    )
    .await
    .unwrap();
    assert_eq!(deliveries::due_endpoints(&node.cx).await.unwrap(), [(worker.id, true)]);
    let deliveries = worker.claim_urgent(&node).await;
    assert_eq!(events(&deliveries), [test]);
    assert!(String::from_utf8(deliveries[0].event.render()).unwrap().contains("webhook.test"));
    // A delivery that was not attempted keeps its attempt count.
    worker
        .report(&node, deliveries.into_iter().map(|p| (DeliveryOutcome::NotAttempted, p)).collect())
        .await;
    let mut deliveries = worker.claim(&node).await;
    assert_eq!(events(&deliveries)[0], test, "the test delivery must be first");
    deliveries.truncate(1);
    worker.answer(&node, deliveries, BROKEN).await;
    assert_eq!(waiting(&node, worker.id).await, 1);
    let outcome = endpoints::event_attempts(&node.cx, ann.account, test).await.unwrap();
    assert_eq!(
        (outcome.first.and_then(|f| f.outcome.status()), outcome.attempts.len()),
        (Some(500), 1)
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn test_delivery_reaches_a_disabled_endpoint() {
    let db = TestDb::new().await;
    let (node, _, worker) = start(&db).await;
    endpoints::switch_off(&node.cx, &worker.owner(&node).await, worker.id).await.unwrap();
    let test = endpoints::send_test(
        &node.cx,
        worker.owner(&node).await.account,
        worker.id,
        EventKind::MessageFailed,
    )
    .await
    .unwrap();
    let deliveries = worker.claim_urgent(&node).await;
    assert_eq!(events(&deliveries), [test]);
    worker.answer(&node, deliveries, OK).await;
    assert_eq!(waiting(&node, worker.id).await, 0);
    assert!(worker.endpoint(&node).await.off.is_some(), "a test does not enable the endpoint");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn report_of_a_lost_lease_does_not_change_pending_deliveries() {
    let db = TestDb::new().await;
    let (node, ann, worker) = start(&db).await;
    send_delivered(&node, &ann).await;
    let lost = worker.arrived();
    db.clock.advance(Duration::from_secs(61));
    let held = worker.claim(&node).await;
    assert_eq!((held.len(), held[0].lease.attempt), (1, 2));
    worker.answer(&node, lost, OK).await;
    assert_eq!(waiting(&node, worker.id).await, 1);
    worker.answer(&node, held, OK).await;
    assert_eq!(waiting(&node, worker.id).await, 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn deliveries_of_a_crashed_node_are_attempted_again() {
    let db = TestDb::new().await;
    let (node, ann, worker) = start(&db).await;
    send_delivered(&node, &ann).await;
    let before = worker.arrived();
    nodes::start(&node.cx.db, Uuid::from_u128(2)).await.unwrap();
    assert_eq!(worker.claim(&node).await.len(), 0, "the lease belongs to another node");
    nodes::start(&node.cx.db, Uuid::from_u128(1)).await.unwrap();
    let again = worker.claim(&node).await;
    assert_eq!(events(&again), events(&before));
    worker.answer(&node, before, OK).await;
    assert_eq!(waiting(&node, worker.id).await, 1, "the report has a lost lease");
    worker.answer(&node, again, OK).await;
    assert_eq!((waiting(&node, worker.id).await, rows(&db, "events").await), (0, 1));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn retry_after_is_honoured() {
    let db = TestDb::new().await;
    let (node, ann, worker) = start(&db).await;
    send_delivered(&node, &ann).await;
    let delivery = worker.arrived().pop().unwrap();
    let retry_after = Some(Duration::from_secs(3_600));
    let response = WebhookResponse::Http { status: 503, body: "busy".to_owned(), retry_after };
    let outcome = deliveries::evaluate_response(attempt(0), response, 0.5);
    worker.report(&node, vec![(outcome, delivery)]).await;
    db.clock.advance(Duration::from_secs(3_599));
    assert_eq!(worker.claim(&node).await.len(), 0);
    db.clock.advance(Duration::from_secs(1));
    assert_eq!(worker.claim(&node).await.len(), 1);
}

/// An endpoint that fails every other request must not make events wait for minutes.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn failures_of_a_working_endpoint_are_retried_within_seconds() {
    let db = TestDb::new().await;
    let (node, ann, worker) = start(&db).await;
    send_delivered(&node, &ann).await;
    let mut leased = worker.arrived();
    let busy = WebhookResponse::Http { status: 500, body: String::new(), retry_after: None };
    for second in (0..60).step_by(5) {
        let delivery = leased.pop().unwrap();
        let age = node.cx.db.now().since(delivery.event.at);
        let tries = delivery.lease.tries;
        assert_eq!((age.as_secs(), tries), (second, u16::from(second > 0)));
        let attempt = DeliveryAttemptInfo { tries, age, endpoint_works: true };
        let outcome = deliveries::evaluate_response(attempt, busy.clone(), 0.5);
        worker.report(&node, vec![(outcome, delivery)]).await;
        db.clock.advance(Duration::from_secs(5));
        leased = worker.claim(&node).await;
    }
    // From then on, the schedule of three days applies.
    let delivery = leased.pop().unwrap();
    let age = node.cx.db.now().since(delivery.event.at);
    let attempt = DeliveryAttemptInfo { tries: 1, age, endpoint_works: true };
    let outcome = deliveries::evaluate_response(attempt, busy, 0.5);
    worker.report(&node, vec![(outcome, delivery)]).await;
    db.clock.advance(Duration::from_secs(299));
    assert_eq!(worker.claim(&node).await.len(), 0);
    db.clock.advance(Duration::from_secs(1));
    assert_eq!(worker.claim(&node).await.len(), 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn waiting_retries_are_brought_forward() {
    let db = TestDb::new().await;
    let (node, ann, worker) = start(&db).await;
    for _ in 0..3 {
        send_delivered(&node, &ann).await;
    }
    // The events have failed once, three times and four times.
    let results = worker.arrived().into_iter().zip([0, 2, 3]).map(|(mut delivery, tries)| {
        delivery.lease.tries = tries;
        (http_result(&delivery, BROKEN), delivery)
    });
    worker.report(&node, results.collect()).await;
    assert_eq!(worker.claim(&node).await.len(), 0);
    let forward =
        async |limit| deliveries::bring_forward(&node.cx, worker.id, limit).await.unwrap();
    assert_eq!((forward(1).await, forward(10).await, forward(10).await), (1, 1, 0));
    assert_eq!(worker.claim(&node).await.len(), 2, "the one that failed four times keeps its time");
}
