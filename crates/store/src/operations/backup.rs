//! Backup of the whole database, as of one instant, to one SQLite file, and restore from it into
//! either engine.
//!
//! The tables are read from the catalogue of the file, so that none can be forgotten.

use crate::db::copy as db_copy;
use crate::db::migrations;
use crate::db::row;
use crate::db::value::{Cell, Value};
use crate::db::{Conn, Db, Tx};
use crate::error::{StoreError, StoreResult};
use std::path::{Path, PathBuf};

/// The number of rows in memory at once.
const ROWS: usize = 2_000;

/// Called with the amount that is done and the total.
pub type ProgressCallback<'p> = &'p mut dyn FnMut(u64, u64);

/// The contents of a backup.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct BackupContents {
    /// The schema version.
    pub version: i32,
    /// The tables by name, with the number of rows.
    pub rows: Vec<(String, u64)>,
}

/// A verified backup, open for reading.
pub struct Backup {
    file: Conn,
    tables: Vec<Table>,
    contents: BackupContents,
    /// The migrated copy of an older backup, which is deleted with it.
    _scratch: Option<Scratch>,
}

/// A table.
#[derive(Clone, PartialEq, Eq, Debug)]
struct Table {
    name: String,
    columns: Vec<String>,
    /// The positions of the key's columns, in the order of the key.
    key: Vec<usize>,
}

/// A file that is deleted on drop.
struct Scratch(PathBuf);

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

/// Copies a snapshot of the database into the empty file at `path`. Writers are not blocked. The
/// file is not synced.
///
/// # Errors
/// [`StoreError::Backup`] when the copy differs from the database.
pub async fn write(
    db: &Db,
    path: &Path,
    progress: ProgressCallback<'_>,
) -> StoreResult<BackupContents> {
    let mut from = db.snapshot().await?;
    let mut to = match &*from {
        Conn::Sqlite(_) => None,
        Conn::Postgres(_) => Some(db_copy::make(path)?),
    };
    let tables = tables(to.as_mut().unwrap_or(&mut from)).await?;
    disable_timeouts(&mut from).await?;
    // The first statement takes the snapshot from which everything is copied.
    let expected = count(&mut from, &tables).await?;
    match (&mut *from, &mut to) {
        (Conn::Sqlite(from), None) => from.copy_pages(path, progress)?,
        (from, Some(to)) => {
            to.execute("BEGIN", &[]).await?;
            clear(to, &tables).await?;
            copy(from, to, &tables, &mut Count::of(&expected, progress)).await?;
            to.execute("COMMIT", &[]).await?;
        }
        (Conn::Postgres(_), None) => {}
    }
    drop((from, to));
    let (mut file, version) = open(path)?;
    let rows = inspect(&mut file).await.map_err(|e| of(path, e))?;
    if rows != expected {
        let what = format!("{}: the copy differs from the database", path.display());
        return Err(StoreError::Backup(what));
    }
    Ok(BackupContents { version, rows })
}

impl Backup {
    /// Opens and verifies a backup. A backup of an older schema version is copied to `scratch` and
    /// migrated there; the file itself is never changed.
    ///
    /// # Errors
    /// [`StoreError::Backup`] with the reason.
    pub async fn open(path: &Path, scratch: &Path) -> StoreResult<Self> {
        let wrong = |e: StoreError| of(path, e);
        let (mut file, version) = open(path)?;
        let mut rows = inspect(&mut file).await.map_err(wrong)?;
        let copy = (version < migrations::known()).then(|| Scratch(scratch.to_owned()));
        if copy.is_some() {
            drop(file);
            std::fs::copy(path, scratch)
                .map_err(|e| StoreError::Backup(format!("{}: {e}", scratch.display())))?;
            db_copy::migrate(scratch).map_err(wrong)?;
            file = open(scratch)?.0;
            rows = inspect(&mut file).await.map_err(wrong)?;
        }
        let tables = tables(&mut file).await.map_err(wrong)?;
        let contents = BackupContents { version, rows };
        Ok(Self { file, tables, contents, _scratch: copy })
    }

    /// Returns the contents: the schema version of the file and the rows that a restore inserts.
    pub const fn contents(&self) -> &BackupContents {
        &self.contents
    }

    /// Replaces the whole database with the backup.
    ///
    /// # Errors
    /// [`StoreError::Backup`] when the number of rows differs afterwards.
    pub async fn replace(
        &mut self,
        tx: &mut Tx,
        progress: ProgressCallback<'_>,
    ) -> StoreResult<()> {
        disable_timeouts(tx).await?;
        clear(tx, &self.tables).await?;
        let mut done = Count::of(&self.contents.rows, progress);
        copy(&mut self.file, tx, &self.tables, &mut done).await?;
        restart_identities(tx, &self.tables).await?;
        if count(tx, &self.tables).await? != self.contents.rows {
            return Err(StoreError::Backup(
                "not all rows were restored; nothing was changed".to_owned(),
            ));
        }
        Ok(())
    }
}

/// The number of copied rows, and the callback that reports it.
struct Count<'p> {
    done: u64,
    all: u64,
    progress: ProgressCallback<'p>,
}

