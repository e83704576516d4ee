//! Replays: what happened is told again, by its id or by its time, and never beside itself.

use crate::courier::{BROKEN, Courier, GONE, OK, ended, endpoint, events, secret, waiting, wish};
use crate::node::Node;
use crate::support::{TestDb, on_both_engines};
use heliograph_domain::account::Mode;
use heliograph_domain::event::Kind;
use heliograph_domain::id::EventId;
use heliograph_domain::time::Timestamp;
use heliograph_domain::webhook::ROTATION;
use heliograph_service::caller::Caller;
use heliograph_service::deliveries::{self, Response};
use heliograph_service::error::Error;
use heliograph_service::webhooks::{self, Again, replay};
use std::sync::Arc;
use std::time::Duration;
use uuid::Uuid;

on_both_engines!(replay:
    an_event_is_told_again_by_its_id,
    what_still_waits_is_not_lined_up_twice,
    a_range_is_told_again,
    what_was_never_taken_is_told_again,
    a_replay_that_fails_does_not_undo_a_success,
    what_was_dropped_with_a_switch_can_be_replayed,
    more_than_a_page_is_told_again,
    a_replay_is_refused_for_who_is_off_and_for_what_is_not_theirs,
    a_secret_rotates_for_a_day,
);

async fn start(db: &TestDb) -> (Node, Arc<Caller>, Courier) {
    let node = Node::start(db).await;
    let ann = node.account("ann@example.com", 200_000).await;
    node.open().await;
    let courier = Courier::open(&node, endpoint(&node, &ann).await).await;
    (node, ann, courier)
}

/// Events a second apart, each answered so.
async fn told(node: &Node, db: &TestDb, with: (&Caller, &Courier), all: &[u16]) -> Vec<EventId> {
    let (ann, courier) = with;
    let mut ids = Vec::new();
    for status in all {
        db.clock.advance(Duration::from_secs(1));
        ended(node, ann).await;
        let parcels = courier.arrived();
        ids.extend(events(&parcels));
        courier.answer(node, parcels, *status).await;
    }
    ids
}

fn always() -> (Timestamp, Timestamp) {
    (Timestamp(0), Timestamp(i64::MAX / 2))
}

async fn an_event_is_told_again_by_its_id(db: TestDb) {
    let (node, ann, courier) = start(&db).await;
    let ids = told(&node, &db, (&ann, &courier), &[OK, OK, OK]).await;
    let these = Again::These(vec![ids[2], ids[0], ids[2]]);
    assert_eq!(replay(&node.cx, ann.account, courier.id, these).await.unwrap(), 2);
    let parcels = courier.collect(&node).await;
    assert_eq!(events(&parcels), [ids[0], ids[2]]);
    courier.answer(&node, parcels, OK).await;
    assert_eq!(waiting(&node, courier.id).await, 0);
}

/// Two rows of one event could be put off to the same instant, and the report of that never written.
async fn what_still_waits_is_not_lined_up_twice(db: TestDb) {
    let (node, ann, courier) = start(&db).await;
    let ids = told(&node, &db, (&ann, &courier), &[OK, BROKEN]).await;
    for expected in [1, 0] {
        db.clock.advance(Duration::from_millis(1));
        let again = Again::These(ids.clone());
        assert_eq!(replay(&node.cx, ann.account, courier.id, again).await.unwrap(), expected);
    }
    let (from, to) = always();
    assert_eq!(replay(&node.cx, ann.account, courier.id, Again::All(from, to)).await.unwrap(), 0);
    db.clock.advance(Duration::from_secs(9));
    let parcels = courier.collect(&node).await;
    assert_eq!(parcels.len(), 2);
    let retry_after = Some(Duration::from_secs(3_600));
    let busy = Response::Answered { status: 429, body: String::new(), retry_after };
    let busy = |tries| deliveries::judge(tries, busy.clone(), 0.5);
    courier.report(&node, parcels.into_iter().map(|p| (busy(p.lease.tries), p)).collect()).await;
    assert_eq!(waiting(&node, courier.id).await, 2);
}

async fn a_range_is_told_again(db: TestDb) {
    let (node, ann, courier) = start(&db).await;
    let begin = node.cx.db.now();
    let ids = told(&node, &db, (&ann, &courier), &[OK, OK, OK, OK]).await;
    let second = |n| begin.after(Duration::from_secs(n));
    let again = Again::All(second(2), second(4));
    assert_eq!(replay(&node.cx, ann.account, courier.id, again.clone()).await.unwrap(), 2);
    assert_eq!(replay(&node.cx, ann.account, courier.id, again).await.unwrap(), 0, "they wait");
    let parcels = courier.collect(&node).await;
    assert_eq!(events(&parcels), ids[1..3]);
}

async fn what_was_never_taken_is_told_again(db: TestDb) {
    let (node, ann, courier) = start(&db).await;
    let ids = told(&node, &db, (&ann, &courier), &[OK, BROKEN, BROKEN]).await;
    db.clock.advance(Duration::from_secs(6));
    let mut parcels = courier.collect(&node).await;
    assert_eq!(events(&parcels), ids[1..]);
    let last = parcels.split_off(1);
    courier.answer(&node, parcels, OK).await;
    courier.answer(&node, last, GONE).await;
    webhooks::switch_on(&node.cx, &courier.owner(&node).await, courier.id).await.unwrap();
    let (from, to) = always();
    assert_eq!(
        replay(&node.cx, ann.account, courier.id, Again::Failed(from, to)).await.unwrap(),
        1
    );
    let parcels = courier.collect(&node).await;
    assert_eq!(events(&parcels), ids[2..]);
    courier.answer(&node, parcels, OK).await;
    assert_eq!(
        replay(&node.cx, ann.account, courier.id, Again::Failed(from, to)).await.unwrap(),
        0
    );
}

