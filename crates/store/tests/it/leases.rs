//! Leases: only their holder changes a row of the queue, and only as long as it holds them.

use crate::rows::{ACME, HERE, THERE, at, claim, message, queued, wish};
use crate::support::{BEGIN, TestDb, on_both_engines};
use heliograph_domain::id::{AccountId, CarrierId, NodeId};
use heliograph_domain::lease::{LEASE, Lease, Leased};
use heliograph_domain::message::Message;
use heliograph_domain::time::Timestamp;
use heliograph_store::queue::{self, Claim, Expired, GiveBack};
use heliograph_store::{Db, Result};

on_both_engines!(leases:
    what_is_settled_is_gone,
    what_is_given_back_is_tried_later,
    a_renewed_lease_holds_for_longer,
    a_stale_lease_changes_nothing,
    only_the_right_rows_of_many_change,
    a_node_that_starts_frees_what_its_former_self_held,
    what_has_expired_and_is_free_is_found,
    what_a_lapsed_lease_holds_expires_too,
    what_is_claimed_meanwhile_does_not_expire,
);

const ONE: AccountId = AccountId(1);

async fn settle(db: &Db, leases: &[&Lease]) -> u64 {
    let mut tx = db.write().await.unwrap();
    let n = queue::settle(&mut tx, leases).await.unwrap();
    tx.commit().await.unwrap();
    n
}