impl<'p> Count<'p> {
    fn of(rows: &[(String, u64)], progress: ProgressCallback<'p>) -> Self {
        Self { done: 0, all: rows.iter().map(|(_, n)| n).sum(), progress }
    }
}

/// Turns an error into one about this file.
fn of(path: &Path, e: StoreError) -> StoreError {
    let what = match e {
        StoreError::Unavailable(what)
        | StoreError::Conflict(what)
        | StoreError::CommitLost(what)
        | StoreError::Corrupt(what)
        | StoreError::Db(what)
        | StoreError::Backup(what) => what,
        StoreError::WrongKey => e.to_string(),
    };
    StoreError::Backup(format!("{}: {what}", path.display()))
}

fn open(path: &Path) -> StoreResult<(Conn, i32)> {
    let wrong = |what: &str| StoreError::Backup(format!("{}: {what}", path.display()));
    let mut head = [0; 16];
    let begins =
        std::fs::File::open(path).and_then(|mut f| std::io::Read::read_exact(&mut f, &mut head));
    match begins {
        Err(e) if e.kind() != std::io::ErrorKind::UnexpectedEof => {
            return Err(wrong(&e.to_string()));
        }
        Ok(()) if head == *b"SQLite format 3\0" => {}
        _ => return Err(wrong("not a backup: not a SQLite database")),
    }
    let (file, version) = db_copy::look(path).map_err(|e| of(path, e))?;
    match version {
        Some(version) => Ok((file, version)),
        None => Err(wrong("not a backup: the SQLite database of another program")),
    }
}

/// Verifies a whole file and returns its tables with the number of rows.
async fn inspect(file: &mut Conn) -> StoreResult<Vec<(String, u64)>> {
    let sound = file.query("PRAGMA integrity_check(1)", &[], row::get::<String>).await?;
    if let Some(fault) = sound.into_iter().find(|line| line != "ok") {
        return Err(StoreError::Backup(format!("the file is damaged: {fault}")));
    }
    let dangling = file.query("PRAGMA foreign_key_check", &[], |r| r.get::<String>()).await?;
    if let Some(table) = dangling.first() {
        return Err(StoreError::Backup(format!(
            "the file is damaged: {table} refers to missing rows"
        )));
    }
    let tables = tables(file).await?;
    let rows = count(file, &tables).await?;
    Ok(rows)
}

/// Returns the tables of a SQLite file in the order of their foreign keys: referenced tables come
/// first.
async fn tables(conn: &mut Conn) -> StoreResult<Vec<Table>> {
    let sql = "SELECT t.name, c.name, c.pk FROM sqlite_schema t JOIN pragma_table_info(t.name) c
        WHERE t.type = 'table' AND t.name NOT LIKE 'sqlite\\_%' ESCAPE '\\' AND t.name <> $1 ORDER BY t.name, c.cid";
    let columns = conn
        .query(sql, &[migrations::HISTORY.into()], |r| {
            Ok((r.get::<String>()?, r.get::<String>()?, r.get::<i64>()?))
        })
        .await?;
    let mut left: Vec<(Table, Vec<i64>)> = Vec::new();
    for (name, column, key) in columns {
        if left.last().is_none_or(|(t, _)| t.name != name) {
            left.push((Table { name, columns: Vec::new(), key: Vec::new() }, Vec::new()));
        }
        if let Some((table, keys)) = left.last_mut() {
            table.columns.push(column);
            keys.push(key);
        }
    }
    let sql =
        "SELECT t.name, f.\"table\" FROM sqlite_schema t JOIN pragma_foreign_key_list(t.name) f
        WHERE t.type = 'table' AND f.\"table\" <> t.name";
    let refers: Vec<(String, String)> = conn.query(sql, &[], |r| Ok((r.get()?, r.get()?))).await?;
    let left = left.into_iter().map(|(table, keys)| Table { key: in_order(&keys), ..table });
    Ok(sorted(left.collect(), &refers))
}

/// Returns the positions of the key's columns. Each place is the column's place in the key, or 0.
fn in_order(places: &[i64]) -> Vec<usize> {
    let mut key: Vec<_> = places.iter().enumerate().filter(|(_, place)| **place > 0).collect();
    key.sort_by_key(|(_, place)| **place);
    key.into_iter().map(|(at, _)| at).collect()
}

/// Sorts each table behind those that it refers to.
fn sorted(mut left: Vec<Table>, refers: &[(String, String)]) -> Vec<Table> {
    let mut done: Vec<Table> = Vec::with_capacity(left.len());
    while !left.is_empty() {
        let waits = |t: &Table| {
            refers.iter().any(|(from, to)| *from == t.name && left.iter().any(|l| l.name == *to))
        };
        // With a cycle no order would work, so any table will do.
        let next = left.iter().position(|t| !waits(t)).unwrap_or(0);
        done.push(left.remove(next));
    }
    done
}

