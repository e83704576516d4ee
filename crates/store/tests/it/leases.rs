//! Tests of leases: only the holder of a lease changes its queue row, and only while the lease
//! lasts.

use crate::fixtures::{ACME, HERE, THERE, at, claim, message, queue_claim, queued};
use heliograph_domain::id::{AccountId, CarrierId, NodeId};
use heliograph_domain::lease::{LEASE, Lease, LeasedMessage};
use heliograph_domain::message::Message;
use heliograph_domain::time::Timestamp;
use heliograph_store::messaging::queue::{self, ExpiredEntry, LeaseRelease, QueueClaim};
use heliograph_store::{Db, StoreResult};
use heliograph_testing::{START, TestDb};

const ONE: AccountId = AccountId(1);

async fn settle(db: &Db, leases: &[&Lease]) -> u64 {
    let mut tx = db.write().await.unwrap();
    let n = queue::settle(&mut tx, leases).await.unwrap();
    tx.commit().await.unwrap();
    n
}

async fn release(db: &Db, back: &[LeaseRelease<'_>]) -> u64 {
    let mut tx = db.write().await.unwrap();
    let n = queue::release(&mut tx, back).await.unwrap();
    tx.commit().await.unwrap();
    n
}

async fn renew(db: &Db, leases: &[Lease], until: Timestamp) -> u64 {
    let mut tx = db.write().await.unwrap();
    let n = queue::renew(&mut tx, leases, until).await.unwrap();
    tx.commit().await.unwrap();
    n
}

async fn free(db: &Db, node: NodeId) -> StoreResult<u64> {
    let mut tx = db.write().await?;
    let n = queue::release_for_node(&mut tx, node).await?;
    tx.commit().await?;
    Ok(n)
}

async fn depth(db: &Db) -> i64 {
    queue::depth(&mut db.read().await.unwrap(), ACME).await.unwrap().0
}

/// Returns one leased message.
async fn leased(db: &TestDb) -> LeasedMessage {
    queued(db, &[message(db, ONE)]).await;
    claim(&db.db, queue_claim(HERE, START, 1)).await.pop().unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_settled_row_is_deleted() {
    let db = TestDb::new().await;
    let lease = leased(&db).await.lease;
    assert_eq!(settle(&db.db, &[&lease]).await, 1);
    assert_eq!(depth(&db.db).await, 0);
    assert_eq!(settle(&db.db, &[&lease]).await, 0);
    assert_eq!(settle(&db.db, &[]).await, 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_released_row_is_due_later() {
    let db = TestDb::new().await;
    let mut held = leased(&db).await;
    let (mut tries, mut doubts) = (0, 0);
    for (tried, doubted) in [(true, false), (false, false), (true, true)] {
        let due_at = Timestamp(held.lease.due_at.0 + 5_000);
        let back =
            LeaseRelease { lease: &held.lease, due_at, count_try: tried, count_doubt: doubted };
        assert_eq!(release(&db.db, &[back]).await, 1);
        let early = queue_claim(THERE, Timestamp(due_at.0 - 1), 1);
        assert_eq!(claim(&db.db, early).await.len(), 0);
        let attempt = held.lease.attempt + 1;
        held = claim(&db.db, queue_claim(THERE, due_at, 1)).await.pop().unwrap();
        (tries, doubts) = (tries + u16::from(tried), doubts + u16::from(doubted));
        assert_eq!((held.tries, held.doubts, held.in_doubt), (tries, doubts, false));
        assert_eq!((held.lease.attempt, held.lease.due_at), (attempt, due_at));
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_renewed_lease_ends_later() {
    let db = TestDb::new().await;
    let lease = leased(&db).await.lease;
    assert_eq!(renew(&db.db, std::slice::from_ref(&lease), at(200)).await, 1);
    assert_eq!(claim(&db.db, queue_claim(THERE, at(200), 1)).await.len(), 0);
    assert_eq!(claim(&db.db, queue_claim(THERE, at(201), 1)).await.len(), 1);
    assert_eq!(renew(&db.db, &[lease], at(900)).await, 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_stale_lease_changes_nothing() {
    let db = TestDb::new().await;
    let old = leased(&db).await.lease;
    let now = at(61);
    let new = claim(&db.db, queue_claim(HERE, now, 1)).await.pop().unwrap().lease;
    let stale = [
        old,
        Lease { owner: THERE, ..new.clone() },
        Lease { attempt: new.attempt + 1, ..new.clone() },
        Lease { due_at: at(1), ..new.clone() },
        Lease { carrier: CarrierId(2), ..new.clone() },
    ];
    for lease in &stale {
        let back = LeaseRelease { lease, due_at: START, count_try: true, count_doubt: true };
        assert_eq!(release(&db.db, &[back]).await, 0, "{lease:?}");
        assert_eq!(settle(&db.db, &[lease]).await, 0, "{lease:?}");
    }
    assert_eq!(renew(&db.db, &stale, at(900)).await, 0);
    // The row is unchanged: held until the end of the newer lease, then in doubt, without a count.
    assert_eq!(claim(&db.db, queue_claim(THERE, now.after(LEASE), 1)).await.len(), 0);
    let again = claim(&db.db, queue_claim(THERE, at(122), 1)).await.pop().unwrap();
    assert_eq!((again.tries, again.doubts, again.in_doubt), (0, 0, true));
    assert_eq!(again.lease.attempt, new.attempt + 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn only_the_right_rows_of_many_change() {
    let db = TestDb::new().await;
    queued(&db, &(0..6).map(|_| message(&db, ONE)).collect::<Vec<_>>()).await;
    let held = claim(&db.db, queue_claim(HERE, START, 6)).await;
    let lease = |i: usize| &held[i].lease;
    let stale = Lease { owner: THERE, ..lease(1).clone() };
    assert_eq!(settle(&db.db, &[lease(0), &stale, lease(2)]).await, 2);
    let back = |i, seconds, tried, doubted| LeaseRelease {
        lease: lease(i),
        due_at: at(seconds),
        count_try: tried,
        count_doubt: doubted,
    };
    assert_eq!(release(&db.db, &[back(3, 9, true, false), back(4, 3, false, true)]).await, 2);
    assert_eq!(renew(&db.db, &[lease(5).clone(), stale.clone()], at(500)).await, 1);
    let found = claim(&db.db, queue_claim(THERE, at(400), 9)).await;
    let seen: Vec<_> =
        found.iter().map(|l| (l.lease.message, l.tries, l.doubts, l.in_doubt)).collect();
    let expected = [(1, 0, 0, true), (4, 0, 1, false), (3, 1, 0, false)];
    assert_eq!(seen, expected.map(|(i, t, d, doubt)| (lease(i).message, t, d, doubt)));
    assert_eq!(depth(&db.db).await, 4);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_starting_node_releases_its_former_leases() {
    let db = TestDb::new().await;
    queued(&db, &(0..4).map(|_| message(&db, ONE)).collect::<Vec<_>>()).await;
    let here = claim(&db.db, queue_claim(HERE, START, 2)).await;
    let there = claim(&db.db, queue_claim(THERE, START, 1)).await;
    assert_eq!(free(&db.db, HERE).await.unwrap(), 2);
    assert_eq!(free(&db.db, HERE).await.unwrap(), 0);
    // The former lease is fenced.
    assert_eq!(settle(&db.db, &[&here[0].lease]).await, 0);
    let found = claim(&db.db, queue_claim(HERE, START, 9)).await;
    let seen: Vec<_> = found.iter().map(|l| (l.lease.message, l.in_doubt)).collect();
    assert_eq!(seen[..2], [(here[0].lease.message, true), (here[1].lease.message, true)]);
    assert_eq!((seen.len(), seen[2].1), (3, false));
    assert_eq!(settle(&db.db, &[&there[0].lease]).await, 1);
}

async fn expired(db: &Db, now: Timestamp, limit: i64) -> Vec<ExpiredEntry> {
    queue::expired(&mut db.read().await.unwrap(), now, limit).await.unwrap()
}

async fn expire(db: &Db, rows: &[ExpiredEntry]) -> usize {
    expire_at(db, rows, START).await
}

async fn expire_at(db: &Db, rows: &[ExpiredEntry], now: Timestamp) -> usize {
    let mut tx = db.write().await.unwrap();
    let keys = queue::expire(&mut tx, rows, now).await.unwrap();
    tx.commit().await.unwrap();
    assert!(keys.iter().all(|(account, _)| *account == ONE));
    keys.len()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn expired_free_rows_are_found() {
    let db = TestDb::new().await;
    let until = |seconds| Message { expires_at: at(seconds), ..message(&db, ONE) };
    let all = [until(10), until(10), until(11), until(9), until(10)];
    queued(&db, &all).await;
    claim(&db.db, queue_claim(HERE, START, 1)).await;
    assert_eq!(expired(&db.db, at(8), 10).await, []);
    let found = expired(&db.db, at(10), 10).await;
    assert_eq!(found.len(), 3);
    assert_eq!(expired(&db.db, at(10), 2).await.len(), 2);
    assert_eq!(expire(&db.db, &found).await, 3);
    assert_eq!(expire(&db.db, &found).await, 0);
    assert_eq!(depth(&db.db).await, 2);
    assert_eq!(expired(&db.db, at(10), 10).await, []);
    assert_eq!(expired(&db.db, at(11), 10).await.len(), 1);
}

/// A crashed node cannot report that its messages have expired.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rows_with_an_expired_lease_expire_too() {
    let db = TestDb::new().await;
    queued(&db, &[Message { expires_at: at(10), ..message(&db, ONE) }]).await;
    let until = at(60);
    let held =
        claim(&db.db, QueueClaim { until, ..queue_claim(HERE, START, 1) }).await.pop().unwrap();
    assert_eq!(expired(&db.db, until, 10).await, []);
    let found = expired(&db.db, at(61), 10).await;
    assert_eq!(found.len(), 1);
    assert_eq!(expire_at(&db.db, &found, until).await, 0);
    assert_eq!(renew(&db.db, std::slice::from_ref(&held.lease), at(120)).await, 1);
    assert_eq!(expire_at(&db.db, &found, at(61)).await, 0);
    assert_eq!(expire_at(&db.db, &found, at(121)).await, 1);
    assert_eq!(settle(&db.db, &[&held.lease]).await, 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_row_that_was_claimed_meanwhile_does_not_expire() {
    let db = TestDb::new().await;
    queued(&db, &[message(&db, ONE)]).await;
    let found = expired(&db.db, at(3_600), 10).await;
    let held = claim(&db.db, queue_claim(HERE, at(3_600), 1)).await.pop().unwrap();
    assert_eq!(expire(&db.db, &found).await, 0);
    // A release for another due time makes another row.
    let back = LeaseRelease {
        lease: &held.lease,
        due_at: at(3_601),
        count_try: false,
        count_doubt: false,
    };
    assert_eq!(release(&db.db, &[back]).await, 1);
    assert_eq!(expire(&db.db, &found).await, 0);
    assert_eq!(expire(&db.db, &expired(&db.db, at(3_600), 10).await).await, 1);
}
