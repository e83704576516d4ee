//! Verdicts: what an endpoint's answers mean for what it is told, and for itself.

use crate::courier::{BROKEN, Courier, GONE, OK, ended, endpoint, events, rows, says, waiting};
use crate::node::Node;
use crate::support::{TestDb, on_both_engines};
use heliograph_domain::event::Kind;
use heliograph_domain::webhook::{OffReason, PATIENCE};
use heliograph_service::caller::Caller;
use heliograph_service::deliveries::{self, Response};
use heliograph_service::parcel::Verdict;
use heliograph_service::{nodes, webhooks};
use std::sync::Arc;
use std::time::Duration;
use uuid::Uuid;

on_both_engines!(verdicts:
    a_failure_is_tried_again_when_the_schedule_says,
    the_last_attempt_gives_up,
    what_was_not_tried_is_due_as_before,
    who_is_gone_is_told_nothing_more,
    who_only_fails_for_five_days_is_switched_off,
    one_success_in_between_keeps_an_endpoint_on,
    a_success_in_the_same_report_counts,
    a_test_that_fails_says_nothing_about_the_endpoint,
    a_test_goes_first_and_is_never_tried_again,
    a_test_reaches_who_is_off,
    a_report_of_a_lost_lease_changes_nothing_that_waits,
    a_dead_nodes_parcels_are_told_again,
    who_asks_for_a_pause_gets_one,
);

async fn start(db: &TestDb) -> (Node, Arc<Caller>, Courier) {
    let node = Node::start(db).await;
    let ann = node.account("ann@example.com", 10_000).await;
    node.open().await;
    let courier = Courier::open(&node, endpoint(&node, &ann).await).await;
    (node, ann, courier)
}

/// The waits of the schedule, in seconds.
const GAPS: [u64; 9] = [5, 300, 1_800, 7_200, 18_000, 36_000, 50_400, 72_000, 86_400];

async fn a_failure_is_tried_again_when_the_schedule_says(db: TestDb) {
    let (node, ann, courier) = start(&db).await;
    ended(&node, &ann).await;
    let mut parcels = courier.arrived();
    let (id, body) = (parcels[0].event.id, parcels[0].event.render());
    for (tries, gap) in GAPS.into_iter().enumerate() {
        assert_eq!(usize::from(parcels[0].lease.tries), tries);
        courier.answer(&node, parcels, BROKEN).await;
        db.clock.advance(Duration::from_secs(gap) - Duration::from_millis(1));
        assert_eq!(courier.collect(&node).await.len(), 0, "after {tries} attempts");
        db.clock.advance(Duration::from_millis(1));
        parcels = courier.collect(&node).await;
        assert_eq!(events(&parcels), [id], "the same event, after {tries} attempts");
        assert_eq!(parcels[0].event.render(), body);
    }
    courier.answer(&node, parcels, OK).await;
    assert_eq!(waiting(&node, courier.id).await, 0);
    let told = webhooks::outcome(&node.cx, ann.account, id).await.unwrap();
    assert_eq!(told.first.map(|f| f.outcome), Some(500));
    let outcomes: Vec<_> = told.attempts.iter().map(|a| a.outcome).collect();
    assert_eq!(outcomes, [500, 500, 500, 500, 500, 500, 500, 500, 500, 200]);
}

async fn the_last_attempt_gives_up(db: TestDb) {
    let (node, ann, courier) = start(&db).await;
    ended(&node, &ann).await;
    let mut parcels = courier.arrived();
    for gap in GAPS {
        courier.answer(&node, parcels, BROKEN).await;
        db.clock.advance(Duration::from_secs(gap));
        parcels = courier.collect(&node).await;
    }
    assert_eq!(parcels[0].lease.tries, 9);
    courier.answer(&node, parcels, BROKEN).await;
    assert_eq!((waiting(&node, courier.id).await, rows(&db, "events").await), (0, 1));
    assert_eq!(courier.endpoint(&node).await.off, None, "three days are not five");
}

async fn what_was_not_tried_is_due_as_before(db: TestDb) {
    let (node, ann, courier) = start(&db).await;
    ended(&node, &ann).await;
    let parcel = courier.arrived().pop().unwrap();
    let due = parcel.lease.due_at;
    db.clock.advance(Duration::from_secs(9));
    courier.report(&node, vec![(Verdict::NotTried, parcel)]).await;
    let parcels = courier.collect(&node).await;
    let lease = &parcels[0].lease;
    assert_eq!((lease.due_at, lease.tries, lease.attempt), (due, 0, 2));
    assert_eq!(rows(&db, "attempts").await, 0);
    assert_eq!(courier.endpoint(&node).await.failing_since, None);
    let told = webhooks::outcome(&node.cx, ann.account, lease.event).await.unwrap();
    assert_eq!(told.first, None);
}