/// Disables the timeouts of PostgreSQL for the statements of a copy.
async fn disable_timeouts(conn: &mut Conn) -> StoreResult<()> {
    if let Conn::Postgres(_) = conn {
        conn.execute("SET LOCAL statement_timeout = 0", &[]).await?;
        conn.execute("SET LOCAL idle_in_transaction_session_timeout = 0", &[]).await?;
    }
    Ok(())
}

async fn clear(conn: &mut Conn, tables: &[Table]) -> StoreResult<()> {
    if let Conn::Postgres(_) = conn {
        let names: Vec<_> = tables.iter().map(|t| t.name.as_str()).collect();
        conn.execute_made(&format!("TRUNCATE {}", names.join(", ")), &[]).await?;
        return Ok(());
    }
    for table in tables.iter().rev() {
        conn.execute_made(&format!("DELETE FROM {}", table.name), &[]).await?;
    }
    Ok(())
}

async fn count(conn: &mut Conn, tables: &[Table]) -> StoreResult<Vec<(String, u64)>> {
    let mut rows = Vec::with_capacity(tables.len());
    for table in tables {
        let sql = format!("SELECT count(*) FROM {}", table.name);
        let n: Vec<i64> = conn.query_made(&sql, &[], row::get).await?;
        rows.push((table.name.clone(), n.first().map_or(0, |n| n.unsigned_abs())));
    }
    rows.sort();
    Ok(rows)
}

async fn copy(
    from: &mut Conn,
    to: &mut Conn,
    tables: &[Table],
    count: &mut Count<'_>,
) -> StoreResult<()> {
    for table in tables {
        let mut last: Option<Vec<Cell>> = None;
        loop {
            let rows = page(from, table, last.as_deref()).await?;
            insert(to, table, &rows).await.map_err(|e| at(table, e))?;
            count.done += rows.len() as u64;
            (count.progress)(count.done, count.all);
            match rows.last() {
                Some(row) if rows.len() == ROWS => {
                    last = Some(table.key.iter().filter_map(|i| row.get(*i).cloned()).collect());
                }
                _ => break,
            }
        }
    }
    Ok(())
}

/// Adds the table's name to an error.
fn at(table: &Table, e: StoreError) -> StoreError {
    match e {
        StoreError::Db(e) => StoreError::Db(format!("{}: {e}", table.name)),
        other => other,
    }
}

/// Returns the next rows after the key `last`.
async fn page(
    conn: &mut Conn,
    table: &Table,
    last: Option<&[Cell]>,
) -> StoreResult<Vec<Vec<Cell>>> {
    let key: Vec<&str> =
        table.key.iter().filter_map(|i| table.columns.get(*i)).map(String::as_str).collect();
    let key = key.join(", ");
    let behind = last.map_or(String::new(), |last| {
        let places: Vec<_> = (1..=last.len()).map(|n| format!("${n}")).collect();
        format!("WHERE ({key}) > ({})", places.join(", "))
    });
    let (columns, name) = (table.columns.join(", "), &table.name);
    let sql = format!("SELECT {columns} FROM {name} {behind} ORDER BY {key} LIMIT {ROWS}");
    let last: Vec<Value<'_>> = last.unwrap_or_default().iter().map(Value::from).collect();
    let width = table.columns.len();
    conn.query_made(&sql, &last, |r| (0..width).map(|_| r.cell()).collect()).await
}

async fn insert(conn: &mut Conn, table: &Table, rows: &[Vec<Cell>]) -> StoreResult<()> {
    let columns = table.columns.join(", ");
    if let Conn::Postgres(c) = conn {
        return c.copy_in((&table.name, &columns), rows).await;
    }
    let places: Vec<_> = (1..=table.columns.len()).map(|n| format!("${n}")).collect();
    let sql = format!("INSERT INTO {} ({columns}) VALUES ({})", table.name, places.join(", "));
    for row in rows {
        let values: Vec<Value<'_>> = row.iter().map(Value::from).collect();
        conn.execute_made(&sql, &values).await?;
    }
    Ok(())
}

/// Restarts the identity columns of PostgreSQL after the copied ids. SQLite needs no such step.
async fn restart_identities(conn: &mut Conn, tables: &[Table]) -> StoreResult<()> {
    if matches!(conn, Conn::Sqlite(_)) {
        return Ok(());
    }
    let sql = "SELECT c.relname::text, a.attname::text FROM pg_attribute a JOIN pg_class c ON c.oid = a.attrelid
        WHERE c.relnamespace = current_schema()::regnamespace AND a.attidentity <> ''";
    let identities: Vec<(String, String)> =
        conn.query_made(sql, &[], |r| Ok((r.get()?, r.get()?))).await?;
    for (name, column) in identities {
        if !tables.iter().any(|t| t.name == name) {
            continue;
        }
        let sql = format!("SELECT coalesce(max({column}), 0)::bigint + 1 FROM {name}");
        let next: Vec<i64> = conn.query_made(&sql, &[], row::get).await?;
        let next = next.first().copied().unwrap_or(1);
        let sql = format!("ALTER TABLE {name} ALTER COLUMN {column} RESTART WITH {next}");
        conn.execute_made(&sql, &[]).await?;
    }
    Ok(())
}
