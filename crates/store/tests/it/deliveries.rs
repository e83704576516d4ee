//! Deliveries: what is due is leased once, in order, and changed only by whoever holds the lease.

use crate::rows::{HERE, THERE, account, at, look};
use crate::support::{BEGIN, TestDb, on_both_engines};
use crate::webhook_rows::{
    claim, depth, endpoint, event, fresh, happened, insert, lined_up, registered, wish,
};
use heliograph_domain::event::Occurrence;
use heliograph_domain::id::{AccountId, EndpointId, EventId};
use heliograph_domain::lease::{DeliveryLease, LEASE};
use heliograph_domain::time::Timestamp;
use heliograph_store::deliveries::{self, Claim, Fresh};
use std::collections::HashSet;
use std::time::Duration;
use tokio::task::JoinSet;

on_both_engines!(deliveries:
    a_claim_gives_what_happened_and_the_right_to_tell_it,
    what_is_longest_due_is_told_first,
    a_claim_takes_no_more_than_there_is_room_for,
    what_is_not_due_waits,
    another_endpoints_work_is_left_alone,
    what_is_leased_is_not_claimed,
    a_lease_that_ran_out_is_claimed_again,
    what_is_handed_over_is_leased_from_the_start,
    the_urgent_goes_first_and_can_be_claimed_alone,
    whoever_lost_the_lease_settles_nothing,
    whoever_lost_the_lease_gives_nothing_back,
    what_is_given_back_is_due_again_with_its_tries,
    a_dead_nodes_leases_are_freed_and_nobody_elses,
    what_waits_for_one_endpoint_can_be_dropped,
    an_endpoint_waits_since_the_first_of_its_deliveries,
    nodes_that_claim_at_once_never_tell_the_same,
);

/// An account with an endpoint, and so many events for it, one due each second.
async fn due(db: &TestDb, seconds: &[u64]) -> (EndpointId, Vec<Occurrence>) {
    let ann = account(db, "ann@example.com", 0).await;
    let to = registered(db, &endpoint(ann)).await;
    let all: Vec<_> = seconds.iter().map(|_| event(db, ann, to, 0)).collect();
    happened(db, &all).await;
    for (event, seconds) in all.iter().zip(seconds) {
        lined_up(db, to, event, at(*seconds)).await;
    }
    (to, all)
}

fn ids(found: &[(DeliveryLease, Occurrence)]) -> Vec<EventId> {
    found.iter().map(|(lease, _)| lease.event).collect()
}

async fn settle(db: &TestDb, lease: &DeliveryLease) {
    let mut tx = db.db.write().await.unwrap();
    deliveries::settle(&mut tx, &[lease]).await.unwrap();
    tx.commit().await.unwrap();
}

async fn give_back(db: &TestDb, lease: &DeliveryLease, next: Timestamp, tries: u16) {
    let mut tx = db.db.write().await.unwrap();
    deliveries::give_back(&mut tx, &[(lease, next, tries)]).await.unwrap();
    tx.commit().await.unwrap();
}

async fn a_claim_gives_what_happened_and_the_right_to_tell_it(db: TestDb) {
    let (to, all) = due(&db, &[5]).await;
    let found = claim(&db.db, wish(HERE, to, at(5), 9)).await;
    let event = all[0].id;
    let lease =
        DeliveryLease { endpoint: to, due_at: at(5), event, owner: HERE, attempt: 1, tries: 0 };
    assert_eq!(found, [(lease, all[0].clone())]);
}

async fn what_is_longest_due_is_told_first(db: TestDb) {
    let (to, all) = due(&db, &[3, 1, 2, 1, 0]).await;
    let found = claim(&db.db, wish(HERE, to, at(9), 9)).await;
    assert_eq!(ids(&found), [4, 1, 3, 2, 0].map(|i: usize| all[i].id));
}

async fn a_claim_takes_no_more_than_there_is_room_for(db: TestDb) {
    let (to, all) = due(&db, &[0, 1, 2, 3, 4]).await;
    let mut found = Vec::new();
    for (limit, expected) in [(0, 0), (2, 2), (2, 2), (2, 1), (2, 0)] {
        let claimed = claim(&db.db, wish(HERE, to, at(9), limit)).await;
        assert_eq!(claimed.len(), expected);
        found.extend(ids(&claimed));
    }
    assert_eq!(found, all.iter().map(|e| e.id).collect::<Vec<_>>());
}

