//! Events: what happened is kept for a while, and what an endpoint never took is found again.

use crate::rows::{account, at};
use crate::support::{TestDb, on_both_engines};
use crate::webhook_rows::{endpoint, event, happened, lined_up, registered};
use heliograph_domain::account::Mode;
use heliograph_domain::event::{Kind, Occurrence};
use heliograph_domain::id::{AccountId, EndpointId, EventId};
use heliograph_store::attempts::{self, Attempt};
use heliograph_store::events::{self, First, Replay};
use heliograph_store::{deliveries, endpoints};
use uuid::Uuid;

on_both_engines!(events:
    an_event_reads_back_as_it_happened,
    a_first_attempt_stands_with_its_event,
    an_event_is_seen_by_its_own_account,
    a_replay_finds_what_happened_in_its_time_and_world,
    what_waits_is_known_by_its_endpoint,
    of_the_failed_what_was_taken_in_the_end_is_left_out,
    what_another_endpoint_took_is_not_taken,
    a_replay_goes_on_where_the_last_page_ended,
    attempts_are_told_in_order_and_once,
    what_is_too_old_is_dropped_account_by_account,
    the_newest_are_read_page_by_page_and_only_their_own,
    the_last_attempts_at_an_endpoint_lead_to_their_events,
);

const NONE: EventId = EventId(Uuid::nil());

async fn one_account(db: &TestDb) -> (AccountId, EndpointId) {
    let ann = account(db, "ann@example.com", 0).await;
    (ann, registered(db, &endpoint(ann)).await)
}

fn all_of(account: AccountId, endpoint: EndpointId) -> Replay {
    let (from, to) = (at(0), at(1_000));
    Replay { account, mode: Mode::Live, endpoint, from, to, failed: false }
}

async fn found(db: &TestDb, what: &Replay, after: EventId, limit: i64) -> Vec<EventId> {
    let mut conn = db.db.read().await.unwrap();
    let found = events::to_replay(&mut conn, what, after, limit).await.unwrap();
    found.into_iter().map(|(id, _)| id).collect()
}

fn first(event: &Occurrence, outcome: i16) -> First {
    First { account: event.account, event: event.id, outcome, duration: 12, at: at(5) }
}

fn attempt(event: &Occurrence, endpoint: EndpointId, seconds: u64, outcome: i16) -> Attempt {
    let (account, event, at) = (event.account, event.id, at(seconds));
    let detail = (!(200..300).contains(&outcome)).then(|| "no, thanks".to_owned());
    Attempt { account, event, endpoint, at, outcome, duration: 3, detail, body: None }
}

async fn answered(db: &TestDb, firsts: &[First], others: &[Attempt]) {
    let mut tx = db.db.write().await.unwrap();
    events::answered(&mut tx, firsts).await.unwrap();
    attempts::insert(&mut tx, others).await.unwrap();
    tx.commit().await.unwrap();
}

async fn an_event_reads_back_as_it_happened(db: TestDb) {
    let (ann, to) = one_account(&db).await;
    let all = [
        event(&db, ann, to, 3),
        Occurrence {
            mode: Mode::Test,
            kind: Kind::MessageReceived,
            test: true,
            subject: None,
            ..event(&db, ann, to, 4)
        },
    ];
    happened(&db, &all).await;
    let mut conn = db.db.read().await.unwrap();
    for stored in all {
        let read = events::get(&mut conn, ann, stored.id).await.unwrap();
        assert_eq!(read, Some((stored, None)));
    }
}

async fn a_first_attempt_stands_with_its_event(db: TestDb) {
    let (ann, to) = one_account(&db).await;
    let all: Vec<_> = (0..3).map(|i| event(&db, ann, to, i)).collect();
    happened(&db, &all).await;
    let firsts = [first(&all[0], 204), first(&all[2], 0)];
    answered(&db, &firsts, &[]).await;
    let mut conn = db.db.read().await.unwrap();
    for (event, expected) in all.iter().zip([Some(firsts[0]), None, Some(firsts[1])]) {
        let read = events::get(&mut conn, ann, event.id).await.unwrap();
        assert_eq!(read.unwrap().1, expected);
    }
}

async fn an_event_is_seen_by_its_own_account(db: TestDb) {
    let (ann, to) = one_account(&db).await;
    let bob = account(&db, "bob@example.com", 0).await;
    let hers = event(&db, ann, to, 0);
    happened(&db, std::slice::from_ref(&hers)).await;
    answered(&db, &[First { account: bob, ..first(&hers, 200) }], &[]).await;
    let mut conn = db.db.read().await.unwrap();
    assert_eq!(events::get(&mut conn, bob, hers.id).await.unwrap(), None);
    assert_eq!(events::get(&mut conn, ann, hers.id).await.unwrap(), Some((hers, None)));
    drop(conn);
    assert_eq!(found(&db, &all_of(bob, to), NONE, 9).await, []);
}