async fn who_is_gone_is_told_nothing_more(db: TestDb) {
    let (node, ann, courier) = start(&db).await;
    let other = Courier::open(&node, endpoint(&node, &ann).await).await;
    for _ in 0..3 {
        ended(&node, &ann).await;
    }
    let mut parcels = courier.arrived();
    let last = parcels.split_off(1);
    courier.answer(&node, parcels, GONE).await;
    let off = Some((node.cx.db.now(), OffReason::Gone));
    assert_eq!((courier.endpoint(&node).await.off, waiting(&node, courier.id).await), (off, 0));
    assert_eq!((waiting(&node, other.id).await, rows(&db, "events").await), (3, 3));
    // What was under way meanwhile changes nothing.
    courier.answer(&node, last, BROKEN).await;
    assert_eq!((courier.endpoint(&node).await.off, waiting(&node, courier.id).await), (off, 0));
    ended(&node, &ann).await;
    assert_eq!(waiting(&node, courier.id).await, 0);
}

/// A fresh event that is answered so.
async fn one_more(node: &Node, ann: &Caller, courier: &Courier, status: u16) {
    ended(node, ann).await;
    let mut parcels = courier.arrived();
    parcels.retain(|p| p.lease.tries == 0);
    courier.answer(node, parcels, status).await;
}

async fn who_only_fails_for_five_days_is_switched_off(db: TestDb) {
    let (node, ann, courier) = start(&db).await;
    one_more(&node, &ann, &courier, BROKEN).await;
    let since = courier.endpoint(&node).await.failing_since;
    assert_eq!(since, Some(node.cx.db.now()));
    db.clock.advance(PATIENCE - Duration::from_millis(1));
    one_more(&node, &ann, &courier, BROKEN).await;
    let now = courier.endpoint(&node).await;
    assert_eq!((now.failing_since, now.off), (since, None));
    assert_eq!(waiting(&node, courier.id).await, 2);
    db.clock.advance(Duration::from_millis(1));
    one_more(&node, &ann, &courier, BROKEN).await;
    let off = courier.endpoint(&node).await.off;
    assert_eq!(off, Some((node.cx.db.now(), OffReason::Failing)));
    assert_eq!(waiting(&node, courier.id).await, 0);
    webhooks::switch_on(&node.cx, &courier.owner(&node).await, courier.id).await.unwrap();
    one_more(&node, &ann, &courier, BROKEN).await;
    assert_eq!(courier.endpoint(&node).await.off, None, "its record was clean");
}

async fn one_success_in_between_keeps_an_endpoint_on(db: TestDb) {
    let (node, ann, courier) = start(&db).await;
    for status in [BROKEN, OK, BROKEN] {
        one_more(&node, &ann, &courier, status).await;
        db.clock.advance(PATIENCE / 2);
    }
    one_more(&node, &ann, &courier, BROKEN).await;
    assert_eq!(courier.endpoint(&node).await.off, None);
    db.clock.advance(PATIENCE / 2);
    one_more(&node, &ann, &courier, BROKEN).await;
    assert!(courier.endpoint(&node).await.off.is_some());
}

async fn a_success_in_the_same_report_counts(db: TestDb) {
    let (node, ann, courier) = start(&db).await;
    one_more(&node, &ann, &courier, BROKEN).await;
    for _ in 0..2 {
        ended(&node, &ann).await;
    }
    let parcels = courier.arrived().into_iter().zip([BROKEN, OK]);
    courier.report(&node, parcels.map(|(p, status)| (says(&p, status), p)).collect()).await;
    assert_eq!(courier.endpoint(&node).await.failing_since, None);
    assert_eq!(waiting(&node, courier.id).await, 2);
}

/// Who tries an endpoint before it is ready does not set a clock going.
async fn a_test_that_fails_says_nothing_about_the_endpoint(db: TestDb) {
    let (node, ann, courier) = start(&db).await;
    webhooks::test(&node.cx, courier.owner(&node).await.account, courier.id, Kind::MessageFailed)
        .await
        .unwrap();
    let parcels = courier.collect_urgent(&node).await;
    courier.answer(&node, parcels, BROKEN).await;
    assert_eq!(courier.endpoint(&node).await.failing_since, None);
    db.clock.advance(PATIENCE);
    one_more(&node, &ann, &courier, BROKEN).await;
    assert_eq!(courier.endpoint(&node).await.off, None);
}