async fn a_replay_that_fails_does_not_undo_a_success(db: TestDb) {
    let (node, ann, courier) = start(&db).await;
    let ids = told(&node, &db, (&ann, &courier), &[OK]).await;
    replay(&node.cx, ann.account, courier.id, Again::These(ids.clone())).await.unwrap();
    let parcels = courier.collect(&node).await;
    courier.answer(&node, parcels, GONE).await;
    webhooks::switch_on(&node.cx, &courier.owner(&node).await, courier.id).await.unwrap();
    let told = webhooks::outcome(&node.cx, ann.account, ids[0]).await.unwrap();
    assert_eq!((told.first.map(|f| f.outcome), told.attempts.len()), (Some(200), 1));
    let (from, to) = always();
    assert_eq!(
        replay(&node.cx, ann.account, courier.id, Again::Failed(from, to)).await.unwrap(),
        0
    );
}

async fn what_was_dropped_with_a_switch_can_be_replayed(db: TestDb) {
    let (node, ann, courier) = start(&db).await;
    told(&node, &db, (&ann, &courier), &[OK, BROKEN]).await;
    webhooks::switch_off(&node.cx, &courier.owner(&node).await, courier.id).await.unwrap();
    ended(&node, &ann).await;
    webhooks::switch_on(&node.cx, &courier.owner(&node).await, courier.id).await.unwrap();
    let (from, to) = always();
    assert_eq!(
        replay(&node.cx, ann.account, courier.id, Again::Failed(from, to)).await.unwrap(),
        2
    );
    assert_eq!(courier.collect(&node).await.len(), 2);
}

async fn more_than_a_page_is_told_again(db: TestDb) {
    let (node, _, courier) = start(&db).await;
    for _ in 0..3 {
        webhooks::test(
            &node.cx,
            courier.owner(&node).await.account,
            courier.id,
            Kind::MessageFailed,
        )
        .await
        .unwrap();
    }
    // Tests are never replayed: make real ones of more than a page of them.
    let (one, begin) = (courier.collect_urgent(&node).await.remove(0).event.id, node.cx.db.now());
    db.behind("DELETE FROM deliveries").await;
    let copy = |i: u128| {
        let id = Uuid::from_u128(one.0.as_u128() + 1_000 + i);
        let id = match node.cx.db.is_shared() {
            true => format!("'{id}'"),
            false => format!("x'{}'", id.simple()),
        };
        format!("({}, {id}, 1, 1, 0, NULL, {}, {})", 1, begin.0, courier.id.0)
    };
    let rows: Vec<_> = (0..2_100).map(copy).collect();
    let insert = "INSERT INTO events (account, id, mode, kind, test, subject, at, endpoint) VALUES";
    db.behind(&format!("{insert} {}", rows.join(", "))).await;
    let account = courier.endpoint(&node).await.account;
    db.behind(&format!("UPDATE events SET account = {}, mode = {}", account.0, Mode::Live.code()))
        .await;
    let (from, to) = always();
    let all = async || replay(&node.cx, account, courier.id, Again::All(from, to)).await.unwrap();
    assert_eq!(all().await, 2_100);
    assert_eq!(waiting(&node, courier.id).await, 2_100);
    assert_eq!(all().await, 0);
}

async fn a_replay_is_refused_for_who_is_off_and_for_what_is_not_theirs(db: TestDb) {
    let (node, ann, courier) = start(&db).await;
    let bob = node.account("bob@example.com", 1_000).await;
    let ids = told(&node, &db, (&ann, &courier), &[OK]).await;
    let his = endpoint(&node, &bob).await;
    let (test, by) = (node.key(ann.account, Mode::Test).await, courier.owner(&node).await);
    let hers = webhooks::add(&node.cx, &by, wish(&test, "https://example.com/"), secret()).await;
    for other in [his, hers.unwrap().id] {
        let refused = replay(&node.cx, ann.account, other, Again::These(ids.clone())).await;
        assert!(matches!(refused, Err(Error::NotFound)), "{refused:?}");
    }
    let unknown =
        replay(&node.cx, ann.account, courier.id, Again::These(vec![ids[0], EventId(Uuid::nil())]));
    assert!(matches!(unknown.await, Err(Error::NotFound)));
    webhooks::switch_off(&node.cx, &courier.owner(&node).await, courier.id).await.unwrap();
    let refused = replay(&node.cx, ann.account, courier.id, Again::These(ids)).await;
    assert!(matches!(refused, Err(Error::BadTarget(_))), "{refused:?}");
    assert_eq!(waiting(&node, courier.id).await, 0);
}

async fn a_secret_rotates_for_a_day(db: TestDb) {
    let (node, _, courier) = start(&db).await;
    let next = heliograph_domain::webhook::Secret::from_random(&[6; 24]);
    let until =
        webhooks::rotate(&node.cx, &courier.owner(&node).await, courier.id, &next).await.unwrap();
    assert_eq!(until, node.cx.db.now().after(ROTATION));
    let endpoint = courier.endpoint(&node).await;
    let count = |now| endpoint.signatures(now, "id", 0, b"body").split(' ').count();
    assert_eq!((count(node.cx.db.now()), count(until)), (2, 1));
    assert!(next.verify("id", 0, b"body", &endpoint.signatures(until, "id", 0, b"body")));
}
