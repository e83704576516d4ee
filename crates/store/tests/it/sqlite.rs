//! SQLite alone: its settings, its lock, its readers, and its file.

use crate::rows::{account, balance};
use crate::support::{BEGIN, TestDb, key, on_sqlite};
use futures_util::FutureExt;
use heliograph_domain::id::{Ids, UserId};
use heliograph_store::{Db, Error, Options, accounts, carriers, check};
use rusqlite::Connection;
use std::sync::mpsc;
use std::time::Duration;

fn path(db: &TestDb) -> String {
    db.url.strip_prefix("sqlite:").unwrap().to_owned()
}

/// The race that could corrupt a database was repaired in 3.51.3.
#[test]
fn the_library_is_new_enough() {
    assert!(rusqlite::version_number() >= 3_051_003, "{}", rusqlite::version());
}

#[test]
fn the_file_keeps_a_write_ahead_log() {
    on_sqlite(async |db: TestDb| {
        let conn = Connection::open(path(&db)).unwrap();
        let mode: String = conn.query_row("PRAGMA journal_mode", [], |r| r.get(0)).unwrap();
        assert_eq!(mode, "wal");
    });
}

async fn name(db: &Db, name: &str) -> heliograph_store::Result<()> {
    let mut tx = db.write().await?;
    carriers::number(&mut tx, name).await?;
    tx.commit().await
}

async fn names(db: &Db) -> Vec<String> {
    let all = carriers::all(&mut db.read().await.unwrap()).await.unwrap();
    all.into_iter().map(|(_, name)| name).collect()
}

#[test]
fn another_process_that_writes_is_waited_for() {
    on_sqlite(async |db: TestDb| {
        let stranger = Connection::open(path(&db)).unwrap();
        stranger
            .execute_batch("BEGIN IMMEDIATE; INSERT INTO carriers (name) VALUES ('stranger')")
            .unwrap();
        let (told, written) = mpsc::channel();
        let ours = db.db.clone();
        let mut writing = tokio::task::JoinSet::new();
        writing.spawn(async move { told.send(name(&ours, "ours").await).unwrap() });
        let early = written.recv_timeout(Duration::from_millis(300));
        assert!(early.is_err(), "it did not wait: {early:?}");
        assert_eq!(names(&db.db).await, [""; 0], "nor do readers wait for anybody");
        stranger.execute_batch("COMMIT").unwrap();
        written.recv().unwrap().unwrap();
        assert_eq!(names(&db.db).await, ["stranger", "ours"]);
    });
}

#[test]
fn a_dropped_transaction_lets_go_of_the_file() {
    on_sqlite(async |db: TestDb| {
        drop(db.db.write().await.unwrap());
        let stranger = Connection::open(path(&db)).unwrap();
        stranger.busy_timeout(Duration::ZERO).unwrap();
        stranger.execute_batch("BEGIN IMMEDIATE; ROLLBACK").unwrap();
    });
}

#[test]
fn one_transaction_writes_at_a_time() {
    on_sqlite(async |db: TestDb| {
        let first = db.db.write().await.unwrap();
        let second = db.db.write();
        tokio::pin!(second);
        assert!((&mut second).now_or_never().is_none());
        drop(first);
        second.await.unwrap().commit().await.unwrap();
    });
}

#[test]
fn a_few_read_at_a_time_and_the_next_one_waits() {
    on_sqlite(async |db: TestDb| {
        let mut readers = Vec::new();
        for _ in 0..4 {
            readers.push(db.db.read().await.unwrap());
        }
        let fifth = db.db.read();
        tokio::pin!(fifth);
        assert!((&mut fifth).now_or_never().is_none());
        drop(readers.pop());
        carriers::all(&mut fifth.await.unwrap()).await.unwrap();
    });
}

#[test]
fn a_reader_does_not_write() {
    on_sqlite(async |db: TestDb| {
        let mut conn = db.db.read().await.unwrap();
        let owner = (UserId(db.ids.next(BEGIN)), "ann@example.com");
        assert!(accounts::create(&mut conn, owner, "EUR", false, BEGIN).await.is_err());
        assert_eq!(accounts::all(&mut conn).await.unwrap(), []);
    });
}

#[test]
fn a_file_out_of_reach_is_unavailable() {
    on_sqlite(async |db: TestDb| {
        let url = format!("{}/no such folder/test.db", db.url);
        let options = Options { url, connections: 1, key: key(), clock: db.clock.clone() };
        let refused = Db::open(options).await.map(drop);
        assert!(matches!(refused, Err(Error::Unavailable(_))), "{refused:?}");
    });
}

#[test]
fn a_damaged_file_does_not_pass_the_check() {
    on_sqlite(async |db: TestDb| {
        account(&db, "ann@example.com", 5).await;
        // The pages of this index belong to nobody any more.
        db.behind(
            "PRAGMA writable_schema = ON; DELETE FROM sqlite_schema WHERE name = 'messages_failed'",
        )
        .await;
        let again = db.again().await;
        let found = check::violations(&mut again.snapshot().await.unwrap()).await.unwrap();
        assert!(!found.is_empty() && found[0].starts_with("the file is sound: "), "{found:?}");
    });
}

#[test]
fn the_last_one_to_leave_empties_the_log() {
    on_sqlite(async |db: TestDb| {
        let ann = account(&db, "ann@example.com", 100).await;
        let path = path(&db);
        drop(db.db);
        assert!(!std::path::Path::new(&format!("{path}-wal")).exists());
        let conn = Connection::open(&path).unwrap();
        let sql = "SELECT available FROM accounts WHERE id = ?1";
        assert_eq!(conn.query_row(sql, [ann.0], |r| r.get(0)), Ok(100));
    });
}

#[test]
fn a_busy_writer_does_not_keep_readers_from_reading() {
    on_sqlite(async |db: TestDb| {
        let ann = account(&db, "ann@example.com", 100).await;
        let tx = db.db.write().await.unwrap();
        assert_eq!(balance(&db.db, ann).await, (100, 0));
        drop(tx);
    });
}