async fn give_back(db: &Db, back: &[GiveBack<'_>]) -> u64 {
    let mut tx = db.write().await.unwrap();
    let n = queue::give_back(&mut tx, back).await.unwrap();
    tx.commit().await.unwrap();
    n
}

async fn renew(db: &Db, leases: &[Lease], until: Timestamp) -> u64 {
    let mut tx = db.write().await.unwrap();
    let n = queue::renew(&mut tx, leases, until).await.unwrap();
    tx.commit().await.unwrap();
    n
}

async fn free(db: &Db, node: NodeId) -> Result<u64> {
    let mut tx = db.write().await?;
    let n = queue::free(&mut tx, node).await?;
    tx.commit().await?;
    Ok(n)
}

async fn depth(db: &Db) -> i64 {
    queue::depth(&mut db.read().await.unwrap(), ACME).await.unwrap().0
}

/// One message, leased.
async fn leased(db: &TestDb) -> Leased {
    queued(db, &[message(db, ONE)]).await;
    claim(&db.db, wish(HERE, BEGIN, 1)).await.pop().unwrap()
}

async fn what_is_settled_is_gone(db: TestDb) {
    let lease = leased(&db).await.lease;
    assert_eq!(settle(&db.db, &[&lease]).await, 1);
    assert_eq!(depth(&db.db).await, 0);
    assert_eq!(settle(&db.db, &[&lease]).await, 0);
    assert_eq!(settle(&db.db, &[]).await, 0);
}

async fn what_is_given_back_is_tried_later(db: TestDb) {
    let mut held = leased(&db).await;
    let (mut tries, mut doubts) = (0, 0);
    for (tried, doubted) in [(true, false), (false, false), (true, true)] {
        let due_at = Timestamp(held.lease.due_at.0 + 5_000);
        let back = GiveBack { lease: &held.lease, due_at, tried, doubted };
        assert_eq!(give_back(&db.db, &[back]).await, 1);
        let early = wish(THERE, Timestamp(due_at.0 - 1), 1);
        assert_eq!(claim(&db.db, early).await.len(), 0);
        let attempt = held.lease.attempt + 1;
        held = claim(&db.db, wish(THERE, due_at, 1)).await.pop().unwrap();
        (tries, doubts) = (tries + u16::from(tried), doubts + u16::from(doubted));
        assert_eq!((held.tries, held.doubts, held.in_doubt), (tries, doubts, false));
        assert_eq!((held.lease.attempt, held.lease.due_at), (attempt, due_at));
    }
}

async fn a_renewed_lease_holds_for_longer(db: TestDb) {
    let lease = leased(&db).await.lease;
    assert_eq!(renew(&db.db, std::slice::from_ref(&lease), at(200)).await, 1);
    assert_eq!(claim(&db.db, wish(THERE, at(200), 1)).await.len(), 0);
    assert_eq!(claim(&db.db, wish(THERE, at(201), 1)).await.len(), 1);
    assert_eq!(renew(&db.db, &[lease], at(900)).await, 0);
}

async fn a_stale_lease_changes_nothing(db: TestDb) {
    let old = leased(&db).await.lease;
    let now = at(61);
    let new = claim(&db.db, wish(HERE, now, 1)).await.pop().unwrap().lease;
    let stale = [
        old,
        Lease { owner: THERE, ..new.clone() },
        Lease { attempt: new.attempt + 1, ..new.clone() },
        Lease { due_at: at(1), ..new.clone() },
        Lease { carrier: CarrierId(2), ..new.clone() },
    ];
    for lease in &stale {
        let back = GiveBack { lease, due_at: BEGIN, tried: true, doubted: true };
        assert_eq!(give_back(&db.db, &[back]).await, 0, "{lease:?}");
        assert_eq!(settle(&db.db, &[lease]).await, 0, "{lease:?}");
    }
    assert_eq!(renew(&db.db, &stale, at(900)).await, 0);
    // The row is as it was: held until the end of the newer lease, then in doubt, nothing counted.
    assert_eq!(claim(&db.db, wish(THERE, now.after(LEASE), 1)).await.len(), 0);
    let again = claim(&db.db, wish(THERE, at(122), 1)).await.pop().unwrap();
    assert_eq!((again.tries, again.doubts, again.in_doubt), (0, 0, true));
    assert_eq!(again.lease.attempt, new.attempt + 1);
}

async fn only_the_right_rows_of_many_change(db: TestDb) {
    queued(&db, &(0..6).map(|_| message(&db, ONE)).collect::<Vec<_>>()).await;
    let held = claim(&db.db, wish(HERE, BEGIN, 6)).await;
    let lease = |i: usize| &held[i].lease;
    let stale = Lease { owner: THERE, ..lease(1).clone() };
    assert_eq!(settle(&db.db, &[lease(0), &stale, lease(2)]).await, 2);
    let back = |i, seconds, tried, doubted| GiveBack {
        lease: lease(i),
        due_at: at(seconds),
        tried,
        doubted,
    };
    assert_eq!(give_back(&db.db, &[back(3, 9, true, false), back(4, 3, false, true)]).await, 2);
    assert_eq!(renew(&db.db, &[lease(5).clone(), stale.clone()], at(500)).await, 1);
    let found = claim(&db.db, wish(THERE, at(400), 9)).await;
    let seen: Vec<_> =
        found.iter().map(|l| (l.lease.message, l.tries, l.doubts, l.in_doubt)).collect();
    let expected = [(1, 0, 0, true), (4, 0, 1, false), (3, 1, 0, false)];
    assert_eq!(seen, expected.map(|(i, t, d, doubt)| (lease(i).message, t, d, doubt)));
    assert_eq!(depth(&db.db).await, 4);
}

async fn a_node_that_starts_frees_what_its_former_self_held(db: TestDb) {
    queued(&db, &(0..4).map(|_| message(&db, ONE)).collect::<Vec<_>>()).await;
    let mine = claim(&db.db, wish(HERE, BEGIN, 2)).await;
    let theirs = claim(&db.db, wish(THERE, BEGIN, 1)).await;
    assert_eq!(free(&db.db, HERE).await.unwrap(), 2);
    assert_eq!(free(&db.db, HERE).await.unwrap(), 0);
    // What the former self said too late is not heard.
    assert_eq!(settle(&db.db, &[&mine[0].lease]).await, 0);
    let found = claim(&db.db, wish(HERE, BEGIN, 9)).await;
    let seen: Vec<_> = found.iter().map(|l| (l.lease.message, l.in_doubt)).collect();
    assert_eq!(seen[..2], [(mine[0].lease.message, true), (mine[1].lease.message, true)]);
    assert_eq!((seen.len(), seen[2].1), (3, false));
    assert_eq!(settle(&db.db, &[&theirs[0].lease]).await, 1);
}

async fn expired(db: &Db, now: Timestamp, limit: i64) -> Vec<Expired> {
    queue::expired(&mut db.read().await.unwrap(), now, limit).await.unwrap()
}

async fn expire(db: &Db, rows: &[Expired]) -> usize {
    expire_at(db, rows, BEGIN).await
}

async fn expire_at(db: &Db, rows: &[Expired], now: Timestamp) -> usize {
    let mut tx = db.write().await.unwrap();
    let keys = queue::expire(&mut tx, rows, now).await.unwrap();
    tx.commit().await.unwrap();
    assert!(keys.iter().all(|(account, _)| *account == ONE));
    keys.len()
}

async fn what_has_expired_and_is_free_is_found(db: TestDb) {
    let until = |seconds| Message { expires_at: at(seconds), ..message(&db, ONE) };
    let all = [until(10), until(10), until(11), until(9), until(10)];
    queued(&db, &all).await;
    claim(&db.db, wish(HERE, BEGIN, 1)).await;
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

/// A node that died can't say that its messages have expired.
async fn what_a_lapsed_lease_holds_expires_too(db: TestDb) {
    queued(&db, &[Message { expires_at: at(10), ..message(&db, ONE) }]).await;
    let until = at(60);
    let held = claim(&db.db, Claim { until, ..wish(HERE, BEGIN, 1) }).await.pop().unwrap();
    assert_eq!(expired(&db.db, until, 10).await, []);
    let found = expired(&db.db, at(61), 10).await;
    assert_eq!(found.len(), 1);
    assert_eq!(expire_at(&db.db, &found, until).await, 0);
    assert_eq!(renew(&db.db, std::slice::from_ref(&held.lease), at(120)).await, 1);
    assert_eq!(expire_at(&db.db, &found, at(61)).await, 0);
    assert_eq!(expire_at(&db.db, &found, at(121)).await, 1);
    assert_eq!(settle(&db.db, &[&held.lease]).await, 0);
}

async fn what_is_claimed_meanwhile_does_not_expire(db: TestDb) {
    queued(&db, &[message(&db, ONE)]).await;
    let found = expired(&db.db, at(3_600), 10).await;
    let held = claim(&db.db, wish(HERE, at(3_600), 1)).await.pop().unwrap();
    assert_eq!(expire(&db.db, &found).await, 0);
    // Given back for another due time it is another row.
    let back = GiveBack { lease: &held.lease, due_at: at(3_601), tried: false, doubted: false };
    assert_eq!(give_back(&db.db, &[back]).await, 1);
    assert_eq!(expire(&db.db, &found).await, 0);
    assert_eq!(expire(&db.db, &expired(&db.db, at(3_600), 10).await).await, 1);
}