async fn a_replay_finds_what_happened_in_its_time_and_world(db: TestDb) {
    let (ann, to) = one_account(&db).await;
    let all: Vec<_> = (0..5).map(|i| event(&db, ann, to, i * 10)).collect();
    happened(&db, &all).await;
    let another = event(&db, ann, to, 15);
    let others = [
        Occurrence { mode: Mode::Test, ..another.clone() },
        Occurrence { test: true, ..event(&db, ann, to, 15) },
    ];
    happened(&db, &others).await;
    for (from, to_, expected) in [(0, 41, 0..5), (10, 40, 1..4), (11, 40, 2..4), (20, 20, 0..0)] {
        let what = Replay { from: at(from), to: at(to_), ..all_of(ann, to) };
        let expected: Vec<_> = all[expected].iter().map(|e| e.id).collect();
        assert_eq!(found(&db, &what, NONE, 9).await, expected, "{from} to {to_}");
    }
    let test = Replay { mode: Mode::Test, ..all_of(ann, to) };
    assert_eq!(found(&db, &test, NONE, 9).await, [another.id]);
}

async fn what_waits_is_known_by_its_endpoint(db: TestDb) {
    let (ann, to) = one_account(&db).await;
    let other = registered(&db, &endpoint(ann)).await;
    let all: Vec<_> = (0..3).map(|i| event(&db, ann, to, i)).collect();
    happened(&db, &all).await;
    lined_up(&db, to, &all[1], at(500)).await;
    lined_up(&db, other, &all[2], at(500)).await;
    let mut conn = db.db.read().await.unwrap();
    for (endpoint, waiting) in [(to, all[1].id), (other, all[2].id)] {
        let pending = deliveries::pending(&mut conn, endpoint).await.unwrap();
        assert_eq!(pending.into_iter().collect::<Vec<_>>(), [waiting]);
    }
}

async fn of_the_failed_what_was_taken_in_the_end_is_left_out(db: TestDb) {
    let (ann, to) = one_account(&db).await;
    let all: Vec<_> = (0..6).map(|i| event(&db, ann, to, i)).collect();
    happened(&db, &all).await;
    // Taken at once; failed for good; taken at the second attempt; never tried; no answer; redirected.
    let firsts = [(0, 200), (1, 500), (2, 503), (4, 0), (5, 301)].map(|(i, o)| first(&all[i], o));
    let others = [(1, 6, 500), (1, 7, 410), (2, 6, 503), (2, 8, 299), (4, 6, 0), (5, 6, 301)];
    let others = others.map(|(i, seconds, o)| attempt(&all[i], to, seconds, o));
    answered(&db, &firsts, &others).await;
    let failed = Replay { failed: true, ..all_of(ann, to) };
    assert_eq!(found(&db, &failed, NONE, 9).await, [1, 3, 4, 5].map(|i: usize| all[i].id));
    assert_eq!(found(&db, &all_of(ann, to), NONE, 9).await.len(), 6);
}

async fn what_another_endpoint_took_is_not_taken(db: TestDb) {
    let (ann, to) = one_account(&db).await;
    let other = registered(&db, &endpoint(ann)).await;
    let all: Vec<_> = (0..3).map(|i| event(&db, ann, to, i)).collect();
    happened(&db, &all).await;
    // The first endpoint took the first; the other one the second.
    answered(&db, &[first(&all[0], 200)], &[attempt(&all[1], other, 6, 200)]).await;
    for (endpoint, expected) in [(to, [1, 2]), (other, [0, 2])] {
        let failed = Replay { failed: true, ..all_of(ann, endpoint) };
        assert_eq!(found(&db, &failed, NONE, 9).await, expected.map(|i: usize| all[i].id));
    }
}

