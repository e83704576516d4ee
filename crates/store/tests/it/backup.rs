//! Backups: every table comes back with every value, from either engine into either.

use crate::support::{BEGIN, TestClock, TestDb, key, on_both_engines};
use heliograph_domain::id::{AccountId, Ids, UserId};
use heliograph_store::backup::{self, Backup};
use heliograph_store::{Db, Error, Options, accounts, carriers};
use rusqlite::Connection;
use rusqlite::types::Value;
use std::path::Path;
use std::sync::Arc;

on_both_engines!(backup:
    every_table_comes_back_with_every_value,
    numbers_go_on_behind_what_was_restored,
    an_older_backup_is_brought_up_to_date,
    what_is_not_committed_changes_nothing,
);

/// More than are copied at once.
const ROWS: i64 = 2_100;

/// What is not ours to copy, but the engine's or the migrations'.
const NOT_OURS: &str = "name LIKE 'sqlite%' OR name = 'refinery_schema_history'";

/// The names of our tables, by the file's own word.
fn tables(conn: &Connection) -> Vec<String> {
    let sql = format!(
        "SELECT name FROM sqlite_schema WHERE type = 'table' AND NOT ({NOT_OURS}) ORDER BY 1"
    );
    let mut statement = conn.prepare(&sql).unwrap();
    statement.query_map([], |r| r.get(0)).unwrap().map(Result::unwrap).collect()
}

/// All rows of a table.
fn rows(conn: &Connection, table: &str) -> Vec<Vec<Value>> {
    let mut statement = conn.prepare(&format!("SELECT * FROM {table}")).unwrap();
    let width = statement.column_count();
    let mut all: Vec<Vec<Value>> = statement
        .query_map([], |r| (0..width).map(|i| r.get(i)).collect())
        .unwrap()
        .map(Result::unwrap)
        .collect();
    all.sort_by_key(|row| format!("{row:?}"));
    all
}

/// A value for row `n` of a column: text of several alphabets, the bytes of an id, nothing where that may be.
fn value(kind: &str, nullable: bool, n: i64) -> Value {
    match kind {
        _ if nullable && n % 3 == 0 => Value::Null,
        "INTEGER" => n.into(),
        "TEXT" => format!("{n} 'é€😀\n\"").into(),
        _ => {
            let mut id = [0xf0; 16];
            id[8..].copy_from_slice(&n.to_be_bytes());
            id.to_vec().into()
        }
    }
}

/// Fills every table there is.
fn fill(path: &Path) {
    let mut conn = Connection::open(path).unwrap();
    conn.pragma_update(None, "foreign_keys", false).unwrap();
    let all = tables(&conn);
    let tx = conn.transaction().unwrap();
    for table in all {
        tx.execute(&format!("DELETE FROM {table}"), []).unwrap();
        let sql = "SELECT type, \"notnull\" = 0 AND pk = 0 FROM pragma_table_info($1) ORDER BY cid";
        let mut columns = tx.prepare(sql).unwrap();
        let columns = columns.query_map([&table], |r| Ok((r.get(0)?, r.get(1)?))).unwrap();
        let columns: Vec<(String, bool)> = columns.map(Result::unwrap).collect();
        let places = vec!["?"; columns.len()].join(", ");
        let mut insert = tx.prepare(&format!("INSERT INTO {table} VALUES ({places})")).unwrap();
        for n in 1..=ROWS {
            let row = columns.iter().map(|(kind, nullable)| value(kind, *nullable, n));
            insert.execute(rusqlite::params_from_iter(row)).unwrap();
        }
    }
    tx.commit().unwrap();
}

/// A file as a backup is, with something in every table.
async fn full(folder: &Path, clock: Arc<TestClock>) -> std::path::PathBuf {
    let (live, file) = (folder.join("live.db"), folder.join("full.db"));
    let url = format!("sqlite:{}", live.display());
    let db = Db::open(Options { url, connections: 2, key: key(), clock }).await.unwrap();
    fill(&live);
    std::fs::write(&file, "").unwrap();
    backup::write(&db, &file, &mut |_, _| {}).await.unwrap();
    file
}

async fn restore(db: &Db, file: &Path) {
    let mut backup = Backup::open(file, &file.with_extension("scratch")).await.unwrap();
    let mut tx = db.write().await.unwrap();
    backup.replace(&mut tx, &mut |_, _| {}).await.unwrap();
    tx.commit().await.unwrap();
}

async fn every_table_comes_back_with_every_value(db: TestDb) {
    let folder = tempfile::tempdir().unwrap();
    let file = full(folder.path(), db.clock.clone()).await;
    // Twice: also what a restore finds is replaced.
    restore(&db.db, &file).await;
    restore(&db.db, &file).await;
    let again = folder.path().join("again.db");
    std::fs::write(&again, "").unwrap();
    let mut told = Vec::new();
    let contents =
        backup::write(&db.db, &again, &mut |done, all| told.push((done, all))).await.unwrap();
    assert!(told.last().is_some_and(|(done, all)| done == all), "{told:?}");
    let (one, two) = (Connection::open(&file).unwrap(), Connection::open(&again).unwrap());
    let names = tables(&one);
    assert!(names.len() > 20, "{names:?}");
    assert_eq!(names, tables(&two));
    for table in &names {
        let there = rows(&one, table);
        assert_eq!(there.len(), usize::try_from(ROWS).unwrap(), "{table}");
        assert!(there == rows(&two, table), "{table} differs");
    }
    let counted: Vec<_> = names.into_iter().map(|name| (name, ROWS.unsigned_abs())).collect();
    assert_eq!(contents.rows, counted);
    // One file, with nothing beside it.
    let mode: String = two.query_row("PRAGMA journal_mode", [], |r| r.get(0)).unwrap();
    assert_eq!(mode, "delete");
}

