//! Tests of backups: every value of every table is restored, from either engine into either.

use crate::schema::migration_files;
use heliograph_domain::id::AccountId;
use heliograph_store::identity::accounts;
use heliograph_store::operations::backup::{self, Backup};
use heliograph_store::operations::carriers;
use heliograph_store::{Db, Options, StoreError};
use heliograph_testing::{START, TestClock, TestDb, sealing_key};
use rusqlite::Connection;
use rusqlite::types::Value;
use std::path::Path;
use std::sync::Arc;

/// The number of rows per table: more than are copied at once.
const ROWS: i64 = 2_100;

/// Tables of the engine, and the table of migrations, which are not copied.
const NOT_OURS: &str = "name LIKE 'sqlite%' OR name = 'schema_migrations'";

/// Returns the table names from the catalogue of the file.
fn tables(conn: &Connection) -> Vec<String> {
    let sql = format!(
        "SELECT name FROM sqlite_schema WHERE type = 'table' AND NOT ({NOT_OURS}) ORDER BY 1"
    );
    let mut statement = conn.prepare(&sql).unwrap();
    statement.query_map([], |r| r.get(0)).unwrap().map(Result::unwrap).collect()
}

/// Returns all rows of a table.
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

/// Returns a value for row `n` of a column: text of several alphabets, the bytes of an id, or NULL
/// where allowed.
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

/// Fills every table.
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

/// Returns a backup file with rows in every table.
async fn full(folder: &Path, clock: Arc<TestClock>) -> std::path::PathBuf {
    let (live, file) = (folder.join("live.db"), folder.join("full.db"));
    let url = format!("sqlite:{}", live.display());
    let db = Db::open(Options { url, connections: 2, key: sealing_key(), clock }).await.unwrap();
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

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_value_of_every_table_is_restored() {
    let db = TestDb::new().await;
    let folder = tempfile::tempdir().unwrap();
    let file = full(folder.path(), db.clock.clone()).await;
    // Twice, because a restore also replaces existing rows.
    restore(&db.db, &file).await;
    restore(&db.db, &file).await;
    let again = folder.path().join("again.db");
    std::fs::write(&again, "").unwrap();
    let mut reports = Vec::new();
    let contents =
        backup::write(&db.db, &again, &mut |done, all| reports.push((done, all))).await.unwrap();
    assert!(reports.last().is_some_and(|(done, all)| done == all), "{reports:?}");
    let (one, two) = (Connection::open(&file).unwrap(), Connection::open(&again).unwrap());
    let names = tables(&one);
    assert!(names.len() > 20, "{names:?}");
    assert_eq!(names, tables(&two));
    for table in &names {
        let before = rows(&one, table);
        assert_eq!(before.len(), usize::try_from(ROWS).unwrap(), "{table}");
        assert!(before == rows(&two, table), "{table} differs");
    }
    let counted: Vec<_> = names.into_iter().map(|name| (name, ROWS.unsigned_abs())).collect();
    assert_eq!(contents.rows, counted);
    // The backup is one file without a write-ahead log.
    let mode: String = two.query_row("PRAGMA journal_mode", [], |r| r.get(0)).unwrap();
    assert_eq!(mode, "delete");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn new_ids_follow_the_restored_ids() {
    let db = TestDb::new().await;
    let folder = tempfile::tempdir().unwrap();
    restore(&db.db, &full(folder.path(), db.clock.clone()).await).await;
    let mut tx = db.db.write().await.unwrap();
    let account = accounts::insert(&mut tx, "new@example.com", "EUR", START).await.unwrap();
    assert_eq!(account, AccountId(ROWS + 1));
    let carrier = carriers::get_or_create(&mut tx, "a new one").await.unwrap();
    assert_eq!(i64::from(carrier.0), ROWS + 1);
    tx.commit().await.unwrap();
}

/// Restores a backup of every earlier schema version.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_older_backup_is_migrated() {
    let db = TestDb::new().await;
    let folder = tempfile::tempdir().unwrap();
    let new = full(folder.path(), db.clock.clone()).await;
    let migrations = migration_files("sqlite");
    for version in 1..migrations.len() {
        let old = folder.path().join(format!("{version}.db"));
        let conn = Connection::open(&old).unwrap();
        for name in &migrations[..version] {
            let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("migrations/sqlite").join(name);
            conn.execute_batch(&std::fs::read_to_string(path).unwrap()).unwrap();
        }
        conn.execute("ATTACH $1 AS new", [new.to_str().unwrap()]).unwrap();
        conn.execute_batch(&format!(
            "CREATE TABLE schema_migrations AS
                 SELECT * FROM new.schema_migrations WHERE version <= {version};
             INSERT INTO accounts SELECT * FROM new.accounts WHERE id <= 7;",
        ))
        .unwrap();
        drop(conn);
        let before = std::fs::read(&old).unwrap();
        let scratch = folder.path().join("scratch");
        let mut backup = Backup::open(&old, &scratch).await.unwrap();
        let found = usize::try_from(backup.contents().version).unwrap();
        assert_eq!((found, scratch.exists()), (version, true));
        let mut tx = db.db.write().await.unwrap();
        backup.replace(&mut tx, &mut |_, _| {}).await.unwrap();
        tx.commit().await.unwrap();
        drop(backup);
        assert!(!scratch.exists() && before == std::fs::read(&old).unwrap());
        assert_eq!(accounts::all(&mut db.db.read().await.unwrap()).await.unwrap().len(), 7);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_uncommitted_restore_changes_nothing() {
    let db = TestDb::new().await;
    let folder = tempfile::tempdir().unwrap();
    let file = full(folder.path(), db.clock.clone()).await;
    let ann = crate::fixtures::account(&db, "ann@example.com", 5).await;
    let mut backup = Backup::open(&file, &folder.path().join("scratch")).await.unwrap();
    let mut tx = db.db.write().await.unwrap();
    backup.replace(&mut tx, &mut |_, _| {}).await.unwrap();
    drop(tx);
    assert_eq!(crate::fixtures::balance(&db.db, ann).await, (5, 0));
    assert_eq!(accounts::all(&mut db.db.read().await.unwrap()).await.unwrap().len(), 1);
}

/// Returns the reason why a file is rejected.
async fn rejection(path: &Path) -> String {
    match Backup::open(path, &path.with_extension("scratch")).await.map(drop) {
        Err(StoreError::Backup(why)) => why,
        other => panic!("{other:?}"),
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_invalid_backup_is_rejected_with_the_reason() {
    let db = TestDb::sqlite().await;
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
        (put("empty", b""), "not a SQLite database"),
        (put("text", b"Dear diary, I have no backup"), "not a SQLite database"),
        (other, "SQLite database of another program"),
        (put("head", &whole[..100]), "malformed"),
        (put("half", &whole[..whole.len() / 2]), "malformed"),
        (put("damaged", &damaged), "damaged"),
        (
            altered("newer", "INSERT INTO schema_migrations VALUES (99, 'later', '', '1')"),
            "schema has version 99",
        ),
        (
            altered("foreign", "UPDATE schema_migrations SET checksum = '1' WHERE version = 1"),
            "not Heliograph's",
        ),
        (
            altered("dangling", "PRAGMA foreign_keys = OFF; DELETE FROM accounts"),
            "refers to missing rows",
        ),
    ] {
        let why = rejection(&path).await;
        assert!(why.contains(hint) && why.starts_with(path.to_str().unwrap()), "{why}");
        assert!(!path.with_extension("scratch").exists());
    }
}