async fn a_test_goes_first_and_is_never_tried_again(db: TestDb) {
    let (node, ann, courier) = start(&db).await;
    courier.desk.set_bound(false);
    ended(&node, &ann).await;
    let test = webhooks::test(
        &node.cx,
        courier.owner(&node).await.account,
        courier.id,
        Kind::MessageReceived,
    )
    .await
    .unwrap();
    assert_eq!(deliveries::due(&node.cx).await.unwrap(), [(courier.id, true)]);
    let parcels = courier.collect_urgent(&node).await;
    assert_eq!(events(&parcels), [test]);
    assert!(String::from_utf8(parcels[0].event.render()).unwrap().contains("webhook.test"));
    // Not tried is not a try.
    courier.report(&node, parcels.into_iter().map(|p| (Verdict::NotTried, p)).collect()).await;
    let mut parcels = courier.collect(&node).await;
    assert_eq!(events(&parcels)[0], test, "before everything else");
    parcels.truncate(1);
    courier.answer(&node, parcels, BROKEN).await;
    assert_eq!(waiting(&node, courier.id).await, 1);
    let told = webhooks::outcome(&node.cx, ann.account, test).await.unwrap();
    assert_eq!((told.first.map(|f| f.outcome), told.attempts.len()), (Some(500), 1));
}

async fn a_test_reaches_who_is_off(db: TestDb) {
    let (node, _, courier) = start(&db).await;
    webhooks::switch_off(&node.cx, &courier.owner(&node).await, courier.id).await.unwrap();
    let test = webhooks::test(
        &node.cx,
        courier.owner(&node).await.account,
        courier.id,
        Kind::MessageFailed,
    )
    .await
    .unwrap();
    let parcels = courier.collect_urgent(&node).await;
    assert_eq!(events(&parcels), [test]);
    courier.answer(&node, parcels, OK).await;
    assert_eq!(waiting(&node, courier.id).await, 0);
    assert!(courier.endpoint(&node).await.off.is_some(), "a test switches nothing on");
}

async fn a_report_of_a_lost_lease_changes_nothing_that_waits(db: TestDb) {
    let (node, ann, courier) = start(&db).await;
    ended(&node, &ann).await;
    let lost = courier.arrived();
    db.clock.advance(Duration::from_secs(61));
    let held = courier.collect(&node).await;
    assert_eq!((held.len(), held[0].lease.attempt), (1, 2));
    courier.answer(&node, lost, OK).await;
    assert_eq!(waiting(&node, courier.id).await, 1);
    courier.answer(&node, held, OK).await;
    assert_eq!(waiting(&node, courier.id).await, 0);
}

async fn a_dead_nodes_parcels_are_told_again(db: TestDb) {
    let (node, ann, courier) = start(&db).await;
    ended(&node, &ann).await;
    let before = courier.arrived();
    nodes::start(&node.cx.db, Uuid::from_u128(2)).await.unwrap();
    assert_eq!(courier.collect(&node).await.len(), 0, "that was another node");
    nodes::start(&node.cx.db, Uuid::from_u128(1)).await.unwrap();
    let again = courier.collect(&node).await;
    assert_eq!(events(&again), events(&before));
    courier.answer(&node, before, OK).await;
    assert_eq!(waiting(&node, courier.id).await, 1, "it speaks for its former self");
    courier.answer(&node, again, OK).await;
    assert_eq!((waiting(&node, courier.id).await, rows(&db, "events").await), (0, 1));
}

async fn who_asks_for_a_pause_gets_one(db: TestDb) {
    let (node, ann, courier) = start(&db).await;
    ended(&node, &ann).await;
    let parcel = courier.arrived().pop().unwrap();
    let retry_after = Some(Duration::from_secs(3_600));
    let response = Response::Answered { status: 503, body: "busy".to_owned(), retry_after };
    let verdict = deliveries::judge(0, response, 0.5);
    courier.report(&node, vec![(verdict, parcel)]).await;
    db.clock.advance(Duration::from_secs(3_599));
    assert_eq!(courier.collect(&node).await.len(), 0);
    db.clock.advance(Duration::from_secs(1));
    assert_eq!(courier.collect(&node).await.len(), 1);
}
