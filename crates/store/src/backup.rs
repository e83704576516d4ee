//! Backups: all that the database holds, as of one instant, in one SQLite file, and back from it into either engine.
//!
//! Which tables there are is read from the file's own catalogue, so that none can be forgotten.

use crate::db::{Conn, Db, Tx};
use crate::db_copy;
use crate::error::{Error, Result};
use crate::migrations;
use crate::value::{Cell, Value};
use std::path::{Path, PathBuf};

/// Rows that are in memory at once.
const ROWS: usize = 2_000;

/// Hears how much is done, of how much.
pub type Progress<'p> = &'p mut dyn FnMut(u64, u64);

/// What is in a backup.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Contents {
    /// The version of its schema.
    pub version: i32,
    /// Every table, by name, with the number of its rows.
    pub rows: Vec<(String, u64)>,
}

/// A backup that was looked through and found sound, open for reading.
pub struct Backup {
    file: Conn,
    tables: Vec<Table>,
    contents: Contents,
    /// What was made to look at it, and goes with it.
    _scratch: Option<Scratch>,
}

/// A table of ours.
#[derive(Clone, PartialEq, Eq, Debug)]
struct Table {
    name: String,
    columns: Vec<String>,
    /// Which of them are the key, in its order.
    key: Vec<usize>,
}

/// A file that is removed when it is no longer needed.
struct Scratch(PathBuf);

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

/// Copies all that the database holds into the empty file at `path`, as it is when this begins; writers go on
/// meanwhile. The file is not synced.
///
/// # Errors
/// As any read; [`Error::Backup`] when the copy is not what it should be.
pub async fn write(db: &Db, path: &Path, progress: Progress<'_>) -> Result<Contents> {
    let mut from = db.snapshot().await?;
    let mut to = match &*from {
        Conn::Sqlite(_) => None,
        Conn::Postgres(_) => Some(db_copy::make(path)?),
    };
    let tables = tables(to.as_mut().unwrap_or(&mut from)).await?;
    be_patient(&mut from).await?;
    // The first look at a table is the instant as of which everything is copied.
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
        return Err(Error::Backup(what));
    }
    Ok(Contents { version, rows })
}

impl Backup {
    /// Opens a backup and looks through all of it. One of an older version is copied to `scratch` and brought up to
    /// date there; the file itself is never changed.
    ///
    /// # Errors
    /// [`Error::Backup`], with what is wrong with the file.
    pub async fn open(path: &Path, scratch: &Path) -> Result<Self> {
        let wrong = |e: Error| of(path, e);
        let (mut file, version) = open(path)?;
        let mut rows = inspect(&mut file).await.map_err(wrong)?;
        let copy = (version < migrations::known()).then(|| Scratch(scratch.to_owned()));
        if copy.is_some() {
            drop(file);
            std::fs::copy(path, scratch)
                .map_err(|e| Error::Backup(format!("{}: {e}", scratch.display())))?;
            db_copy::migrate(scratch).map_err(wrong)?;
            file = open(scratch)?.0;
            rows = inspect(&mut file).await.map_err(wrong)?;
        }
        let tables = tables(&mut file).await.map_err(wrong)?;
        let contents = Contents { version, rows };
        Ok(Self { file, tables, contents, _scratch: copy })
    }

    /// What is in it: the version is the file's own, the rows are those that will be restored.
    pub const fn contents(&self) -> &Contents {
        &self.contents
    }

    /// Puts what is in the backup in the place of all that the database holds.
    ///
    /// # Errors
    /// As any write; [`Error::Backup`] when not everything arrived.
    pub async fn replace(&mut self, tx: &mut Tx, progress: Progress<'_>) -> Result<()> {
        be_patient(tx).await?;
        clear(tx, &self.tables).await?;
        let mut done = Count::of(&self.contents.rows, progress);
        copy(&mut self.file, tx, &self.tables, &mut done).await?;
        count_on(tx, &self.tables).await?;
        if count(tx, &self.tables).await? != self.contents.rows {
            return Err(Error::Backup("not every row arrived; nothing was changed".to_owned()));
        }
        Ok(())
    }
}

/// How much is done, and who wants to know.
struct Count<'p> {
    done: u64,
    all: u64,
    progress: Progress<'p>,
}

impl<'p> Count<'p> {
    fn of(rows: &[(String, u64)], progress: Progress<'p>) -> Self {
        Self { done: 0, all: rows.iter().map(|(_, n)| n).sum(), progress }
    }
}

/// The same error, as one of this file.
fn of(path: &Path, e: Error) -> Error {
    let what = match e {
        Error::Unavailable(what)
        | Error::Conflict(what)
        | Error::CommitLost(what)
        | Error::Corrupt(what)
        | Error::Db(what)
        | Error::Backup(what) => what,
        Error::WrongKey => e.to_string(),
    };
    Error::Backup(format!("{}: {what}", path.display()))
}

fn open(path: &Path) -> Result<(Conn, i32)> {
    let wrong = |what: &str| Error::Backup(format!("{}: {what}", path.display()));
    let mut head = [0; 16];
    let begins =
        std::fs::File::open(path).and_then(|mut f| std::io::Read::read_exact(&mut f, &mut head));
    match begins {
        Err(e) if e.kind() != std::io::ErrorKind::UnexpectedEof => {
            return Err(wrong(&e.to_string()));
        }
        Ok(()) if head == *b"SQLite format 3\0" => {}
        _ => return Err(wrong("this is no backup: it is no SQLite database")),
    }
    let (file, version) = db_copy::look(path).map_err(|e| of(path, e))?;
    match version {
        Some(version) => Ok((file, version)),
        None => Err(wrong("this is no backup: it is another program's SQLite database")),
    }
}