async fn a_replay_goes_on_where_the_last_page_ended(db: TestDb) {
    let (ann, to) = one_account(&db).await;
    let all: Vec<_> = (0..7).map(|i| event(&db, ann, to, i)).collect();
    happened(&db, &all).await;
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

async fn attempts_are_told_in_order_and_once(db: TestDb) {
    let (ann, to) = one_account(&db).await;
    let other = registered(&db, &endpoint(ann)).await;
    let told = event(&db, ann, to, 0);
    let all = [(9, 500), (3, 0), (6, 200)].map(|(seconds, o)| attempt(&told, to, seconds, o));
    let elsewhere = attempt(&told, other, 6, 404);
    for _ in 0..2 {
        answered(&db, &[], &all).await;
        answered(&db, &[], std::slice::from_ref(&elsewhere)).await;
    }
    let mut conn = db.db.read().await.unwrap();
    let found = attempts::of(&mut conn, ann, told.id).await.unwrap();
    assert_eq!(found.iter().map(|a| a.at).collect::<Vec<_>>(), [3, 6, 6, 9].map(at));
    assert!(all.iter().chain([&elsewhere]).all(|a| found.contains(a)));
    let last = attempts::at(&mut conn, (ann, to), 2).await.unwrap();
    assert_eq!(last, [all[0].clone(), all[2].clone()]);
}

async fn what_is_too_old_is_dropped_account_by_account(db: TestDb) {
    let (ann, to) = one_account(&db).await;
    let bob = account(&db, "bob@example.com", 0).await;
    let hers: Vec<_> = [9, 10, 11].map(|seconds| event(&db, ann, to, seconds)).into();
    let his = event(&db, bob, to, 9);
    happened(&db, &hers).await;
    happened(&db, std::slice::from_ref(&his)).await;
    let all: Vec<_> = hers.iter().chain([&his]).map(|e| attempt(e, to, 100, 500)).collect();
    answered(&db, &[], &all).await;
    let mut tx = db.db.write().await.unwrap();
    let oldest = EventId::first_at(at(10));
    assert_eq!(attempts::drop_old(&mut tx, ann, oldest, 9).await.unwrap(), 1);
    assert_eq!(events::drop_old(&mut tx, ann, oldest, 9).await.unwrap(), 1);
    tx.commit().await.unwrap();
    assert_eq!(found(&db, &all_of(ann, to), NONE, 9).await, [hers[1].id, hers[2].id]);
    assert_eq!(found(&db, &all_of(bob, to), NONE, 9).await, [his.id]);
    let mut conn = db.db.read().await.unwrap();
    assert_eq!(attempts::at(&mut conn, (ann, to), 9).await.unwrap().len(), 2);
}

async fn the_newest_are_read_page_by_page_and_only_their_own(db: TestDb) {
    let (ann, to) = one_account(&db).await;
    let bob = account(&db, "bob@example.com", 0).await;
    let hers: Vec<_> = (0..3).map(|i| event(&db, ann, to, i)).collect();
    let his = event(&db, bob, to, 1);
    happened(&db, &hers).await;
    happened(&db, std::slice::from_ref(&his)).await;
    answered(&db, &[first(&hers[2], 200)], &[]).await;
    let mut conn = db.db.read().await.unwrap();
    let last = EventId(Uuid::max());
    let page = events::newest(&mut conn, ann, last, 2).await.unwrap();
    let ids: Vec<_> = page.iter().map(|(e, f)| (e.id, f.is_some())).collect();
    assert_eq!(ids, [(hers[2].id, true), (hers[1].id, false)]);
    let page = events::newest(&mut conn, ann, hers[1].id, 2).await.unwrap();
    assert_eq!(page.iter().map(|(e, _)| e.id).collect::<Vec<_>>(), [hers[0].id]);
    let asked = [hers[0].id, his.id, NONE];
    let these = events::these(&mut conn, ann, &asked).await.unwrap();
    assert_eq!(these.iter().map(|(e, _)| e.id).collect::<Vec<_>>(), [hers[0].id]);
}

async fn the_last_attempts_at_an_endpoint_lead_to_their_events(db: TestDb) {
    let (ann, to) = one_account(&db).await;
    let bob = account(&db, "bob@example.com", 0).await;
    let other = registered(&db, &endpoint(ann)).await;
    let all: Vec<_> = (0..2).map(|i| event(&db, ann, to, i)).collect();
    happened(&db, &all).await;
    let attempts = [(0, 5, 500), (1, 6, 0), (0, 7, 200)]
        .map(|(n, seconds, outcome): (usize, _, _)| attempt(&all[n], to, seconds, outcome));
    answered(&db, &[], &attempts).await;
    answered(&db, &[], &[attempt(&all[1], other, 8, 200)]).await;
    lined_up(&db, to, &all[1], at(60)).await;
    let mut conn = db.db.read().await.unwrap();
    let read = attempts::before(&mut conn, (ann, to), at(7), 9).await.unwrap();
    assert_eq!(read, [(all[1].id, at(6), true), (all[0].id, at(5), true)]);
    let read = attempts::before(&mut conn, (ann, to), at(99), 1).await.unwrap();
    assert_eq!(read, [(all[0].id, at(7), false)]);
    let mut of = attempts::of_these(&mut conn, (ann, to), &[all[0].id, all[1].id]).await.unwrap();
    of.sort_by_key(|a| a.at);
    assert_eq!(of, attempts);
    let next = deliveries::next(&mut conn, (ann, to), 9).await.unwrap();
    assert_eq!(next, [(all[1].id, at(60), 0)]);
    // Whose it is not reads nothing.
    assert_eq!(attempts::before(&mut conn, (bob, to), at(99), 9).await.unwrap(), []);
    assert_eq!(attempts::at(&mut conn, (bob, to), 9).await.unwrap(), []);
    assert_eq!(attempts::of_these(&mut conn, (bob, to), &[all[0].id]).await.unwrap(), []);
    assert_eq!(deliveries::next(&mut conn, (bob, to), 9).await.unwrap(), []);
    assert_eq!(endpoints::get(&mut conn, bob, to).await.unwrap(), None);
    assert_eq!(endpoints::get(&mut conn, ann, to).await.unwrap().unwrap().id, to);
}
