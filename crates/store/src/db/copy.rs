//! Driver functions for backups: separate SQLite files, page copies and COPY.

use crate::db::conn::Conn;
use crate::db::migrations;
use crate::db::postgres::PgConn;
use crate::db::postgres_error::failed as pg_failed;
use crate::db::sqlite::SqliteConn;
use crate::db::sqlite_error::failed;
use crate::db::value::{Cell, Value};
use crate::error::{StoreError, StoreResult};
use rusqlite::backup::{Backup, StepResult};
use rusqlite::{Connection, OpenFlags};
use std::path::Path;
use std::pin::pin;
use tokio_postgres::binary_copy::BinaryCopyInWriter;
use tokio_postgres::types::{ToSql, Type};

/// The number of pages of a SQLite file that are copied between two progress reports.
const PAGES: std::ffi::c_int = 4_096;

/// Creates an empty database with the current schema in the empty file at `path`. Nothing is
/// durable until the file is synced: after an error the caller deletes the file.
pub(crate) fn make(path: &Path) -> StoreResult<Conn> {
    let mut conn = alone(path, OpenFlags::SQLITE_OPEN_READ_WRITE)?;
    conn.execute_batch(
        "PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF; PRAGMA foreign_keys = OFF;",
    )
    .map_err(failed)?;
    migrations::sqlite(&mut conn)?;
    Ok(Conn::Sqlite(SqliteConn::Alone(conn)))
}

/// Opens a finished file for reading and returns its schema version; `None` when it is not a
/// Heliograph database.
pub(crate) fn look(path: &Path) -> StoreResult<(Conn, Option<i32>)> {
    let conn = alone(path, OpenFlags::SQLITE_OPEN_READ_ONLY)?;
    let version = migrations::sqlite_version(&conn)?;
    Ok((Conn::Sqlite(SqliteConn::Alone(conn)), version))
}

/// Returns the schema version of a file, if the file exists and has one.
pub(crate) fn sqlite_version(path: &Path) -> StoreResult<Option<i32>> {
    match path.exists() {
        true => migrations::sqlite_version(&alone(path, OpenFlags::SQLITE_OPEN_READ_ONLY)?),
        false => Ok(None),
    }
}

/// Returns whether a file exists and holds users.
pub(crate) fn sqlite_has_users(path: &Path) -> StoreResult<bool> {
    if sqlite_version(path)?.is_none() {
        return Ok(false);
    }
    let file = alone(path, OpenFlags::SQLITE_OPEN_READ_ONLY)?;
    file.query_row("SELECT EXISTS (SELECT 1 FROM users)", [], |row| row.get(0)).map_err(failed)
}

/// Migrates a file to the current schema.
pub(crate) fn migrate(path: &Path) -> StoreResult<()> {
    migrations::sqlite(&mut alone(path, OpenFlags::SQLITE_OPEN_READ_WRITE)?)
}

fn alone(path: &Path, flags: OpenFlags) -> StoreResult<Connection> {
    let conn = Connection::open_with_flags(path, flags | OpenFlags::SQLITE_OPEN_NO_MUTEX);
    let conn = conn.map_err(failed)?;
    conn.execute_batch("PRAGMA trusted_schema = OFF; PRAGMA cache_size = -32768;")
        .map_err(failed)?;
    Ok(conn)
}

impl SqliteConn {
    /// Copies the whole file, page by page, to the empty file at `path`. The caller has begun a
    /// read transaction, so the copy is a snapshot of that moment, however long it takes. Writers
    /// are not blocked.
    pub(crate) fn copy_pages(
        &self,
        path: &Path,
        progress: &mut dyn FnMut(u64, u64),
    ) -> StoreResult<()> {
        let mut to = alone(path, OpenFlags::SQLITE_OPEN_READ_WRITE)?;
        to.execute_batch("PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF;").map_err(failed)?;
        let backup = Backup::new(self.conn()?, &mut to).map_err(failed)?;
        loop {
            let step = backup.step(PAGES).map_err(failed)?;
            let (left, all) = (backup.progress().remaining, backup.progress().pagecount);
            progress(all.abs_diff(left).into(), all.unsigned_abs().into());
            match step {
                StepResult::Done => break,
                StepResult::More => {}
                _ => return Err(StoreError::Unavailable("the file is locked".to_owned())),
            }
        }
        drop(backup);
        drop(to);
        // The copied header says WAL mode. No other process uses the file, so it needs no
        // write-ahead log.
        let to = alone(path, OpenFlags::SQLITE_OPEN_READ_WRITE)?;
        to.execute_batch("PRAGMA locking_mode = EXCLUSIVE; PRAGMA journal_mode = DELETE;")
            .map_err(failed)
    }
}

impl PgConn {
    /// Appends rows to a table by COPY. The column list is as in a statement.
    pub(crate) async fn copy_in(
        &mut self,
        (table, columns): (&str, &str),
        rows: &[Vec<Cell>],
    ) -> StoreResult<()> {
        // Also sends pipelined statements.
        self.execute("SELECT 1", &[]).await?;
        let client = self.client()?;
        let read = client.prepare_cached(&format!("SELECT {columns} FROM {table}")).await;
        let read = read.map_err(|e| pg_failed(&e))?;
        let types: Vec<Type> = read.columns().iter().map(|c| c.type_().clone()).collect();
        let copy = format!("COPY {table} ({columns}) FROM STDIN BINARY");
        let sink = client.copy_in(&copy).await.map_err(|e| pg_failed(&e))?;
        let mut writer = pin!(BinaryCopyInWriter::new(sink, &types));
        for row in rows {
            let values: Vec<Value<'_>> = row.iter().map(Value::from).collect();
            let values: Vec<_> = values.iter().map(|v| v as &(dyn ToSql + Sync)).collect();
            writer.as_mut().write(&values).await.map_err(|e| pg_failed(&e))?;
        }
        writer.finish().await.map(drop).map_err(|e| pg_failed(&e))
    }
}