async fn what_is_not_due_waits(db: TestDb) {
    let (to, all) = due(&db, &[60]).await;
    assert_eq!(claim(&db.db, wish(HERE, to, at(59), 9)).await, []);
    assert_eq!(ids(&claim(&db.db, wish(HERE, to, at(60), 9)).await), [all[0].id]);
}

async fn another_endpoints_work_is_left_alone(db: TestDb) {
    let (to, all) = due(&db, &[0]).await;
    let other = registered(&db, &endpoint(all[0].account)).await;
    assert_eq!(claim(&db.db, wish(HERE, other, at(9), 9)).await, []);
    // One event, told to both.
    lined_up(&db, other, &all[0], BEGIN).await;
    assert_eq!(ids(&claim(&db.db, wish(HERE, other, at(9), 9)).await), [all[0].id]);
    assert_eq!(ids(&claim(&db.db, wish(HERE, to, at(9), 9)).await), [all[0].id]);
}

async fn what_is_leased_is_not_claimed(db: TestDb) {
    let (to, _) = due(&db, &[0]).await;
    assert_eq!(claim(&db.db, wish(HERE, to, at(0), 9)).await.len(), 1);
    for node in [HERE, THERE] {
        assert_eq!(claim(&db.db, wish(node, to, BEGIN.after(LEASE), 9)).await, []);
    }
}

async fn a_lease_that_ran_out_is_claimed_again(db: TestDb) {
    let (to, all) = due(&db, &[0]).await;
    let first = claim(&db.db, wish(HERE, to, at(0), 9)).await;
    let late = BEGIN.after(LEASE + Duration::from_millis(1));
    let second = claim(&db.db, wish(THERE, to, late, 9)).await;
    assert_eq!(ids(&second), [all[0].id]);
    assert_eq!((first[0].0.attempt, second[0].0.attempt), (1, 2));
    assert_eq!((second[0].0.owner, second[0].0.tries), (THERE, 0));
}

async fn what_is_handed_over_is_leased_from_the_start(db: TestDb) {
    let (to, all) = due(&db, &[]).await;
    assert_eq!(all, []);
    let told = event(&db, AccountId(1), to, 0);
    happened(&db, std::slice::from_ref(&told)).await;
    insert(&db, Fresh { owner: Some(HERE), ..fresh(to, &told, BEGIN) }).await;
    assert_eq!(claim(&db.db, wish(THERE, to, BEGIN.after(LEASE), 9)).await, []);
    // This is how it is known without having been claimed.
    let (event, owner) = (told.id, HERE);
    settle(&db, &DeliveryLease { endpoint: to, due_at: BEGIN, event, owner, attempt: 1, tries: 0 })
        .await;
    assert_eq!(depth(&db, to).await, 0);
}

async fn the_urgent_goes_first_and_can_be_claimed_alone(db: TestDb) {
    let (to, all) = due(&db, &[0, 0]).await;
    let test = Occurrence { test: true, subject: None, ..event(&db, all[0].account, to, 5) };
    happened(&db, std::slice::from_ref(&test)).await;
    lined_up(&db, to, &test, Timestamp(0)).await;
    let alone = Claim { due: Timestamp(0), ..wish(HERE, to, at(9), 9) };
    let found = claim(&db.db, alone).await;
    assert_eq!(found.iter().map(|(_, e)| e).collect::<Vec<_>>(), [&test]);
    assert_eq!(claim(&db.db, alone).await, []);
    give_back(&db, &found[0].0, Timestamp(0), 0).await;
    let found = claim(&db.db, wish(HERE, to, at(9), 9)).await;
    assert_eq!(ids(&found), [test.id, all[0].id, all[1].id]);
}

/// A lease, and what claims it anew after it ran out.
async fn lost(db: &TestDb) -> (EndpointId, DeliveryLease, DeliveryLease) {
    let (to, _) = due(db, &[0]).await;
    let lost = claim(&db.db, wish(HERE, to, at(0), 9)).await.pop().unwrap().0;
    let held = claim(&db.db, wish(THERE, to, at(61), 9)).await.pop().unwrap().0;
    (to, lost, held)
}