async fn numbers_go_on_behind_what_was_restored(db: TestDb) {
    let folder = tempfile::tempdir().unwrap();
    restore(&db.db, &full(folder.path(), db.clock.clone()).await).await;
    let mut tx = db.db.write().await.unwrap();
    let owner = (UserId(db.ids.next(BEGIN)), "new@example.com");
    let account = accounts::create(&mut tx, owner, "EUR", false, BEGIN).await.unwrap();
    assert_eq!(account, Some(AccountId(ROWS + 1)));
    let carrier = carriers::number(&mut tx, "a new one").await.unwrap();
    assert_eq!(i64::from(carrier.0), ROWS + 1);
    tx.commit().await.unwrap();
}

async fn an_older_backup_is_brought_up_to_date(db: TestDb) {
    let folder = tempfile::tempdir().unwrap();
    let (new, old) = (full(folder.path(), db.clock.clone()).await, folder.path().join("old.db"));
    let first = Path::new(env!("CARGO_MANIFEST_DIR")).join("migrations/sqlite/V1__foundation.sql");
    let conn = Connection::open(&old).unwrap();
    conn.execute_batch(&std::fs::read_to_string(first).unwrap()).unwrap();
    conn.execute("ATTACH $1 AS new", [new.to_str().unwrap()]).unwrap();
    conn.execute_batch(
        "CREATE TABLE refinery_schema_history AS SELECT * FROM new.refinery_schema_history WHERE version = 1;
         INSERT INTO accounts SELECT * FROM new.accounts WHERE id <= 7;",
    )
    .unwrap();
    drop(conn);
    let before = std::fs::read(&old).unwrap();
    let scratch = folder.path().join("scratch");
    let mut backup = Backup::open(&old, &scratch).await.unwrap();
    assert_eq!((backup.contents().version, scratch.exists()), (1, true));
    let mut tx = db.db.write().await.unwrap();
    backup.replace(&mut tx, &mut |_, _| {}).await.unwrap();
    tx.commit().await.unwrap();
    drop(backup);
    assert!(!scratch.exists() && before == std::fs::read(&old).unwrap());
    assert_eq!(accounts::all(&mut db.db.read().await.unwrap()).await.unwrap().len(), 7);
}

async fn what_is_not_committed_changes_nothing(db: TestDb) {
    let folder = tempfile::tempdir().unwrap();
    let file = full(folder.path(), db.clock.clone()).await;
    let ann = crate::rows::account(&db, "ann@example.com", 5).await;
    let mut backup = Backup::open(&file, &folder.path().join("scratch")).await.unwrap();
    let mut tx = db.db.write().await.unwrap();
    backup.replace(&mut tx, &mut |_, _| {}).await.unwrap();
    drop(tx);
    assert_eq!(crate::rows::balance(&db.db, ann).await, (5, 0));
    assert_eq!(accounts::all(&mut db.db.read().await.unwrap()).await.unwrap().len(), 1);
}

/// What is wrong with a file, as a person reads it.
async fn complaint(path: &Path) -> String {
    match Backup::open(path, &path.with_extension("scratch")).await.map(drop) {
        Err(Error::Backup(why)) => why,
        other => panic!("{other:?}"),
    }
}

#[test]
fn what_is_no_backup_is_told() {
    crate::support::on_sqlite(async |db: TestDb| {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        let file = full(folder.path(), db.clock.clone()).await;
        let whole = std::fs::read(&file).unwrap();
        let put = |name: &str, bytes: &[u8]| {
            std::fs::write(at(name), bytes).unwrap();
            at(name)
        };
        let altered = |name: &str, sql: &str| {
            let path = put(name, &whole);
            Connection::open(&path).unwrap().execute_batch(sql).unwrap();
            path
        };
        let mut damaged = whole.clone();
        damaged[40_960..45_056].fill(0x5a);
        let other = at("other.db");
        Connection::open(&other).unwrap().execute_batch("CREATE TABLE t (a)").unwrap();
        for (path, hint) in [
            (at("missing"), "No such file"),
            (folder.path().to_owned(), "directory"),
            (put("empty", b""), "it is no SQLite database"),
            (put("text", b"Dear diary, I have no backup"), "it is no SQLite database"),
            (other, "another program's SQLite database"),
            (put("head", &whole[..100]), "malformed"),
            (put("half", &whole[..whole.len() / 2]), "malformed"),
            (put("damaged", &damaged), "damaged"),
            (
                altered(
                    "newer",
                    "INSERT INTO refinery_schema_history VALUES (99, 'later', '', '1')",
                ),
                "schema has version 99",
            ),
            (
                altered(
                    "foreign",
                    "UPDATE refinery_schema_history SET checksum = '1' WHERE version = 1",
                ),
                "not Heliograph's",
            ),
            (
                altered("dangling", "PRAGMA foreign_keys = OFF; DELETE FROM accounts"),
                "speaks of what is not there",
            ),
        ] {
            let why = complaint(&path).await;
            assert!(why.contains(hint) && why.starts_with(path.to_str().unwrap()), "{why}");
            assert!(!path.with_extension("scratch").exists());
        }
    });
}
