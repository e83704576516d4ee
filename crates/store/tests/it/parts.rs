//! Tests of parts: each part counts once, however often it is reported.

use heliograph_domain::id::{AccountId, Ids, MessageId, PartKey};
use heliograph_store::Db;
use heliograph_store::messaging::parts;
use heliograph_testing::{START, TestDb};

async fn accept(db: &Db, all: &[PartKey]) -> Vec<PartKey> {
    let mut tx = db.write().await.unwrap();
    let mut fresh = parts::record_accepted(&mut tx, all).await.unwrap();
    tx.commit().await.unwrap();
    fresh.sort();
    fresh
}

async fn delivered(db: &Db, all: &[PartKey]) -> Vec<PartKey> {
    let mut tx = db.write().await.unwrap();
    let mut fresh = parts::record_delivered(&mut tx, all).await.unwrap();
    tx.commit().await.unwrap();
    fresh.sort();
    fresh
}

/// Returns parts 1, 2 and 255 of a message.
fn three(db: &TestDb, account: i64) -> [PartKey; 3] {
    let id = MessageId(db.ids.next(START));
    [1, 2, 255].map(|part| (AccountId(account), id, part))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_part_is_accepted_once() {
    let db = TestDb::new().await;
    let [one, two, last] = three(&db, 1);
    assert_eq!(accept(&db.db, &[one, two, one]).await, [one, two]);
    assert_eq!(accept(&db.db, &[two, last, last]).await, [last]);
    assert_eq!(accept(&db.db, &[]).await, []);
    let elsewhere = (AccountId(2), one.1, one.2);
    assert_eq!(accept(&db.db, &[elsewhere]).await, [elsewhere]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_part_is_delivered_once_and_only_after_acceptance() {
    let db = TestDb::new().await;
    let [one, two, last] = three(&db, 1);
    assert_eq!(delivered(&db.db, &[one]).await, []);
    accept(&db.db, &[one, two]).await;
    assert_eq!(delivered(&db.db, &[one, last, one]).await, [one]);
    assert_eq!(delivered(&db.db, &[one, two]).await, [two]);
    // A part that is accepted again after a lost response is not delivered again.
    assert_eq!(accept(&db.db, &[one]).await, []);
    assert_eq!(delivered(&db.db, &[one]).await, []);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_parts_of_a_message_are_listed() {
    let db = TestDb::new().await;
    let (of_ann, of_bob) = (three(&db, 1), three(&db, 2));
    accept(&db.db, &of_ann).await;
    accept(&db.db, &of_bob[..1]).await;
    let mut conn = db.db.read().await.unwrap();
    let (a, b) = ((AccountId(1), of_ann[0].1), (AccountId(2), of_bob[0].1));
    let of_another_account = (AccountId(2), of_ann[0].1);
    let mut found = parts::accepted(&mut conn, &[a, of_another_account, b]).await.unwrap();
    found.sort();
    assert_eq!(found, [&of_ann[..], &of_bob[..1]].concat());
    assert_eq!(parts::accepted(&mut conn, &[of_another_account]).await.unwrap(), []);
}
