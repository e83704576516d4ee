//! The queue: what is due is leased once, in order, to whoever asks first.

use crate::rows::{ACME, ANN, BOB, HERE, THERE, at, claim, message, queued, wish};
use crate::support::{BEGIN, TestDb, on_both_engines};
use heliograph_domain::id::{AccountId, CarrierId, MessageId};
use heliograph_domain::lease::{LEASE, Lane, Lease, Leased};
use heliograph_domain::message::{Message, State, Status};
use heliograph_store::queue::{self, Claim};
use heliograph_store::{Db, messages};
use std::collections::HashSet;
use tokio::task::JoinSet;

on_both_engines!(queue:
    a_claim_gives_all_that_is_needed_to_submit,
    what_is_longest_due_comes_first,
    a_claim_takes_no_more_than_it_has_room_for,
    what_is_not_due_waits,
    another_carriers_work_is_left_alone,
    what_is_leased_is_not_claimed,
    a_lease_that_ran_out_is_claimed_in_doubt,
    a_message_can_be_leased_from_the_start,
    the_count_of_leases_starts_anew_at_its_end,
    what_has_ended_meanwhile_is_not_submitted,
    nodes_that_claim_at_once_never_get_the_same,
    depth_tells_how_much_waits_since_when,
);

const ONE: AccountId = AccountId(1);

fn ids(found: &[Leased]) -> Vec<MessageId> {
    found.iter().map(|l| l.lease.message).collect()
}

fn due(db: &TestDb, seconds: u64) -> Message {
    Message { scheduled_for: Some(at(seconds)), ..message(db, ONE) }
}

async fn a_claim_gives_all_that_is_needed_to_submit(db: TestDb) {
    let stored = Message {
        text: "Grüße 👋".to_owned(),
        reference: Some("r".to_owned()),
        recipient: BOB,
        ..due(&db, 5)
    };
    queued(&db, std::slice::from_ref(&stored)).await;
    let found = claim(&db.db, wish(HERE, at(5), 10)).await;
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
    assert_eq!(leased.parts_taken, [0; 0]);
}

async fn what_is_longest_due_comes_first(db: TestDb) {
    let all = [due(&db, 3), due(&db, 1), due(&db, 2), due(&db, 1), message(&db, ONE)];
    queued(&db, &all).await;
    let found = claim(&db.db, wish(HERE, at(9), 10)).await;
    assert_eq!(ids(&found), [4, 1, 3, 2, 0].map(|i: usize| all[i].id));
}

async fn a_claim_takes_no_more_than_it_has_room_for(db: TestDb) {
    let all: Vec<_> = (0..5).map(|i| due(&db, i)).collect();
    queued(&db, &all).await;
    let mut found = Vec::new();
    for (limit, expected) in [(0, 0), (2, 2), (2, 2), (2, 1), (2, 0)] {
        let claimed = claim(&db.db, wish(HERE, at(9), limit)).await;
        assert_eq!(claimed.len(), expected);
        found.extend(ids(&claimed));
    }
    assert_eq!(found, all.iter().map(|m| m.id).collect::<Vec<_>>());
}

async fn what_is_not_due_waits(db: TestDb) {
    let m = due(&db, 60);
    queued(&db, std::slice::from_ref(&m)).await;
    assert_eq!(ids(&claim(&db.db, wish(HERE, at(59), 10)).await), []);
    assert_eq!(ids(&claim(&db.db, wish(HERE, at(60), 10)).await), [m.id]);
}

async fn another_carriers_work_is_left_alone(db: TestDb) {
    let theirs = Message { carrier: CarrierId(2), ..message(&db, ONE) };
    queued(&db, std::slice::from_ref(&theirs)).await;
    assert_eq!(ids(&claim(&db.db, wish(HERE, at(1), 10)).await), []);
    let wish = Claim { carrier: CarrierId(2), ..wish(HERE, at(1), 10) };
    assert_eq!(ids(&claim(&db.db, wish).await), [theirs.id]);
}

async fn what_is_leased_is_not_claimed(db: TestDb) {
    queued(&db, &[message(&db, ONE)]).await;
    assert_eq!(claim(&db.db, wish(HERE, BEGIN, 10)).await.len(), 1);
    for node in [HERE, THERE] {
        for now in [BEGIN, BEGIN.after(LEASE)] {
            assert_eq!(ids(&claim(&db.db, wish(node, now, 10)).await), []);
        }
    }
}

