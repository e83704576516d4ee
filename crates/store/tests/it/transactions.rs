//! Transactions: all or nothing, seen by others only when they are durable.

use crate::rows::{account, balance, credit};
use crate::support::{BEGIN, TestDb, key, on_both_engines};
use heliograph_domain::id::{AccountId, Ids, UserId};
use heliograph_domain::money::Amount;
use heliograph_store::{Db, Error, Options, accounts, carriers};
use std::time::Duration;

on_both_engines!(transactions:
    a_dropped_transaction_is_undone,
    a_failed_statement_harms_only_its_transaction,
    a_reader_sees_what_is_committed,
    a_snapshot_sees_one_moment_and_nobody_waits_for_it,
    a_snapshot_writes_nothing,
    what_is_committed_is_there_after_a_restart,
    time_goes_by_the_databases_clock,
    a_database_answers,
    a_database_that_was_away_comes_back,
);

#[test]
fn a_url_must_name_an_engine() {
    crate::support::on_sqlite(async |db: TestDb| {
        for url in ["", "test.db", "mysql://localhost/x", "Sqlite:test.db"] {
            let options =
                Options { url: url.into(), connections: 2, key: key(), clock: db.clock.clone() };
            let refused = Db::open(options).await.map(drop);
            assert!(matches!(refused, Err(Error::Db(_))), "{url}: {refused:?}");
        }
    });
}

async fn names(db: &Db) -> Vec<String> {
    let all = carriers::all(&mut db.read().await.unwrap()).await.unwrap();
    all.into_iter().map(|(_, name)| name).collect()
}

async fn a_dropped_transaction_is_undone(db: TestDb) {
    let ann = account(&db, "ann@example.com", 100).await;
    let mut tx = db.db.write().await.unwrap();
    carriers::number(&mut tx, "acme").await.unwrap();
    accounts::reserve(&mut tx, &[(ann, Amount(60))]).await.unwrap();
    drop(tx);
    assert_eq!(names(&db.db).await, [""; 0]);
    assert_eq!(balance(&db.db, ann).await, (100, 0));
    let mut tx = db.db.write().await.unwrap();
    carriers::number(&mut tx, "other").await.unwrap();
    tx.commit().await.unwrap();
    assert_eq!(names(&db.db).await, ["other"]);
}

async fn a_failed_statement_harms_only_its_transaction(db: TestDb) {
    let ann = account(&db, "ann@example.com", 100).await;
    let mut tx = db.db.write().await.unwrap();
    carriers::number(&mut tx, "acme").await.unwrap();
    let refused = accounts::move_money(&mut tx, &[(ann, Amount(-101), Amount(0))]).await;
    assert!(matches!(refused, Err(Error::Db(_))), "{refused:?}");
    drop(tx);
    assert_eq!(names(&db.db).await, [""; 0]);
    assert!(credit(&db, ann, 1).await);
    assert_eq!(balance(&db.db, ann).await, (101, 0));
}

async fn a_reader_sees_what_is_committed(db: TestDb) {
    let mut conn = db.db.read().await.unwrap();
    let mut tx = db.db.write().await.unwrap();
    let owner = (UserId(db.ids.next(BEGIN)), "ann@example.com");
    let made = accounts::create(&mut tx, owner, "EUR", false, BEGIN).await.unwrap();
    assert_eq!(accounts::all(&mut tx).await.unwrap().len(), 1);
    assert_eq!(accounts::all(&mut conn).await.unwrap(), []);
    tx.commit().await.unwrap();
    assert_eq!(accounts::all(&mut conn).await.unwrap()[0].id, made.unwrap());
}

async fn a_snapshot_sees_one_moment_and_nobody_waits_for_it(db: TestDb) {
    let ann = account(&db, "ann@example.com", 100).await;
    let mut snapshot = db.db.snapshot().await.unwrap();
    let before = accounts::all(&mut snapshot).await.unwrap();
    assert!(credit(&db, ann, 5).await);
    assert_eq!(accounts::all(&mut snapshot).await.unwrap(), before);
    drop(snapshot);
    // Its connection goes back without it: whoever reads next sees the present.
    for _ in 0..8 {
        assert_eq!(balance(&db.db, ann).await, (105, 0));
    }
}

async fn a_snapshot_writes_nothing(db: TestDb) {
    let mut snapshot = db.db.snapshot().await.unwrap();
    assert!(carriers::number(&mut snapshot, "acme").await.is_err());
    drop(snapshot);
    assert_eq!(names(&db.db).await, [""; 0]);
}

async fn what_is_committed_is_there_after_a_restart(db: TestDb) {
    let ann = account(&db, "ann@example.com", 100).await;
    let TestDb { db, clock, url, .. } = db;
    drop(db);
    let again = Db::open(Options { url, connections: 2, key: key(), clock }).await.unwrap();
    assert_eq!(balance(&again, ann).await, (100, 0));
    assert_ne!(ann, AccountId(0));
}

async fn time_goes_by_the_databases_clock(db: TestDb) {
    let offset = db.db.measure_offset().await.unwrap();
    assert_eq!(db.db.now().0, BEGIN.0 + offset);
    assert_eq!(offset == 0, !db.db.is_shared(), "only SQLite has no clock of its own");
    db.clock.advance(Duration::from_secs(90));
    assert_eq!(db.db.now().0, BEGIN.0 + 90_000 + offset);
    // The database's clock has not moved by this: a node that is wrong by so much is put right.
    let now = db.db.measure_offset().await.unwrap();
    let drift = offset - now;
    let expected = if db.db.is_shared() { 60_000..=90_000 } else { 0..=0 };
    assert!(expected.contains(&drift), "{drift}");
}

async fn name(db: &Db, name: &str) -> heliograph_store::Result<()> {
    let mut tx = db.write().await?;
    carriers::number(&mut tx, name).await?;
    tx.commit().await
}

async fn a_database_that_was_away_comes_back(db: TestDb) {
    name(&db.db, "before").await.unwrap();
    let refused = db.away(async || name(&db.db, "meanwhile").await).await;
    assert!(matches!(refused, Err(Error::Unavailable(_))), "{refused:?}");
    name(&db.db, "after").await.unwrap();
    assert_eq!(names(&db.db).await, ["before", "after"]);
}

async fn a_database_answers(db: TestDb) {
    db.db.ping().await.unwrap();
    assert_eq!(db.db.is_shared(), db.url.starts_with("postgres"));
}
