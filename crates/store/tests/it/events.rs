//! Tests of events: retention, delivery attempts and the selection of events to replay.

use crate::fixtures::{account, at};
use crate::webhook_fixtures::{endpoint, event, queue_delivery, register, store_events};
use heliograph_domain::account::Mode;
use heliograph_domain::delivery_error::{AttemptOutcome, DeliveryErrorKind};
use heliograph_domain::event::{EventKind, StoredEvent};
use heliograph_domain::id::{AccountId, EndpointId, EventId};
use heliograph_store::webhooks::attempts::{self, DeliveryAttempt};
use heliograph_store::webhooks::deliveries;
use heliograph_store::webhooks::endpoints;
use heliograph_store::webhooks::events::{self, FirstAttempt, ReplayFilter};
use heliograph_testing::TestDb;
use uuid::Uuid;

const NONE: EventId = EventId(Uuid::nil());
/// The code of an attempt without a response.
const TIMEOUT: i16 = -DeliveryErrorKind::ResponseTimeout.code();

async fn one_account(db: &TestDb) -> (AccountId, EndpointId) {
    let ann = account(db, "ann@example.com", 0).await;
    (ann, register(db, &endpoint(ann)).await)
}

fn all_of(account: AccountId, endpoint: EndpointId) -> ReplayFilter {
    let (from, to) = (at(0), at(1_000));
    ReplayFilter { account, mode: Mode::Live, endpoint, from, to, failed: false }
}

async fn found(db: &TestDb, what: &ReplayFilter, after: EventId, limit: i64) -> Vec<EventId> {
    let mut conn = db.db.read().await.unwrap();
    let found = events::list_for_replay(&mut conn, what, after, limit).await.unwrap();
    found.into_iter().map(|(id, _)| id).collect()
}

fn first(event: &StoredEvent, code: i16) -> FirstAttempt {
    let outcome = AttemptOutcome::from_code(code).unwrap();
    FirstAttempt { account: event.account, event: event.id, outcome, duration: 12, at: at(5) }
}

fn attempt(event: &StoredEvent, endpoint: EndpointId, seconds: u64, code: i16) -> DeliveryAttempt {
    let outcome = AttemptOutcome::from_code(code).unwrap();
    let (account, event, at) = (event.account, event.id, at(seconds));
    let detail = (!outcome.is_success()).then(|| "no, thanks".to_owned());
    DeliveryAttempt { account, event, endpoint, at, outcome, duration: 3, detail, body: None }
}

