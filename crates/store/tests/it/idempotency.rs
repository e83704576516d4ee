//! Idempotency keys: the first one counts, for as long as it is kept.

use crate::rows::at;
use crate::support::{BEGIN, TestDb, on_both_engines};
use heliograph_domain::account::Mode;
use heliograph_domain::id::{AccountId, Ids};
use heliograph_domain::time::Timestamp;
use heliograph_store::Db;
use heliograph_store::idempotency::{self, Key, Record, SEND_SMS};
use std::time::Duration;
use tokio::time::timeout;
use uuid::Uuid;

on_both_engines!(idempotency:
    a_new_key_is_noted,
    of_twins_in_one_batch_one_is_new,
    a_used_key_is_not_new_again,
    a_key_means_nothing_to_others,
    a_forgotten_key_is_new_again,
    old_keys_are_dropped,
    two_nodes_use_a_key_one_after_the_other,
);

fn key(text: &str) -> Key {
    Key { account: AccountId(1), mode: Mode::Live, route: SEND_SMS, key: text.to_owned() }
}

async fn insert(db: &Db, keys: &[(&Key, u8, Uuid)], now: Timestamp) -> Vec<Uuid> {
    let fingerprints: Vec<_> = keys.iter().map(|(_, f, _)| [*f; 32]).collect();
    let rows = keys.iter().zip(&fingerprints);
    let rows: Vec<_> = rows.map(|((key, _, made), f)| (*key, f, *made)).collect();
    let mut tx = db.write().await.unwrap();
    let mut fresh = idempotency::insert(&mut tx, &rows, now).await.unwrap();
    tx.commit().await.unwrap();
    fresh.sort();
    fresh
}

async fn find(db: &Db, key: &Key) -> Option<Record> {
    idempotency::find(&mut db.read().await.unwrap(), key).await.unwrap()
}

fn record(fingerprint: u8, made: Uuid) -> Record {
    Record { fingerprint: vec![fingerprint; 32], made, answer: None }
}

async fn a_new_key_is_noted(db: TestDb) {
    let [a, b] = [db.ids.next(BEGIN), db.ids.next(BEGIN)];
    let long = "x".repeat(255);
    let rows = [(&key("a-1"), 1, a), (&key(&long), 2, b)];
    assert_eq!(insert(&db.db, &rows, BEGIN).await, [a, b]);
    assert_eq!(find(&db.db, &key("a-1")).await, Some(record(1, a)));
    assert_eq!(find(&db.db, &key(&long)).await, Some(record(2, b)));
    assert_eq!(find(&db.db, &key("A-1")).await, None);
    assert!(insert(&db.db, &[], BEGIN).await.is_empty());
}

async fn of_twins_in_one_batch_one_is_new(db: TestDb) {
    let [a, b, c] = [(); 3].map(|()| db.ids.next(BEGIN));
    let rows = [(&key("twin"), 1, a), (&key("other"), 2, b), (&key("twin"), 1, c)];
    let fresh = insert(&db.db, &rows, BEGIN).await;
    let kept = find(&db.db, &key("twin")).await.unwrap();
    assert!(kept == record(1, a) || kept == record(1, c), "{kept:?}");
    assert_eq!(fresh, if kept.made == a { [a, b] } else { [b, c] });
}

async fn a_used_key_is_not_new_again(db: TestDb) {
    let [a, b, c] = [(); 3].map(|()| db.ids.next(BEGIN));
    insert(&db.db, &[(&key("used"), 1, a)], BEGIN).await;
    let rows = [(&key("used"), 2, b), (&key("new"), 3, c)];
    assert_eq!(insert(&db.db, &rows, at(1)).await, [c]);
    assert_eq!(find(&db.db, &key("used")).await, Some(record(1, a)));
}

async fn a_key_means_nothing_to_others(db: TestDb) {
    let mine = key("k");
    let others = [
        Key { account: AccountId(2), ..mine.clone() },
        Key { mode: Mode::Test, ..mine.clone() },
        Key { route: SEND_SMS + 1, ..mine.clone() },
    ];
    let [a, b, c, d] = [(); 4].map(|()| db.ids.next(BEGIN));
    insert(&db.db, &[(&mine, 1, a)], BEGIN).await;
    for other in &others {
        assert_eq!(find(&db.db, other).await, None);
    }
    let rows: Vec<_> = others.iter().zip([b, c, d]).map(|(k, made)| (k, 2, made)).collect();
    assert_eq!(insert(&db.db, &rows, BEGIN).await, [b, c, d]);
    let mut tx = db.db.write().await.unwrap();
    idempotency::forget(&mut tx, &others.iter().collect::<Vec<_>>()).await.unwrap();
    tx.commit().await.unwrap();
    assert_eq!(find(&db.db, &mine).await, Some(record(1, a)));
}

async fn a_forgotten_key_is_new_again(db: TestDb) {
    let [a, b, c] = [(); 3].map(|()| db.ids.next(BEGIN));
    insert(&db.db, &[(&key("gone"), 1, a), (&key("kept"), 1, b)], BEGIN).await;
    let mut tx = db.db.write().await.unwrap();
    idempotency::forget(&mut tx, &[&key("gone"), &key("unknown")]).await.unwrap();
    idempotency::forget(&mut tx, &[]).await.unwrap();
    tx.commit().await.unwrap();
    assert_eq!(find(&db.db, &key("gone")).await, None);
    assert_eq!(insert(&db.db, &[(&key("gone"), 2, c), (&key("kept"), 2, c)], at(1)).await, [c]);
    assert_eq!(find(&db.db, &key("kept")).await, Some(record(1, b)));
}

async fn old_keys_are_dropped(db: TestDb) {
    for (text, seconds) in [("oldest", 0), ("older", 9), ("young", 10), ("younger", 11)] {
        insert(&db.db, &[(&key(text), 1, db.ids.next(BEGIN))], at(seconds)).await;
    }
    let mut tx = db.db.write().await.unwrap();
    assert_eq!(idempotency::drop_old(&mut tx, at(10)).await.unwrap(), 2);
    tx.commit().await.unwrap();
    let mut left = Vec::new();
    for text in ["oldest", "older", "young", "younger"] {
        left.push(find(&db.db, &key(text)).await.is_some());
    }
    assert_eq!(left, [false, false, true, true]);
}

async fn two_nodes_use_a_key_one_after_the_other(db: TestDb) {
    let [a, b] = [db.ids.next(BEGIN), db.ids.next(BEGIN)];
    let twin = key("twin");
    let mut first = db.db.write().await.unwrap();
    let fresh = idempotency::insert(&mut first, &[(&twin, &[1; 32], a)], BEGIN).await.unwrap();
    assert_eq!(fresh, [a]);
    let rows = [(&twin, 2, b)];
    let second = insert(&db.db, &rows, BEGIN);
    tokio::pin!(second);
    assert!(timeout(Duration::from_millis(100), &mut second).await.is_err(), "it did not wait");
    first.commit().await.unwrap();
    assert!(second.await.is_empty());
    assert_eq!(find(&db.db, &twin).await, Some(record(1, a)));
}
