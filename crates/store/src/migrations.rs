//! The schema's steps, forward only, the same numbers and names for both engines.

use crate::error::{Error, Result};
use refinery::{Migration, Runner};
use rusqlite::Connection;

mod embedded {
    pub(crate) mod sqlite {
        refinery::embed_migrations!("migrations/sqlite");
    }
    pub(crate) mod postgres {
        refinery::embed_migrations!("migrations/postgres");
    }
}

/// Where refinery writes down which steps were taken.
pub(crate) const HISTORY: &str = "refinery_schema_history";

/// Guards the schema of one PostgreSQL database while a node changes it.
const LOCK: i64 = 0x0068_656c_696f_6772;

/// Brings a SQLite file up to date; the caller sees to it that no other process does the same.
pub(crate) fn sqlite(conn: &mut Connection) -> Result<()> {
    embedded::sqlite::migrations::runner()
        .run(conn)
        .map(drop)
        .map_err(|e| Error::Db(format!("the schema could not be brought up to date: {e}")))
}

/// Brings a PostgreSQL database up to date, one node at a time, on a connection that is for nothing else: a
/// large table takes what it takes, and another node waits for it.
pub(crate) async fn postgres(client: &mut tokio_postgres::Client) -> Result<()> {
    let failed = |e: tokio_postgres::Error| Error::Unavailable(crate::db_postgres::words(&e));
    let patience = "SET statement_timeout = 0; SET lock_timeout = 0;";
    client.batch_execute(patience).await.map_err(failed)?;
    client.execute("SELECT pg_advisory_lock($1)", &[&LOCK]).await.map_err(failed)?;
    let done = embedded::postgres::migrations::runner().run_async(client).await;
    client.execute("SELECT pg_advisory_unlock($1)", &[&LOCK]).await.map_err(failed)?;
    done.map(drop)
        .map_err(|e| Error::Db(format!("the schema could not be brought up to date: {e}")))
}

/// The version that the schema has when all steps of this program are taken.
pub(crate) fn known() -> i32 {
    let steps = embedded::sqlite::migrations::runner();
    steps.get_migrations().iter().map(Migration::version).max().unwrap_or(0)
}

/// The version of a SQLite file's schema; `None` when no step was ever taken in it.
pub(crate) fn sqlite_version(conn: &mut Connection) -> Result<Option<i32>> {
    let failed = crate::db_sqlite::failed;
    if !conn.table_exists(None, HISTORY).map_err(failed)? {
        return Ok(None);
    }
    let steps = embedded::sqlite::migrations::runner();
    let taken = steps.get_applied_migrations(conn).map_err(unreadable)?;
    judge(&steps, &taken)
}

/// The version of a PostgreSQL database's schema; `None` when no step was ever taken in it.
pub(crate) async fn postgres_version(client: &mut tokio_postgres::Client) -> Result<Option<i32>> {
    let failed = |e: tokio_postgres::Error| Error::Unavailable(crate::db_postgres::words(&e));
    let sql = "SELECT to_regclass($1) IS NOT NULL";
    let there = client.query_one(sql, &[&HISTORY]).await.map_err(failed)?;
    if !there.try_get(0).map_err(failed)? {
        return Ok(None);
    }
    let steps = embedded::postgres::migrations::runner();
    let taken = steps.get_applied_migrations_async(client).await.map_err(unreadable)?;
    judge(&steps, &taken)
}

fn unreadable(e: refinery::Error) -> Error {
    Error::Db(format!("the schema's history can't be read: {e}"))
}

/// The last step that was taken, if all were steps of this program, or of one before it.
fn judge(steps: &Runner, taken: &[Migration]) -> Result<Option<i32>> {
    let last = taken.iter().map(Migration::version).max();
    if let Some(version) = last.filter(|v| *v > known()) {
        return Err(Error::Db(format!(
            "its schema has version {version}, and this program knows version {} at most: use a newer heliograph",
            known()
        )));
    }
    let same = |a: &Migration, b: &Migration| {
        (a.version(), a.name(), a.checksum()) == (b.version(), b.name(), b.checksum())
    };
    match taken.iter().find(|t| !steps.get_migrations().iter().any(|s| same(s, t))) {
        Some(other) => Err(Error::Db(format!(
            "its schema is not Heliograph's: step {} '{}' is another one",
            other.version(),
            other.name()
        ))),
        None => Ok(last),
    }
}
