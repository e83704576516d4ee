//! Tests of deliveries: due rows are leased once, in order, and changed only by the holder of the
//! lease.

use crate::fixtures::{HERE, THERE, account, at};
use crate::webhook_fixtures::{
    claim, delivery_claim, depth, endpoint, event, insert, new_delivery, queue_delivery, register,
    store_events,
};
use heliograph_domain::event::StoredEvent;
use heliograph_domain::id::{AccountId, EndpointId, EventId};
use heliograph_domain::lease::{DeliveryLease, LEASE};
use heliograph_domain::time::Timestamp;
use heliograph_store::webhooks::deliveries::{self, DeliveryClaim, NewDelivery};
use heliograph_testing::{START, TestDb};
use std::collections::HashSet;
use std::time::Duration;
use tokio::task::JoinSet;

/// Creates an account with an endpoint and one event per given second.
async fn due(db: &TestDb, seconds: &[u64]) -> (EndpointId, Vec<StoredEvent>) {
    let ann = account(db, "ann@example.com", 0).await;
    let to = register(db, &endpoint(ann)).await;
    let all: Vec<_> = seconds.iter().map(|_| event(db, ann, to, 0)).collect();
    store_events(db, &all).await;
    for (event, seconds) in all.iter().zip(seconds) {
        queue_delivery(db, to, event, at(*seconds)).await;
    }
    (to, all)
}

fn ids(found: &[(DeliveryLease, StoredEvent)]) -> Vec<EventId> {
    found.iter().map(|(lease, _)| lease.event).collect()
}

async fn settle(db: &TestDb, lease: &DeliveryLease) {
    let mut tx = db.db.write().await.unwrap();
    deliveries::settle(&mut tx, &[lease]).await.unwrap();
    tx.commit().await.unwrap();
}

