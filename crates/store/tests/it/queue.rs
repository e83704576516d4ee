//! Tests of the queue: due rows are leased once, in order, to the first node that claims them.

use crate::fixtures::{ACME, ANN, BOB, HERE, THERE, at, claim, message, queue_claim, queued};
use heliograph_domain::id::{AccountId, CarrierId, MessageId};
use heliograph_domain::lease::{LEASE, Lane, Lease, LeasedMessage};
use heliograph_domain::message::{Message, MessageState, MessageStatus};
use heliograph_store::Db;
use heliograph_store::messaging::messages;
use heliograph_store::messaging::queue::{self, QueueClaim};
use heliograph_testing::{START, TestDb};
use std::collections::HashSet;
use tokio::task::JoinSet;

const ONE: AccountId = AccountId(1);

fn ids(found: &[LeasedMessage]) -> Vec<MessageId> {
    found.iter().map(|l| l.lease.message).collect()
}

fn due(db: &TestDb, seconds: u64) -> Message {
    Message { scheduled_for: Some(at(seconds)), ..message(db, ONE) }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_claim_returns_all_that_a_submission_needs() {
    let db = TestDb::new().await;
    let stored = Message {
        text: "Grüße 👋".to_owned(),
        reference: Some("r".to_owned()),
        recipient: BOB,
        ..due(&db, 5)
    };
    queued(&db, std::slice::from_ref(&stored)).await;
    let found = claim(&db.db, queue_claim(HERE, at(5), 10)).await;
    assert_eq!(found.len(), 1);
    let leased = &found[0];
    let lease = Lease {
        carrier: ACME,
        lane: Lane::SINGLE,
        due_at: at(5),
        message: stored.id,
        account: ONE,
        owner: HERE,
        attempt: 1,
    };
    assert_eq!((&leased.lease, &*leased.message), (&lease, &stored));
    assert_eq!((leased.tries, leased.doubts, leased.in_doubt), (0, 0, false));
    assert_eq!(leased.accepted_parts, [0; 0]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_longest_due_row_comes_first() {
    let db = TestDb::new().await;
    let all = [due(&db, 3), due(&db, 1), due(&db, 2), due(&db, 1), message(&db, ONE)];
    queued(&db, &all).await;
    let found = claim(&db.db, queue_claim(HERE, at(9), 10)).await;
    assert_eq!(ids(&found), [4, 1, 3, 2, 0].map(|i: usize| all[i].id));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_claim_respects_its_limit() {
    let db = TestDb::new().await;
    let all: Vec<_> = (0..5).map(|i| due(&db, i)).collect();
    queued(&db, &all).await;
    let mut found = Vec::new();
    for (limit, expected) in [(0, 0), (2, 2), (2, 2), (2, 1), (2, 0)] {
        let claimed = claim(&db.db, queue_claim(HERE, at(9), limit)).await;
        assert_eq!(claimed.len(), expected);
        found.extend(ids(&claimed));
    }
    assert_eq!(found, all.iter().map(|m| m.id).collect::<Vec<_>>());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rows_that_are_not_due_are_not_claimed() {
    let db = TestDb::new().await;
    let m = due(&db, 60);
    queued(&db, std::slice::from_ref(&m)).await;
    assert_eq!(ids(&claim(&db.db, queue_claim(HERE, at(59), 10)).await), []);
    assert_eq!(ids(&claim(&db.db, queue_claim(HERE, at(60), 10)).await), [m.id]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rows_of_another_carrier_are_not_claimed() {
    let db = TestDb::new().await;
    let other = Message { carrier: CarrierId(2), ..message(&db, ONE) };
    queued(&db, std::slice::from_ref(&other)).await;
    assert_eq!(ids(&claim(&db.db, queue_claim(HERE, at(1), 10)).await), []);
    let wanted = QueueClaim { carrier: CarrierId(2), ..queue_claim(HERE, at(1), 10) };
    assert_eq!(ids(&claim(&db.db, wanted).await), [other.id]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn leased_rows_are_not_claimed() {
    let db = TestDb::new().await;
    queued(&db, &[message(&db, ONE)]).await;
    assert_eq!(claim(&db.db, queue_claim(HERE, START, 10)).await.len(), 1);
    for node in [HERE, THERE] {
        for now in [START, START.after(LEASE)] {
            assert_eq!(ids(&claim(&db.db, queue_claim(node, now, 10)).await), []);
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_expired_lease_is_claimed_in_doubt() {
    let db = TestDb::new().await;
    let m = message(&db, ONE);
    queued(&db, std::slice::from_ref(&m)).await;
    for (round, node) in (1u16..).zip([HERE, THERE, THERE, HERE]) {
        let found = claim(&db.db, queue_claim(node, at(61 * u64::from(round)), 10)).await;
        assert_eq!(ids(&found), [m.id], "round {round}");
        assert_eq!((found[0].lease.owner, found[0].lease.attempt), (node, round));
        assert_eq!(found[0].in_doubt, round > 1);
        assert_eq!((found[0].tries, found[0].doubts), (0, 0));
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_message_can_be_leased_from_the_start() {
    let db = TestDb::new().await;
    let (leased, free) = (message(&db, ONE), message(&db, ONE));
    let mut tx = db.db.write().await.unwrap();
    messages::insert(&mut tx, &[&leased, &free]).await.unwrap();
    queue::insert(&mut tx, &[(&leased, Some(HERE)), (&free, None)], at(60)).await.unwrap();
    tx.commit().await.unwrap();
    assert_eq!(ids(&claim(&db.db, queue_claim(THERE, at(60), 10)).await), [free.id]);
    let lease = Lease {
        carrier: ACME,
        lane: Lane::SINGLE,
        due_at: START,
        message: leased.id,
        account: ONE,
        owner: HERE,
        attempt: 1,
    };
    let mut tx = db.db.write().await.unwrap();
    assert_eq!(queue::settle(&mut tx, &[&lease]).await.unwrap(), 1);
    tx.commit().await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_lease_counter_wraps_around() {
    let db = TestDb::new().await;
    queued(&db, &[message(&db, ONE)]).await;
    db.execute_raw("UPDATE queue SET attempt = 32767").await;
    let found = claim(&db.db, queue_claim(HERE, START, 1)).await;
    assert_eq!(found[0].lease.attempt, 0);
    let mut tx = db.db.write().await.unwrap();
    assert_eq!(queue::settle(&mut tx, &[&found[0].lease]).await.unwrap(), 1);
    tx.commit().await.unwrap();
}

/// A message of several parts can fail by the receipt of one part while another part waits for its
/// next try.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_message_that_has_ended_is_not_submitted() {
    let db = TestDb::new().await;
    let (ended, alive) = (message(&db, ONE), message(&db, ONE));
    queued(&db, &[ended.clone(), alive.clone()]).await;
    let state = MessageState {
        status: MessageStatus::Failed,
        ..MessageState::accepted(1, ended.part_price)
    };
    let mut tx = db.db.write().await.unwrap();
    messages::save_states(&mut tx, &[(ONE, ended.id, &state)]).await.unwrap();
    tx.commit().await.unwrap();
    assert_eq!(ids(&claim(&db.db, queue_claim(HERE, START, 10)).await), [alive.id]);
    let mut conn = db.db.read().await.unwrap();
    assert_eq!(queue::depth(&mut conn, ACME).await.unwrap(), (1, Some(START)));
}

/// Claims until no row is left.
async fn claim_all(db: Db, wanted: QueueClaim) -> Vec<MessageId> {
    let mut all = Vec::new();
    loop {
        let found = claim(&db, wanted).await;
        if found.is_empty() {
            return all;
        }
        all.extend(ids(&found));
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn concurrent_claims_never_return_the_same_row() {
    let db = TestDb::new().await;
    let stored: Vec<_> = (0..400).map(|i| due(&db, i % 7)).collect();
    queued(&db, &stored).await;
    let mut nodes = JoinSet::new();
    for (node, own) in [(HERE, db.db.clone()), (THERE, db.reopen().await)] {
        for limit in [3, 5, 11] {
            nodes.spawn(claim_all(own.clone(), queue_claim(node, at(9), limit)));
        }
    }
    let claimed: Vec<_> = nodes.join_all().await.into_iter().flatten().collect();
    assert_eq!(claimed.len(), 400);
    let different: HashSet<_> = claimed.into_iter().collect();
    assert_eq!(different, stored.iter().map(|m| m.id).collect());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn depth_returns_the_count_and_the_oldest_due_time() {
    let db = TestDb::new().await;
    let mut conn = db.db.read().await.unwrap();
    assert_eq!(queue::depth(&mut conn, ACME).await.unwrap(), (0, None));
    drop(conn);
    let other = Message { carrier: CarrierId(2), recipient: ANN, ..message(&db, ONE) };
    queued(&db, &[due(&db, 7), due(&db, 4), other]).await;
    claim(&db.db, queue_claim(HERE, at(4), 1)).await;
    let mut conn = db.db.read().await.unwrap();
    assert_eq!(queue::depth(&mut conn, ACME).await.unwrap(), (2, Some(at(4))));
    assert_eq!(queue::depth(&mut conn, CarrierId(2)).await.unwrap(), (1, Some(START)));
}