/// Looks through a whole file; every table with the number of its rows.
async fn inspect(file: &mut Conn) -> Result<Vec<(String, u64)>> {
    let sound = file.query("PRAGMA integrity_check(1)", &[], |r| r.text(0)).await?;
    if let Some(fault) = sound.into_iter().find(|line| line != "ok") {
        return Err(Error::Backup(format!("the file is damaged: {fault}")));
    }
    let dangling = file.query("PRAGMA foreign_key_check", &[], |r| r.text(0)).await?;
    if let Some(table) = dangling.first() {
        return Err(Error::Backup(format!(
            "the file is damaged: {table} speaks of what is not there"
        )));
    }
    let tables = tables(file).await?;
    let rows = count(file, &tables).await?;
    Ok(rows)
}

/// All tables of a SQLite file that hold our data, those that others refer to first.
async fn tables(conn: &mut Conn) -> Result<Vec<Table>> {
    let sql = "SELECT t.name, c.name, c.pk FROM sqlite_schema t JOIN pragma_table_info(t.name) c
        WHERE t.type = 'table' AND t.name NOT LIKE 'sqlite\\_%' ESCAPE '\\' AND t.name <> $1 ORDER BY t.name, c.cid";
    let columns = conn
        .query(sql, &[migrations::HISTORY.into()], |r| Ok((r.text(0)?, r.text(1)?, r.int(2)?)))
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
    let refers = conn.query(sql, &[], |r| Ok((r.text(0)?, r.text(1)?))).await?;
    let left = left.into_iter().map(|(table, keys)| Table { key: in_order(&keys), ..table });
    Ok(sorted(left.collect(), &refers))
}

/// Where the key's columns are; each says which place it has in the key, or 0.
fn in_order(places: &[i64]) -> Vec<usize> {
    let mut key: Vec<_> = places.iter().enumerate().filter(|(_, place)| **place > 0).collect();
    key.sort_by_key(|(_, place)| **place);
    key.into_iter().map(|(at, _)| at).collect()
}

/// Puts each table behind those that it refers to.
fn sorted(mut left: Vec<Table>, refers: &[(String, String)]) -> Vec<Table> {
    let mut done: Vec<Table> = Vec::with_capacity(left.len());
    while !left.is_empty() {
        let waits = |t: &Table| {
            refers.iter().any(|(from, to)| *from == t.name && left.iter().any(|l| l.name == *to))
        };
        // Were there a circle, the order would not matter: nothing would do.
        let next = left.iter().position(|t| !waits(t)).unwrap_or(0);
        done.push(left.remove(next));
    }
    done
}

/// Lets the statements of a copy take what they take.
async fn be_patient(conn: &mut Conn) -> Result<()> {
    if let Conn::Postgres(_) = conn {
        conn.execute("SET LOCAL statement_timeout = 0", &[]).await?;
        conn.execute("SET LOCAL idle_in_transaction_session_timeout = 0", &[]).await?;
    }
    Ok(())
}

async fn clear(conn: &mut Conn, tables: &[Table]) -> Result<()> {
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

async fn count(conn: &mut Conn, tables: &[Table]) -> Result<Vec<(String, u64)>> {
    let mut rows = Vec::with_capacity(tables.len());
    for table in tables {
        let sql = format!("SELECT count(*) FROM {}", table.name);
        let n = conn.query_made(&sql, &[], |r| r.small(0)).await?;
        rows.push((table.name.clone(), n.first().copied().unwrap_or(0)));
    }
    rows.sort();
    Ok(rows)
}

async fn copy(
    from: &mut Conn,
    to: &mut Conn,
    tables: &[Table],
    count: &mut Count<'_>,
) -> Result<()> {
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

/// Says in which table it went wrong.
fn at(table: &Table, e: Error) -> Error {
    match e {
        Error::Db(e) => Error::Db(format!("{}: {e}", table.name)),
        other => other,
    }
}

/// The rows behind the key `last`, as many as are taken at once.
async fn page(conn: &mut Conn, table: &Table, last: Option<&[Cell]>) -> Result<Vec<Vec<Cell>>> {
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
    conn.query_made(&sql, &last, |r| (0..width).map(|i| r.cell(i)).collect()).await
}

async fn insert(conn: &mut Conn, table: &Table, rows: &[Vec<Cell>]) -> Result<()> {
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

/// Lets numbers that PostgreSQL gives itself go on behind those that were copied. SQLite does so by itself.
async fn count_on(conn: &mut Conn, tables: &[Table]) -> Result<()> {
    if matches!(conn, Conn::Sqlite(_)) {
        return Ok(());
    }
    let sql = "SELECT c.relname::text, a.attname::text FROM pg_attribute a JOIN pg_class c ON c.oid = a.attrelid
        WHERE c.relnamespace = current_schema()::regnamespace AND a.attidentity <> ''";
    for (name, column) in conn.query_made(sql, &[], |r| Ok((r.text(0)?, r.text(1)?))).await? {
        if !tables.iter().any(|t| t.name == name) {
            continue;
        }
        let sql = format!("SELECT coalesce(max({column}), 0)::bigint + 1 FROM {name}");
        let next = conn.query_made(&sql, &[], |r| r.int(0)).await?.first().copied().unwrap_or(1);
        let sql = format!("ALTER TABLE {name} ALTER COLUMN {column} RESTART WITH {next}");
        conn.execute_made(&sql, &[]).await?;
    }
    Ok(())
}