async fn a_lease_that_ran_out_is_claimed_in_doubt(db: TestDb) {
    let m = message(&db, ONE);
    queued(&db, std::slice::from_ref(&m)).await;
    for (round, node) in (1u16..).zip([HERE, THERE, THERE, HERE]) {
        let found = claim(&db.db, wish(node, at(61 * u64::from(round)), 10)).await;
        assert_eq!(ids(&found), [m.id], "round {round}");
        assert_eq!((found[0].lease.owner, found[0].lease.attempt), (node, round));
        assert_eq!(found[0].in_doubt, round > 1);
        assert_eq!((found[0].tries, found[0].doubts), (0, 0));
    }
}

async fn a_message_can_be_leased_from_the_start(db: TestDb) {
    let (mine, free) = (message(&db, ONE), message(&db, ONE));
    let mut tx = db.db.write().await.unwrap();
    messages::insert(&mut tx, &[&mine, &free]).await.unwrap();
    queue::insert(&mut tx, &[(&mine, Some(HERE)), (&free, None)], at(60)).await.unwrap();
    tx.commit().await.unwrap();
    assert_eq!(ids(&claim(&db.db, wish(THERE, at(60), 10)).await), [free.id]);
    let lease = Lease {
        carrier: ACME,
        lane: Lane::SINGLE,
        due_at: BEGIN,
        message: mine.id,
        account: ONE,
        owner: HERE,
        attempt: 1,
    };
    let mut tx = db.db.write().await.unwrap();
    assert_eq!(queue::settle(&mut tx, &[&lease]).await.unwrap(), 1);
    tx.commit().await.unwrap();
}

async fn the_count_of_leases_starts_anew_at_its_end(db: TestDb) {
    queued(&db, &[message(&db, ONE)]).await;
    db.behind("UPDATE queue SET attempt = 32767").await;
    let found = claim(&db.db, wish(HERE, BEGIN, 1)).await;
    assert_eq!(found[0].lease.attempt, 0);
    let mut tx = db.db.write().await.unwrap();
    assert_eq!(queue::settle(&mut tx, &[&found[0].lease]).await.unwrap(), 1);
    tx.commit().await.unwrap();
}

/// A message of several parts can fail by the receipt of one, while another waits for its next try.
async fn what_has_ended_meanwhile_is_not_submitted(db: TestDb) {
    let (ended, alive) = (message(&db, ONE), message(&db, ONE));
    queued(&db, &[ended.clone(), alive.clone()]).await;
    let state = State { status: Status::Failed, ..State::accepted(1, ended.part_price) };
    let mut tx = db.db.write().await.unwrap();
    messages::save_states(&mut tx, &[(ONE, ended.id, &state)]).await.unwrap();
    tx.commit().await.unwrap();
    assert_eq!(ids(&claim(&db.db, wish(HERE, BEGIN, 10)).await), [alive.id]);
    let mut conn = db.db.read().await.unwrap();
    assert_eq!(queue::depth(&mut conn, ACME).await.unwrap(), (1, Some(BEGIN)));
}

/// Claims until nothing is left.
async fn claim_all(db: Db, wish: Claim) -> Vec<MessageId> {
    let mut all = Vec::new();
    loop {
        let found = claim(&db, wish).await;
        if found.is_empty() {
            return all;
        }
        all.extend(ids(&found));
    }
}

async fn nodes_that_claim_at_once_never_get_the_same(db: TestDb) {
    let stored: Vec<_> = (0..400).map(|i| due(&db, i % 7)).collect();
    queued(&db, &stored).await;
    let mut nodes = JoinSet::new();
    for (node, own) in [(HERE, db.db.clone()), (THERE, db.again().await)] {
        for limit in [3, 5, 11] {
            nodes.spawn(claim_all(own.clone(), wish(node, at(9), limit)));
        }
    }
    let claimed: Vec<_> = nodes.join_all().await.into_iter().flatten().collect();
    assert_eq!(claimed.len(), 400);
    let different: HashSet<_> = claimed.into_iter().collect();
    assert_eq!(different, stored.iter().map(|m| m.id).collect());
}

async fn depth_tells_how_much_waits_since_when(db: TestDb) {
    let mut conn = db.db.read().await.unwrap();
    assert_eq!(queue::depth(&mut conn, ACME).await.unwrap(), (0, None));
    drop(conn);
    let other = Message { carrier: CarrierId(2), recipient: ANN, ..message(&db, ONE) };
    queued(&db, &[due(&db, 7), due(&db, 4), other]).await;
    claim(&db.db, wish(HERE, at(4), 1)).await;
    let mut conn = db.db.read().await.unwrap();
    assert_eq!(queue::depth(&mut conn, ACME).await.unwrap(), (2, Some(at(4))));
    assert_eq!(queue::depth(&mut conn, CarrierId(2)).await.unwrap(), (1, Some(BEGIN)));
}
