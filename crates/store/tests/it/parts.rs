//! Parts: each one counts once, however often it is told.

use crate::support::{BEGIN, TestDb, on_both_engines};
use heliograph_domain::id::{AccountId, Ids, MessageId, PartKey};
use heliograph_store::Db;
use heliograph_store::parts;

on_both_engines!(parts:
    a_part_is_taken_once,
    a_part_arrives_once_and_only_after_it_was_taken,
    the_parts_of_a_message_are_listed,
);

async fn taken(db: &Db, all: &[PartKey]) -> Vec<PartKey> {
    let mut tx = db.write().await.unwrap();
    let mut fresh = parts::taken(&mut tx, all).await.unwrap();
    tx.commit().await.unwrap();
    fresh.sort();
    fresh
}

async fn delivered(db: &Db, all: &[PartKey]) -> Vec<PartKey> {
    let mut tx = db.write().await.unwrap();
    let mut fresh = parts::delivered(&mut tx, all).await.unwrap();
    tx.commit().await.unwrap();
    fresh.sort();
    fresh
}

/// Parts 1, 2 and 255 of a message.
fn three(db: &TestDb, account: i64) -> [PartKey; 3] {
    let id = MessageId(db.ids.next(BEGIN));
    [1, 2, 255].map(|part| (AccountId(account), id, part))
}

async fn a_part_is_taken_once(db: TestDb) {
    let [one, two, last] = three(&db, 1);
    assert_eq!(taken(&db.db, &[one, two, one]).await, [one, two]);
    assert_eq!(taken(&db.db, &[two, last, last]).await, [last]);
    assert_eq!(taken(&db.db, &[]).await, []);
    let elsewhere = (AccountId(2), one.1, one.2);
    assert_eq!(taken(&db.db, &[elsewhere]).await, [elsewhere]);
}

async fn a_part_arrives_once_and_only_after_it_was_taken(db: TestDb) {
    let [one, two, last] = three(&db, 1);
    assert_eq!(delivered(&db.db, &[one]).await, []);
    taken(&db.db, &[one, two]).await;
    assert_eq!(delivered(&db.db, &[one, last, one]).await, [one]);
    assert_eq!(delivered(&db.db, &[one, two]).await, [two]);
    // Taken once more, after a lost response: it does not arrive once more.
    assert_eq!(taken(&db.db, &[one]).await, []);
    assert_eq!(delivered(&db.db, &[one]).await, []);
}

async fn the_parts_of_a_message_are_listed(db: TestDb) {
    let (hers, his) = (three(&db, 1), three(&db, 2));
    taken(&db.db, &hers).await;
    taken(&db.db, &his[..1]).await;
    let mut conn = db.db.read().await.unwrap();
    let (a, b) = ((AccountId(1), hers[0].1), (AccountId(2), his[0].1));
    let strangers = (AccountId(2), hers[0].1);
    let mut found = parts::of(&mut conn, &[a, strangers, b]).await.unwrap();
    found.sort();
    assert_eq!(found, [&hers[..], &his[..1]].concat());
    assert_eq!(parts::of(&mut conn, &[strangers]).await.unwrap(), []);
}
