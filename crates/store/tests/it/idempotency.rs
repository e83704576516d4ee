//! Tests of idempotency keys: the first request with a key counts, as long as the key is stored.

use crate::fixtures::at;
use heliograph_domain::account::Mode;
use heliograph_domain::id::{AccountId, Ids};
use heliograph_domain::time::Timestamp;
use heliograph_store::Db;
use heliograph_store::idempotency::{self, IdempotencyRecord, SEND_SMS, ScopedKey};
use heliograph_testing::{START, TestDb};
use std::time::Duration;
use tokio::time::timeout;
use uuid::Uuid;

fn key(text: &str) -> ScopedKey {
    ScopedKey { account: AccountId(1), mode: Mode::Live, route: SEND_SMS, key: text.to_owned() }
}

async fn insert(db: &Db, keys: &[(&ScopedKey, u8, Uuid)], now: Timestamp) -> Vec<Uuid> {
    let fingerprints: Vec<_> = keys.iter().map(|(_, f, _)| [*f; 32]).collect();
    let rows = keys.iter().zip(&fingerprints);
    let rows: Vec<_> = rows.map(|((key, _, made), f)| (*key, f, *made)).collect();
    let mut tx = db.write().await.unwrap();
    let mut fresh = idempotency::insert(&mut tx, &rows, now).await.unwrap();
    tx.commit().await.unwrap();
    fresh.sort();
    fresh
}

async fn find(db: &Db, key: &ScopedKey) -> Option<IdempotencyRecord> {
    idempotency::find(&mut db.read().await.unwrap(), key).await.unwrap()
}

fn record(fingerprint: u8, made: Uuid) -> IdempotencyRecord {
    IdempotencyRecord { fingerprint: vec![fingerprint; 32], resource: made, response: None }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_new_key_is_stored() {
    let db = TestDb::new().await;
    let [a, b] = [db.ids.next(START), db.ids.next(START)];
    let long = "x".repeat(255);
    let rows = [(&key("a-1"), 1, a), (&key(&long), 2, b)];
    assert_eq!(insert(&db.db, &rows, START).await, [a, b]);
    assert_eq!(find(&db.db, &key("a-1")).await, Some(record(1, a)));
    assert_eq!(find(&db.db, &key(&long)).await, Some(record(2, b)));
    assert_eq!(find(&db.db, &key("A-1")).await, None);
    assert!(insert(&db.db, &[], START).await.is_empty());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_of_two_equal_keys_in_a_batch_is_new() {
    let db = TestDb::new().await;
    let [a, b, c] = [(); 3].map(|()| db.ids.next(START));
    let rows = [(&key("twin"), 1, a), (&key("other"), 2, b), (&key("twin"), 1, c)];
    let fresh = insert(&db.db, &rows, START).await;
    let kept = find(&db.db, &key("twin")).await.unwrap();
    assert!(kept == record(1, a) || kept == record(1, c), "{kept:?}");
    assert_eq!(fresh, if kept.resource == a { [a, b] } else { [b, c] });
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_used_key_is_not_new_again() {
    let db = TestDb::new().await;
    let [a, b, c] = [(); 3].map(|()| db.ids.next(START));
    insert(&db.db, &[(&key("used"), 1, a)], START).await;
    let rows = [(&key("used"), 2, b), (&key("new"), 3, c)];
    assert_eq!(insert(&db.db, &rows, at(1)).await, [c]);
    assert_eq!(find(&db.db, &key("used")).await, Some(record(1, a)));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_key_is_scoped() {
    let db = TestDb::new().await;
    let first = key("k");
    let others = [
        ScopedKey { account: AccountId(2), ..first.clone() },
        ScopedKey { mode: Mode::Test, ..first.clone() },
        ScopedKey { route: SEND_SMS + 1, ..first.clone() },
    ];
    let [a, b, c, d] = [(); 4].map(|()| db.ids.next(START));
    insert(&db.db, &[(&first, 1, a)], START).await;
    for other in &others {
        assert_eq!(find(&db.db, other).await, None);
    }
    let rows: Vec<_> = others.iter().zip([b, c, d]).map(|(k, made)| (k, 2, made)).collect();
    assert_eq!(insert(&db.db, &rows, START).await, [b, c, d]);
    let mut tx = db.db.write().await.unwrap();
    idempotency::delete(&mut tx, &others.iter().collect::<Vec<_>>()).await.unwrap();
    tx.commit().await.unwrap();
    assert_eq!(find(&db.db, &first).await, Some(record(1, a)));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_deleted_key_is_new_again() {
    let db = TestDb::new().await;
    let [a, b, c] = [(); 3].map(|()| db.ids.next(START));
    insert(&db.db, &[(&key("gone"), 1, a), (&key("kept"), 1, b)], START).await;
    let mut tx = db.db.write().await.unwrap();
    idempotency::delete(&mut tx, &[&key("gone"), &key("unknown")]).await.unwrap();
    idempotency::delete(&mut tx, &[]).await.unwrap();
    tx.commit().await.unwrap();
    assert_eq!(find(&db.db, &key("gone")).await, None);
    assert_eq!(insert(&db.db, &[(&key("gone"), 2, c), (&key("kept"), 2, c)], at(1)).await, [c]);
    assert_eq!(find(&db.db, &key("kept")).await, Some(record(1, b)));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn old_keys_are_deleted() {
    let db = TestDb::new().await;
    for (text, seconds) in [("oldest", 0), ("older", 9), ("young", 10), ("younger", 11)] {
        insert(&db.db, &[(&key(text), 1, db.ids.next(START))], at(seconds)).await;
    }
    let mut tx = db.db.write().await.unwrap();
    assert_eq!(idempotency::delete_older_than(&mut tx, at(10)).await.unwrap(), 2);
    tx.commit().await.unwrap();
    let mut left = Vec::new();
    for text in ["oldest", "older", "young", "younger"] {
        left.push(find(&db.db, &key(text)).await.is_some());
    }
    assert_eq!(left, [false, false, true, true]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_second_node_waits_for_the_same_key() {
    let db = TestDb::new().await;
    let [a, b] = [db.ids.next(START), db.ids.next(START)];
    let twin = key("twin");
    let mut first = db.db.write().await.unwrap();
    let fresh = idempotency::insert(&mut first, &[(&twin, &[1; 32], a)], START).await.unwrap();
    assert_eq!(fresh, [a]);
    let rows = [(&twin, 2, b)];
    let second = insert(&db.db, &rows, START);
    tokio::pin!(second);
    assert!(
        timeout(Duration::from_millis(100), &mut second).await.is_err(),
        "the second transaction did not wait"
    );
    first.commit().await.unwrap();
    assert!(second.await.is_empty());
    assert_eq!(find(&db.db, &twin).await, Some(record(1, a)));
}