async fn record_attempts(db: &TestDb, firsts: &[FirstAttempt], others: &[DeliveryAttempt]) {
    let mut tx = db.db.write().await.unwrap();
    events::record_first_attempts(&mut tx, firsts).await.unwrap();
    attempts::insert(&mut tx, others).await.unwrap();
    tx.commit().await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_event_reads_back_as_stored() {
    let db = TestDb::new().await;
    let (ann, to) = one_account(&db).await;
    let all = [
        event(&db, ann, to, 3),
        StoredEvent {
            mode: Mode::Test,
            kind: EventKind::MessageReceived,
            test: true,
            subject: None,
            ..event(&db, ann, to, 4)
        },
    ];
    store_events(&db, &all).await;
    let mut conn = db.db.read().await.unwrap();
    for stored in all {
        let read = events::get(&mut conn, ann, stored.id).await.unwrap();
        assert_eq!(read, Some((stored, None)));
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_first_attempt_is_stored_with_its_event() {
    let db = TestDb::new().await;
    let (ann, to) = one_account(&db).await;
    let all: Vec<_> = (0..3).map(|i| event(&db, ann, to, i)).collect();
    store_events(&db, &all).await;
    let firsts = [first(&all[0], 204), first(&all[2], TIMEOUT)];
    record_attempts(&db, &firsts, &[]).await;
    let mut conn = db.db.read().await.unwrap();
    for (event, expected) in all.iter().zip([Some(firsts[0]), None, Some(firsts[1])]) {
        let read = events::get(&mut conn, ann, event.id).await.unwrap();
        assert_eq!(read.unwrap().1, expected);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_event_is_visible_to_its_own_account_only() {
    let db = TestDb::new().await;
    let (ann, to) = one_account(&db).await;
    let bob = account(&db, "bob@example.com", 0).await;
    let of_ann = event(&db, ann, to, 0);
    store_events(&db, std::slice::from_ref(&of_ann)).await;
    record_attempts(&db, &[FirstAttempt { account: bob, ..first(&of_ann, 200) }], &[]).await;
    let mut conn = db.db.read().await.unwrap();
    assert_eq!(events::get(&mut conn, bob, of_ann.id).await.unwrap(), None);
    assert_eq!(events::get(&mut conn, ann, of_ann.id).await.unwrap(), Some((of_ann, None)));
    drop(conn);
    assert_eq!(found(&db, &all_of(bob, to), NONE, 9).await, []);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_replay_selects_by_period_and_mode() {
    let db = TestDb::new().await;
    let (ann, to) = one_account(&db).await;
    let all: Vec<_> = (0..5).map(|i| event(&db, ann, to, i * 10)).collect();
    store_events(&db, &all).await;
    let another = event(&db, ann, to, 15);
    let others = [
        StoredEvent { mode: Mode::Test, ..another.clone() },
        StoredEvent { test: true, ..event(&db, ann, to, 15) },
    ];
    store_events(&db, &others).await;
    for (from, to_, expected) in [(0, 41, 0..5), (10, 40, 1..4), (11, 40, 2..4), (20, 20, 0..0)] {
        let what = ReplayFilter { from: at(from), to: at(to_), ..all_of(ann, to) };
        let expected: Vec<_> = all[expected].iter().map(|e| e.id).collect();
        assert_eq!(found(&db, &what, NONE, 9).await, expected, "{from} to {to_}");
    }
    let test = ReplayFilter { mode: Mode::Test, ..all_of(ann, to) };
    assert_eq!(found(&db, &test, NONE, 9).await, [another.id]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn pending_deliveries_are_listed_by_endpoint() {
    let db = TestDb::new().await;
    let (ann, to) = one_account(&db).await;
    let other = register(&db, &endpoint(ann)).await;
    let all: Vec<_> = (0..3).map(|i| event(&db, ann, to, i)).collect();
    store_events(&db, &all).await;
    queue_delivery(&db, to, &all[1], at(500)).await;
    queue_delivery(&db, other, &all[2], at(500)).await;
    let mut conn = db.db.read().await.unwrap();
    for (endpoint, waiting) in [(to, all[1].id), (other, all[2].id)] {
        let pending = deliveries::pending_events(&mut conn, endpoint).await.unwrap();
        assert_eq!(pending.into_iter().collect::<Vec<_>>(), [waiting]);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_replay_of_failed_events_skips_delivered_ones() {
    let db = TestDb::new().await;
    let (ann, to) = one_account(&db).await;
    let all: Vec<_> = (0..6).map(|i| event(&db, ann, to, i)).collect();
    store_events(&db, &all).await;
    // Delivered at once; failed for good; delivered at the second attempt; never tried; no
    // response; redirected.
    let firsts =
        [(0, 200), (1, 500), (2, 503), (4, TIMEOUT), (5, 301)].map(|(i, o)| first(&all[i], o));
    let others = [(1, 6, 500), (1, 7, 410), (2, 6, 503), (2, 8, 299), (4, 6, 0), (5, 6, 301)];
    let others = others.map(|(i, seconds, o)| attempt(&all[i], to, seconds, o));
    record_attempts(&db, &firsts, &others).await;
    let failed = ReplayFilter { failed: true, ..all_of(ann, to) };
    assert_eq!(found(&db, &failed, NONE, 9).await, [1, 3, 4, 5].map(|i: usize| all[i].id));
    assert_eq!(found(&db, &all_of(ann, to), NONE, 9).await.len(), 6);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_delivery_to_another_endpoint_does_not_count() {
    let db = TestDb::new().await;
    let (ann, to) = one_account(&db).await;
    let other = register(&db, &endpoint(ann)).await;
    let all: Vec<_> = (0..3).map(|i| event(&db, ann, to, i)).collect();
    store_events(&db, &all).await;
    // The first event was delivered to the first endpoint, the second one to the other.
    record_attempts(&db, &[first(&all[0], 200)], &[attempt(&all[1], other, 6, 200)]).await;
    for (endpoint, expected) in [(to, [1, 2]), (other, [0, 2])] {
        let failed = ReplayFilter { failed: true, ..all_of(ann, endpoint) };
        assert_eq!(found(&db, &failed, NONE, 9).await, expected.map(|i: usize| all[i].id));
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_replay_continues_after_the_last_page() {
    let db = TestDb::new().await;
    let (ann, to) = one_account(&db).await;
    let all: Vec<_> = (0..7).map(|i| event(&db, ann, to, i)).collect();
    store_events(&db, &all).await;
    let (mut after, mut pages) = (NONE, Vec::new());
    loop {
        let page = found(&db, &all_of(ann, to), after, 3).await;
        let Some(last) = page.last() else { break };
        after = *last;
        pages.push(page);
    }
    let expected = [vec![0, 1, 2], vec![3, 4, 5], vec![6]];
    assert_eq!(pages, expected.map(|p| p.iter().map(|i: &usize| all[*i].id).collect::<Vec<_>>()));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn attempts_are_listed_in_order_and_once() {
    let db = TestDb::new().await;
    let (ann, to) = one_account(&db).await;
    let other = register(&db, &endpoint(ann)).await;
    let event_of_ann = event(&db, ann, to, 0);
    let all = [(9, 500), (3, TIMEOUT), (6, 200)]
        .map(|(seconds, o)| attempt(&event_of_ann, to, seconds, o));
    let elsewhere = attempt(&event_of_ann, other, 6, 404);
    for _ in 0..2 {
        record_attempts(&db, &[], &all).await;
        record_attempts(&db, &[], std::slice::from_ref(&elsewhere)).await;
    }
    let mut conn = db.db.read().await.unwrap();
    let found = attempts::list_for_event(&mut conn, ann, event_of_ann.id).await.unwrap();
    assert_eq!(found.iter().map(|a| a.at).collect::<Vec<_>>(), [3, 6, 6, 9].map(at));
    assert!(all.iter().chain([&elsewhere]).all(|a| found.contains(a)));
    let last = attempts::list_for_endpoint(&mut conn, (ann, to), 2).await.unwrap();
    assert_eq!(last, [all[0].clone(), all[2].clone()]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn old_events_are_deleted_by_account() {
    let db = TestDb::new().await;
    let (ann, to) = one_account(&db).await;
    let bob = account(&db, "bob@example.com", 0).await;
    let of_ann: Vec<_> = [9, 10, 11].map(|seconds| event(&db, ann, to, seconds)).into();
    let of_bob = event(&db, bob, to, 9);
    store_events(&db, &of_ann).await;
    store_events(&db, std::slice::from_ref(&of_bob)).await;
    let all: Vec<_> = of_ann.iter().chain([&of_bob]).map(|e| attempt(e, to, 100, 500)).collect();
    record_attempts(&db, &[], &all).await;
    let mut tx = db.db.write().await.unwrap();
    let oldest = EventId::first_at(at(10));
    assert_eq!(attempts::delete_old(&mut tx, ann, oldest, 9).await.unwrap(), 1);
    assert_eq!(events::delete_old(&mut tx, ann, oldest, 9).await.unwrap(), 1);
    tx.commit().await.unwrap();
    assert_eq!(found(&db, &all_of(ann, to), NONE, 9).await, [of_ann[1].id, of_ann[2].id]);
    assert_eq!(found(&db, &all_of(bob, to), NONE, 9).await, [of_bob.id]);
    let mut conn = db.db.read().await.unwrap();
    assert_eq!(attempts::list_for_endpoint(&mut conn, (ann, to), 9).await.unwrap().len(), 2);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn events_are_paged_newest_first_by_account() {
    let db = TestDb::new().await;
    let (ann, to) = one_account(&db).await;
    let bob = account(&db, "bob@example.com", 0).await;
    let of_ann: Vec<_> = (0..3).map(|i| event(&db, ann, to, i)).collect();
    let of_bob = event(&db, bob, to, 1);
    store_events(&db, &of_ann).await;
    store_events(&db, std::slice::from_ref(&of_bob)).await;
    record_attempts(&db, &[first(&of_ann[2], 200)], &[]).await;
    let mut conn = db.db.read().await.unwrap();
    let last = EventId(Uuid::max());
    let page = events::list_before(&mut conn, ann, last, 2).await.unwrap();
    let ids: Vec<_> = page.iter().map(|(e, f)| (e.id, f.is_some())).collect();
    assert_eq!(ids, [(of_ann[2].id, true), (of_ann[1].id, false)]);
    let page = events::list_before(&mut conn, ann, of_ann[1].id, 2).await.unwrap();
    assert_eq!(page.iter().map(|(e, _)| e.id).collect::<Vec<_>>(), [of_ann[0].id]);
    let asked = [of_ann[0].id, of_bob.id, NONE];
    let these = events::get_many(&mut conn, ann, &asked).await.unwrap();
    assert_eq!(these.iter().map(|(e, _)| e.id).collect::<Vec<_>>(), [of_ann[0].id]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_last_attempts_at_an_endpoint_are_listed_with_their_events() {
    let db = TestDb::new().await;
    let (ann, to) = one_account(&db).await;
    let bob = account(&db, "bob@example.com", 0).await;
    let other = register(&db, &endpoint(ann)).await;
    let all: Vec<_> = (0..2).map(|i| event(&db, ann, to, i)).collect();
    store_events(&db, &all).await;
    let attempts = [(0, 5, 500), (1, 6, 0), (0, 7, 200)]
        .map(|(n, seconds, outcome): (usize, _, _)| attempt(&all[n], to, seconds, outcome));
    record_attempts(&db, &[], &attempts).await;
    record_attempts(&db, &[], &[attempt(&all[1], other, 8, 200)]).await;
    queue_delivery(&db, to, &all[1], at(60)).await;
    let mut conn = db.db.read().await.unwrap();
    let read = attempts::list_before(&mut conn, (ann, to), at(7), 9).await.unwrap();
    assert_eq!(read, [(all[1].id, at(6), true), (all[0].id, at(5), true)]);
    let read = attempts::list_before(&mut conn, (ann, to), at(99), 1).await.unwrap();
    assert_eq!(read, [(all[0].id, at(7), false)]);
    let mut of =
        attempts::list_for_events(&mut conn, (ann, to), &[all[0].id, all[1].id]).await.unwrap();
    of.sort_by_key(|a| a.at);
    assert_eq!(of, attempts);
    let next = deliveries::list_pending(&mut conn, (ann, to), 9).await.unwrap();
    assert_eq!(next, [(all[1].id, at(60), 0)]);
    // Another account reads nothing.
    assert_eq!(attempts::list_before(&mut conn, (bob, to), at(99), 9).await.unwrap(), []);
    assert_eq!(attempts::list_for_endpoint(&mut conn, (bob, to), 9).await.unwrap(), []);
    assert_eq!(attempts::list_for_events(&mut conn, (bob, to), &[all[0].id]).await.unwrap(), []);
    assert_eq!(deliveries::list_pending(&mut conn, (bob, to), 9).await.unwrap(), []);
    assert_eq!(endpoints::get(&mut conn, bob, to).await.unwrap(), None);
    assert_eq!(endpoints::get(&mut conn, ann, to).await.unwrap().unwrap().id, to);
}