async fn release(db: &TestDb, lease: &DeliveryLease, next: Timestamp, tries: u16) {
    let mut tx = db.db.write().await.unwrap();
    deliveries::release(&mut tx, &[(lease, next, tries)]).await.unwrap();
    tx.commit().await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_claim_returns_the_event_and_the_lease() {
    let db = TestDb::new().await;
    let (to, all) = due(&db, &[5]).await;
    let found = claim(&db.db, delivery_claim(HERE, to, at(5), 9)).await;
    let event = all[0].id;
    let lease =
        DeliveryLease { endpoint: to, due_at: at(5), event, owner: HERE, attempt: 1, tries: 0 };
    assert_eq!(found, [(lease, all[0].clone())]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_longest_due_delivery_is_claimed_first() {
    let db = TestDb::new().await;
    let (to, all) = due(&db, &[3, 1, 2, 1, 0]).await;
    let found = claim(&db.db, delivery_claim(HERE, to, at(9), 9)).await;
    assert_eq!(ids(&found), [4, 1, 3, 2, 0].map(|i: usize| all[i].id));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_claim_respects_its_limit() {
    let db = TestDb::new().await;
    let (to, all) = due(&db, &[0, 1, 2, 3, 4]).await;
    let mut found = Vec::new();
    for (limit, expected) in [(0, 0), (2, 2), (2, 2), (2, 1), (2, 0)] {
        let claimed = claim(&db.db, delivery_claim(HERE, to, at(9), limit)).await;
        assert_eq!(claimed.len(), expected);
        found.extend(ids(&claimed));
    }
    assert_eq!(found, all.iter().map(|e| e.id).collect::<Vec<_>>());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rows_that_are_not_due_are_not_claimed() {
    let db = TestDb::new().await;
    let (to, all) = due(&db, &[60]).await;
    assert_eq!(claim(&db.db, delivery_claim(HERE, to, at(59), 9)).await, []);
    assert_eq!(ids(&claim(&db.db, delivery_claim(HERE, to, at(60), 9)).await), [all[0].id]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn deliveries_of_another_endpoint_are_not_claimed() {
    let db = TestDb::new().await;
    let (to, all) = due(&db, &[0]).await;
    let other = register(&db, &endpoint(all[0].account)).await;
    assert_eq!(claim(&db.db, delivery_claim(HERE, other, at(9), 9)).await, []);
    // One event for both endpoints.
    queue_delivery(&db, other, &all[0], START).await;
    assert_eq!(ids(&claim(&db.db, delivery_claim(HERE, other, at(9), 9)).await), [all[0].id]);
    assert_eq!(ids(&claim(&db.db, delivery_claim(HERE, to, at(9), 9)).await), [all[0].id]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn leased_rows_are_not_claimed() {
    let db = TestDb::new().await;
    let (to, _) = due(&db, &[0]).await;
    assert_eq!(claim(&db.db, delivery_claim(HERE, to, at(0), 9)).await.len(), 1);
    for node in [HERE, THERE] {
        assert_eq!(claim(&db.db, delivery_claim(node, to, START.after(LEASE), 9)).await, []);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_expired_lease_is_claimed_again() {
    let db = TestDb::new().await;
    let (to, all) = due(&db, &[0]).await;
    let first = claim(&db.db, delivery_claim(HERE, to, at(0), 9)).await;
    let late = START.after(LEASE + Duration::from_millis(1));
    let second = claim(&db.db, delivery_claim(THERE, to, late, 9)).await;
    assert_eq!(ids(&second), [all[0].id]);
    assert_eq!((first[0].0.attempt, second[0].0.attempt), (1, 2));
    assert_eq!((second[0].0.owner, second[0].0.tries), (THERE, 0));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_delivery_with_an_owner_is_leased_from_the_start() {
    let db = TestDb::new().await;
    let (to, all) = due(&db, &[]).await;
    assert_eq!(all, []);
    let new = event(&db, AccountId(1), to, 0);
    store_events(&db, std::slice::from_ref(&new)).await;
    insert(&db, NewDelivery { owner: Some(HERE), ..new_delivery(to, &new, START) }).await;
    assert_eq!(claim(&db.db, delivery_claim(THERE, to, START.after(LEASE), 9)).await, []);
    // The lease that its owner knows without a claim.
    let (event, owner) = (new.id, HERE);
    settle(&db, &DeliveryLease { endpoint: to, due_at: START, event, owner, attempt: 1, tries: 0 })
        .await;
    assert_eq!(depth(&db, to).await, 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn urgent_deliveries_go_first_and_can_be_claimed_alone() {
    let db = TestDb::new().await;
    let (to, all) = due(&db, &[0, 0]).await;
    let test = StoredEvent { test: true, subject: None, ..event(&db, all[0].account, to, 5) };
    store_events(&db, std::slice::from_ref(&test)).await;
    queue_delivery(&db, to, &test, Timestamp(0)).await;
    let alone = DeliveryClaim { due: Timestamp(0), ..delivery_claim(HERE, to, at(9), 9) };
    let found = claim(&db.db, alone).await;
    assert_eq!(found.iter().map(|(_, e)| e).collect::<Vec<_>>(), [&test]);
    assert_eq!(claim(&db.db, alone).await, []);
    release(&db, &found[0].0, Timestamp(0), 0).await;
    let found = claim(&db.db, delivery_claim(HERE, to, at(9), 9)).await;
    assert_eq!(ids(&found), [test.id, all[0].id, all[1].id]);
}

/// Returns an expired lease and the newer lease of the same delivery.
async fn lost(db: &TestDb) -> (EndpointId, DeliveryLease, DeliveryLease) {
    let (to, _) = due(db, &[0]).await;
    let lost = claim(&db.db, delivery_claim(HERE, to, at(0), 9)).await.pop().unwrap().0;
    let held = claim(&db.db, delivery_claim(THERE, to, at(61), 9)).await.pop().unwrap().0;
    (to, lost, held)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_lost_lease_settles_nothing() {
    let db = TestDb::new().await;
    let (to, lost, held) = lost(&db).await;
    let again = DeliveryLease { attempt: 2, ..lost.clone() };
    let elsewhere = DeliveryLease { due_at: at(1), ..held.clone() };
    for wrong in [&lost, &again, &elsewhere] {
        settle(&db, wrong).await;
        assert_eq!(depth(&db, to).await, 1);
    }
    settle(&db, &held).await;
    assert_eq!(depth(&db, to).await, 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_lost_lease_releases_nothing() {
    let db = TestDb::new().await;
    let (to, lost, held) = lost(&db).await;
    release(&db, &lost, at(70), 1).await;
    assert_eq!(
        claim(&db.db, delivery_claim(HERE, to, at(100), 9)).await,
        [],
        "the delivery is leased"
    );
    release(&db, &held, at(70), 1).await;
    assert_eq!(claim(&db.db, delivery_claim(HERE, to, at(69), 9)).await, []);
    assert_eq!(claim(&db.db, delivery_claim(HERE, to, at(70), 9)).await.len(), 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_released_delivery_is_due_again_with_its_tries() {
    let db = TestDb::new().await;
    let (to, all) = due(&db, &[0]).await;
    let mut now = at(0);
    for tries in 0..3 {
        let found = claim(&db.db, delivery_claim(HERE, to, now, 9)).await;
        let (lease, event) = &found[0];
        assert_eq!((lease.tries, lease.attempt, lease.due_at), (tries, tries + 1, now));
        assert_eq!(event, &all[0], "the same event each time");
        now = now.after(Duration::from_secs(100));
        release(&db, lease, now, tries + 1).await;
        assert_eq!(depth(&db, to).await, 1);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn only_the_leases_of_the_dead_node_are_released() {
    let db = TestDb::new().await;
    let (to, all) = due(&db, &[0, 0, 0]).await;
    let here = claim(&db.db, delivery_claim(HERE, to, at(0), 1)).await;
    let there = claim(&db.db, delivery_claim(THERE, to, at(0), 1)).await;
    assert_eq!([ids(&here), ids(&there)], [[all[0].id], [all[1].id]]);
    let mut tx = db.db.write().await.unwrap();
    assert_eq!(deliveries::release_for_node(&mut tx, HERE).await.unwrap(), 1);
    tx.commit().await.unwrap();
    let found = claim(&db.db, delivery_claim(HERE, to, at(0), 9)).await;
    assert_eq!(ids(&found), [all[0].id, all[2].id]);
    assert_eq!(found[0].0.attempt, 2, "the former lease is fenced");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_deliveries_of_one_endpoint_can_be_deleted() {
    let db = TestDb::new().await;
    let (to, all) = due(&db, &[0, 60]).await;
    let other = register(&db, &endpoint(all[0].account)).await;
    queue_delivery(&db, other, &all[0], START).await;
    claim(&db.db, delivery_claim(HERE, to, at(0), 1)).await;
    let mut tx = db.db.write().await.unwrap();
    assert_eq!(deliveries::delete_for_endpoint(&mut tx, to).await.unwrap(), 2);
    tx.commit().await.unwrap();
    assert_eq!((depth(&db, to).await, depth(&db, other).await), (0, 1));
    let events = db.query_raw("SELECT CAST(count(*) AS text) FROM events").await;
    assert_eq!(events, [["2"]], "the events stay");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_endpoint_is_due_with_its_first_delivery() {
    let db = TestDb::new().await;
    let (to, all) = due(&db, &[9, 3, 5]).await;
    register(&db, &endpoint(all[0].account)).await;
    let waiting = async || {
        deliveries::endpoints_with_pending(&mut db.db.read().await.unwrap()).await.unwrap()
    };
    assert_eq!(waiting().await, [(to, at(3))]);
    let found = claim(&db.db, delivery_claim(HERE, to, at(3), 9)).await;
    settle(&db, &found[0].0).await;
    assert_eq!(waiting().await, [(to, at(5))]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn concurrent_claims_never_return_the_same_delivery() {
    let db = TestDb::new().await;
    let (to, all) = due(&db, &[0; 60]).await;
    let mut claiming = JoinSet::new();
    for (own, node) in [(db.reopen().await, HERE), (db.reopen().await, THERE)] {
        claiming.spawn(async move {
            let mut here = Vec::new();
            for _ in 0..20 {
                here.extend(ids(&claim(&own, delivery_claim(node, to, at(1), 4)).await));
            }
            here
        });
    }
    let claimed: Vec<_> = claiming.join_all().await.into_iter().flatten().collect();
    assert_eq!(claimed.len(), all.len());
    assert_eq!(claimed.into_iter().collect::<HashSet<_>>().len(), all.len());
}
