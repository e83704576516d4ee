//! What copying whole databases needs of the two drivers: files apart, pages of them, values of any type.

use crate::db::Conn;
use crate::db_postgres::{PgConn, RawRow as PostgresRow, failed as pg_failed};
use crate::db_sqlite::{RawRow as SqliteRow, SqliteConn, failed};
use crate::error::{Error, Result};
use crate::migrations;
use crate::value::{Cell, Value};
use rusqlite::backup::{Backup, StepResult};
use rusqlite::types::ValueRef;
use rusqlite::{Connection, OpenFlags};
use std::path::Path;
use std::pin::pin;
use tokio_postgres::binary_copy::BinaryCopyInWriter;
use tokio_postgres::types::{ToSql, Type};

/// Pages of a SQLite file that are copied between two reports of progress.
const PAGES: std::ffi::c_int = 4_096;

/// Makes the file at `path`, which is empty, a database with our schema and nothing in it. Nothing of it is safe
/// before the file is synced: whoever fails throws it away.
pub(crate) fn make(path: &Path) -> Result<Conn> {
    let mut conn = alone(path, OpenFlags::SQLITE_OPEN_READ_WRITE)?;
    conn.execute_batch(
        "PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF; PRAGMA foreign_keys = OFF;",
    )
    .map_err(failed)?;
    migrations::sqlite(&mut conn)?;
    Ok(Conn::Sqlite(SqliteConn::Alone(conn)))
}

/// Opens a finished file for reading; its schema's version, `None` when it is none of ours.
pub(crate) fn look(path: &Path) -> Result<(Conn, Option<i32>)> {
    let conn = alone(path, OpenFlags::SQLITE_OPEN_READ_ONLY)?;
    let version = migrations::sqlite_version(&conn)?;
    Ok((Conn::Sqlite(SqliteConn::Alone(conn)), version))
}

/// The version of the schema in a file, if there is one.
pub(crate) fn sqlite_version(path: &Path) -> Result<Option<i32>> {
    match path.exists() {
        true => migrations::sqlite_version(&alone(path, OpenFlags::SQLITE_OPEN_READ_ONLY)?),
        false => Ok(None),
    }
}

/// Takes the steps in a file that it still lacks.
pub(crate) fn migrate(path: &Path) -> Result<()> {
    migrations::sqlite(&mut alone(path, OpenFlags::SQLITE_OPEN_READ_WRITE)?)
}

fn alone(path: &Path, flags: OpenFlags) -> Result<Connection> {
    let conn = Connection::open_with_flags(path, flags | OpenFlags::SQLITE_OPEN_NO_MUTEX);
    let conn = conn.map_err(failed)?;
    conn.execute_batch("PRAGMA trusted_schema = OFF; PRAGMA cache_size = -32768;")
        .map_err(failed)?;
    Ok(conn)
}

impl SqliteConn {
    /// Copies the whole file, page by page, to the empty file at `path`. The caller has begun to read in a
    /// transaction: it is copied as it was then, however long it takes, and writers go on meanwhile.
    pub(crate) fn copy_pages(&self, path: &Path, progress: &mut dyn FnMut(u64, u64)) -> Result<()> {
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
                _ => return Err(Error::Unavailable("the file is locked".to_owned())),
            }
        }
        drop(backup);
        drop(to);
        // The pages say that there is a log beside the file. Nobody else knows the file, so none is needed.
        let to = alone(path, OpenFlags::SQLITE_OPEN_READ_WRITE)?;
        to.execute_batch("PRAGMA locking_mode = EXCLUSIVE; PRAGMA journal_mode = DELETE;")
            .map_err(failed)
    }
}

impl PgConn {
    /// Appends rows to a table, whose columns are given as a statement names them.
    pub(crate) async fn copy_in(
        &mut self,
        (table, columns): (&str, &str),
        rows: &[Vec<Cell>],
    ) -> Result<()> {
        // Also sends what waits to go ahead.
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

/// A value of any type, as SQLite has it.
pub(crate) fn sqlite_cell(row: &SqliteRow<'_>, i: usize) -> Result<Cell> {
    Ok(match row.get_ref(i).map_err(failed)? {
        ValueRef::Null => Cell::Null,
        ValueRef::Integer(v) => Cell::Int(v),
        ValueRef::Text(v) => Cell::Text(String::from_utf8(v.to_vec()).map_err(Error::corrupt)?),
        ValueRef::Blob(v) => Cell::Bytes(v.to_vec()),
        ValueRef::Real(_) => {
            return Err(Error::corrupt(format_args!("column {i} is no whole number")));
        }
    })
}

/// A value of any type that our schema has, as PostgreSQL has it.
pub(crate) fn postgres_cell(row: &PostgresRow, i: usize) -> Result<Cell> {
    let bad = || Error::corrupt(format_args!("there is no column {i}"));
    let cell = match *row.columns().get(i).ok_or_else(bad)?.type_() {
        Type::INT2 => row.try_get::<_, Option<i16>>(i).map(|v| v.map(|v| Cell::Int(v.into()))),
        Type::INT4 => row.try_get::<_, Option<i32>>(i).map(|v| v.map(|v| Cell::Int(v.into()))),
        Type::INT8 => row.try_get::<_, Option<i64>>(i).map(|v| v.map(Cell::Int)),
        Type::BYTEA => row.try_get::<_, Option<Vec<u8>>>(i).map(|v| v.map(Cell::Bytes)),
        Type::UUID => row
            .try_get::<_, Option<uuid::Uuid>>(i)
            .map(|v| v.map(|v| Cell::Bytes(v.as_bytes().to_vec()))),
        _ => row.try_get::<_, Option<String>>(i).map(|v| v.map(Cell::Text)),
    };
    cell.map(|c| c.unwrap_or(Cell::Null)).map_err(|e| pg_failed(&e))
}
