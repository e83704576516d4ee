//! Tests of transactions: atomic, and visible to others only when committed.

use crate::fixtures::{account, balance, credit, open_account};
use heliograph_domain::id::AccountId;
use heliograph_domain::money::Amount;
use heliograph_store::billing::balances;
use heliograph_store::identity::accounts;
use heliograph_store::operations::carriers;
use heliograph_store::{Db, Options, StoreError};
use heliograph_testing::{START, TestDb, sealing_key};
use std::time::Duration;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_url_must_name_an_engine() {
    let db = TestDb::sqlite().await;
    for url in ["", "test.db", "mysql://localhost/x", "Sqlite:test.db"] {
        let options = Options {
            url: url.into(),
            connections: 2,
            key: sealing_key(),
            clock: db.clock.clone(),
        };
        let refused = Db::open(options).await.map(drop);
        assert!(matches!(refused, Err(StoreError::Db(_))), "{url}: {refused:?}");
    }
}

async fn names(db: &Db) -> Vec<String> {
    let all = carriers::list(&mut db.read().await.unwrap()).await.unwrap();
    all.into_iter().map(|(_, name)| name).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_dropped_transaction_is_undone() {
    let db = TestDb::new().await;
    let ann = account(&db, "ann@example.com", 100).await;
    let mut tx = db.db.write().await.unwrap();
    carriers::get_or_create(&mut tx, "acme").await.unwrap();
    balances::reserve(&mut tx, &[(ann, Amount(60))]).await.unwrap();
    drop(tx);
    assert_eq!(names(&db.db).await, [""; 0]);
    assert_eq!(balance(&db.db, ann).await, (100, 0));
    let mut tx = db.db.write().await.unwrap();
    carriers::get_or_create(&mut tx, "other").await.unwrap();
    tx.commit().await.unwrap();
    assert_eq!(names(&db.db).await, ["other"]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_failed_statement_rolls_back_only_its_transaction() {
    let db = TestDb::new().await;
    let ann = account(&db, "ann@example.com", 100).await;
    let mut tx = db.db.write().await.unwrap();
    carriers::get_or_create(&mut tx, "acme").await.unwrap();
    let refused = balances::adjust(&mut tx, &[(ann, Amount(-101), Amount(0))]).await;
    assert!(matches!(refused, Err(StoreError::Db(_))), "{refused:?}");
    drop(tx);
    assert_eq!(names(&db.db).await, [""; 0]);
    assert!(credit(&db, ann, 1).await);
    assert_eq!(balance(&db.db, ann).await, (101, 0));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_reader_sees_only_committed_rows() {
    let db = TestDb::new().await;
    let mut conn = db.db.read().await.unwrap();
    let mut tx = db.db.write().await.unwrap();
    let made = open_account(&db, &mut tx, "ann@example.com").await.unwrap();
    assert_eq!(accounts::all(&mut tx).await.unwrap().len(), 1);
    assert_eq!(accounts::all(&mut conn).await.unwrap(), []);
    tx.commit().await.unwrap();
    assert_eq!(accounts::all(&mut conn).await.unwrap()[0].id, made);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_snapshot_is_consistent_and_blocks_no_writer() {
    let db = TestDb::new().await;
    let ann = account(&db, "ann@example.com", 100).await;
    let mut snapshot = db.db.snapshot().await.unwrap();
    let before = accounts::all(&mut snapshot).await.unwrap();
    assert!(credit(&db, ann, 5).await);
    assert_eq!(accounts::all(&mut snapshot).await.unwrap(), before);
    drop(snapshot);
    // The connection is returned to the pool without the snapshot.
    for _ in 0..8 {
        assert_eq!(balance(&db.db, ann).await, (105, 0));
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_snapshot_is_read_only() {
    let db = TestDb::new().await;
    let mut snapshot = db.db.snapshot().await.unwrap();
    assert!(carriers::get_or_create(&mut snapshot, "acme").await.is_err());
    drop(snapshot);
    assert_eq!(names(&db.db).await, [""; 0]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn committed_rows_survive_a_restart() {
    let db = TestDb::new().await;
    let ann = account(&db, "ann@example.com", 100).await;
    let TestDb { db, clock, url, .. } = db;
    drop(db);
    let again = Db::open(Options { url, connections: 2, key: sealing_key(), clock }).await.unwrap();
    assert_eq!(balance(&again, ann).await, (100, 0));
    assert_ne!(ann, AccountId(0));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn time_follows_the_clock_of_the_database() {
    let db = TestDb::new().await;
    let offset = db.db.measure_offset().await.unwrap();
    assert_eq!(db.db.now().0, START.0 + offset);
    assert_eq!(offset == 0, !db.db.is_shared(), "only SQLite has no clock of its own");
    db.clock.advance(Duration::from_secs(90));
    assert_eq!(db.db.now().0, START.0 + 90_000 + offset);
    // The clock of the database has not moved by 90 s, so the offset of the node is corrected.
    let now = db.db.measure_offset().await.unwrap();
    let drift = offset - now;
    let expected = if db.db.is_shared() { 60_000..=90_000 } else { 0..=0 };
    assert!(expected.contains(&drift), "{drift}");
}

async fn name(db: &Db, name: &str) -> heliograph_store::StoreResult<()> {
    let mut tx = db.write().await?;
    carriers::get_or_create(&mut tx, name).await?;
    tx.commit().await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_unavailable_database_can_be_used_again() {
    let db = TestDb::new().await;
    name(&db.db, "before").await.unwrap();
    let refused = db.while_unavailable(async || name(&db.db, "meanwhile").await).await;
    assert!(matches!(refused, Err(StoreError::Unavailable(_))), "{refused:?}");
    name(&db.db, "after").await.unwrap();
    assert_eq!(names(&db.db).await, ["before", "after"]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_database_answers_a_ping() {
    let db = TestDb::new().await;
    db.db.ping().await.unwrap();
    assert_eq!(db.db.is_shared(), db.url.starts_with("postgres"));
}