async fn whoever_lost_the_lease_settles_nothing(db: TestDb) {
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

async fn whoever_lost_the_lease_gives_nothing_back(db: TestDb) {
    let (to, lost, held) = lost(&db).await;
    give_back(&db, &lost, at(70), 1).await;
    assert_eq!(claim(&db.db, wish(HERE, to, at(100), 9)).await, [], "it is held");
    give_back(&db, &held, at(70), 1).await;
    assert_eq!(claim(&db.db, wish(HERE, to, at(69), 9)).await, []);
    assert_eq!(claim(&db.db, wish(HERE, to, at(70), 9)).await.len(), 1);
}

async fn what_is_given_back_is_due_again_with_its_tries(db: TestDb) {
    let (to, all) = due(&db, &[0]).await;
    let mut now = at(0);
    for tries in 0..3 {
        let found = claim(&db.db, wish(HERE, to, now, 9)).await;
        let (lease, told) = &found[0];
        assert_eq!((lease.tries, lease.attempt, lease.due_at), (tries, tries + 1, now));
        assert_eq!(told, &all[0], "the same event each time");
        now = now.after(Duration::from_secs(100));
        give_back(&db, lease, now, tries + 1).await;
        assert_eq!(depth(&db, to).await, 1);
    }
}

async fn a_dead_nodes_leases_are_freed_and_nobody_elses(db: TestDb) {
    let (to, all) = due(&db, &[0, 0, 0]).await;
    let mine = claim(&db.db, wish(HERE, to, at(0), 1)).await;
    let theirs = claim(&db.db, wish(THERE, to, at(0), 1)).await;
    assert_eq!([ids(&mine), ids(&theirs)], [[all[0].id], [all[1].id]]);
    let mut tx = db.db.write().await.unwrap();
    assert_eq!(deliveries::free(&mut tx, HERE).await.unwrap(), 1);
    tx.commit().await.unwrap();
    let found = claim(&db.db, wish(HERE, to, at(0), 9)).await;
    assert_eq!(ids(&found), [all[0].id, all[2].id]);
    assert_eq!(found[0].0.attempt, 2, "what its former self still says counts for nothing");
}

async fn what_waits_for_one_endpoint_can_be_dropped(db: TestDb) {
    let (to, all) = due(&db, &[0, 60]).await;
    let other = registered(&db, &endpoint(all[0].account)).await;
    lined_up(&db, other, &all[0], BEGIN).await;
    claim(&db.db, wish(HERE, to, at(0), 1)).await;
    let mut tx = db.db.write().await.unwrap();
    assert_eq!(deliveries::drop_for(&mut tx, to).await.unwrap(), 2);
    tx.commit().await.unwrap();
    assert_eq!((depth(&db, to).await, depth(&db, other).await), (0, 1));
    let events = look(&db, "SELECT CAST(count(*) AS text) FROM events").await;
    assert_eq!(events, [["2"]], "what happened stays");
}

async fn an_endpoint_waits_since_the_first_of_its_deliveries(db: TestDb) {
    let (to, all) = due(&db, &[9, 3, 5]).await;
    registered(&db, &endpoint(all[0].account)).await;
    let waiting = async || deliveries::waiting(&mut db.db.read().await.unwrap()).await.unwrap();
    assert_eq!(waiting().await, [(to, at(3))]);
    let found = claim(&db.db, wish(HERE, to, at(3), 9)).await;
    settle(&db, &found[0].0).await;
    assert_eq!(waiting().await, [(to, at(5))]);
}

async fn nodes_that_claim_at_once_never_tell_the_same(db: TestDb) {
    let (to, all) = due(&db, &[0; 60]).await;
    let mut claiming = JoinSet::new();
    for (own, node) in [(db.again().await, HERE), (db.again().await, THERE)] {
        claiming.spawn(async move {
            let mut mine = Vec::new();
            for _ in 0..20 {
                mine.extend(ids(&claim(&own, wish(node, to, at(1), 4)).await));
            }
            mine
        });
    }
    let claimed: Vec<_> = claiming.join_all().await.into_iter().flatten().collect();
    assert_eq!(claimed.len(), all.len());
    assert_eq!(claimed.into_iter().collect::<HashSet<_>>().len(), all.len());
}
