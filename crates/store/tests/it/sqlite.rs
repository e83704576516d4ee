//! Tests of SQLite only: settings, the write lock, readers and the file.

use crate::fixtures::{account, balance};
use futures_util::FutureExt;
use heliograph_store::identity::accounts;
use heliograph_store::operations::carriers;
use heliograph_store::operations::check;
use heliograph_store::{Db, Options, StoreError};
use heliograph_testing::{START, TestDb, sealing_key};
use rusqlite::Connection;
use std::sync::mpsc;
use std::time::Duration;

fn path(db: &TestDb) -> String {
    db.url.strip_prefix("sqlite:").unwrap().to_owned()
}

/// Version 3.51.3 fixed a race that could corrupt a database.
#[test]
fn the_library_is_new_enough() {
    assert!(rusqlite::version_number() >= 3_051_003, "{}", rusqlite::version());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_file_keeps_a_write_ahead_log() {
    let db = TestDb::sqlite().await;
    let conn = Connection::open(path(&db)).unwrap();
    let mode: String = conn.query_row("PRAGMA journal_mode", [], |r| r.get(0)).unwrap();
    assert_eq!(mode, "wal");
}

async fn name(db: &Db, name: &str) -> heliograph_store::StoreResult<()> {
    let mut tx = db.write().await?;
    carriers::get_or_create(&mut tx, name).await?;
    tx.commit().await
}

async fn names(db: &Db) -> Vec<String> {
    let all = carriers::list(&mut db.read().await.unwrap()).await.unwrap();
    all.into_iter().map(|(_, name)| name).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_writer_waits_for_another_process() {
    let db = TestDb::sqlite().await;
    let other = Connection::open(path(&db)).unwrap();
    other.execute_batch("BEGIN IMMEDIATE; INSERT INTO carriers (name) VALUES ('other')").unwrap();
    let (done, written) = mpsc::channel();
    let ours = db.db.clone();
    let mut writing = tokio::task::JoinSet::new();
    writing.spawn(async move { done.send(name(&ours, "ours").await).unwrap() });
    let early = written.recv_timeout(Duration::from_millis(300));
    assert!(early.is_err(), "the writer did not wait: {early:?}");
    assert_eq!(names(&db.db).await, [""; 0], "readers do not wait");
    other.execute_batch("COMMIT").unwrap();
    written.recv().unwrap().unwrap();
    assert_eq!(names(&db.db).await, ["other", "ours"]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_dropped_transaction_releases_the_file() {
    let db = TestDb::sqlite().await;
    drop(db.db.write().await.unwrap());
    let other = Connection::open(path(&db)).unwrap();
    other.busy_timeout(Duration::ZERO).unwrap();
    other.execute_batch("BEGIN IMMEDIATE; ROLLBACK").unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_transaction_writes_at_a_time() {
    let db = TestDb::sqlite().await;
    let first = db.db.write().await.unwrap();
    let second = db.db.write();
    tokio::pin!(second);
    assert!((&mut second).now_or_never().is_none());
    drop(first);
    second.await.unwrap().commit().await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_number_of_readers_is_limited() {
    let db = TestDb::sqlite().await;
    let mut readers = Vec::new();
    for _ in 0..4 {
        readers.push(db.db.read().await.unwrap());
    }
    let fifth = db.db.read();
    tokio::pin!(fifth);
    assert!((&mut fifth).now_or_never().is_none());
    drop(readers.pop());
    carriers::list(&mut fifth.await.unwrap()).await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_reader_cannot_write() {
    let db = TestDb::sqlite().await;
    let mut conn = db.db.read().await.unwrap();
    assert!(accounts::insert(&mut conn, "ann@example.com", "EUR", START).await.is_err());
    assert_eq!(accounts::all(&mut conn).await.unwrap(), []);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_unreachable_file_is_unavailable() {
    let db = TestDb::sqlite().await;
    let url = format!("{}/no such folder/test.db", db.url);
    let options = Options { url, connections: 1, key: sealing_key(), clock: db.clock.clone() };
    let refused = Db::open(options).await.map(drop);
    assert!(matches!(refused, Err(StoreError::Unavailable(_))), "{refused:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_damaged_file_fails_the_check() {
    let db = TestDb::sqlite().await;
    account(&db, "ann@example.com", 5).await;
    // The pages of this index are orphaned.
    db.execute_raw(
        "PRAGMA writable_schema = ON; DELETE FROM sqlite_schema WHERE name = 'messages_failed'",
    )
    .await;
    let again = db.reopen().await;
    let found = check::violations(&mut again.snapshot().await.unwrap()).await.unwrap();
    assert!(
        !found.is_empty() && found[0].starts_with("the database file is intact: "),
        "{found:?}"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_last_connection_empties_the_log() {
    let db = TestDb::sqlite().await;
    let ann = account(&db, "ann@example.com", 100).await;
    let path = path(&db);
    drop(db.db);
    assert!(!std::path::Path::new(&format!("{path}-wal")).exists());
    let conn = Connection::open(&path).unwrap();
    let sql = "SELECT available FROM accounts WHERE id = ?1";
    assert_eq!(conn.query_row(sql, [ann.0], |r| r.get(0)), Ok(100));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_busy_writer_does_not_block_readers() {
    let db = TestDb::sqlite().await;
    let ann = account(&db, "ann@example.com", 100).await;
    let tx = db.db.write().await.unwrap();
    assert_eq!(balance(&db.db, ann).await, (100, 0));
    drop(tx);
}
