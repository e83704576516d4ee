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

/// A step that was taken, as the database has it: refinery itself panics at a history that it did not write.
struct Taken {
    version: i32,
    name: String,
    checksum: String,
}

const TAKEN: &str = "SELECT version, name, checksum FROM refinery_schema_history";

/// The version of a SQLite file's schema; `None` when no step was ever taken in it.
pub(crate) fn sqlite_version(conn: &Connection) -> Result<Option<i32>> {
    let failed = crate::db_sqlite::failed;
    if !conn.table_exists(None, HISTORY).map_err(failed)? {
        return Ok(None);
    }
    let mut taken = conn.prepare(TAKEN).map_err(failed)?;
    let step = |r: &rusqlite::Row<'_>| {
        Ok(Taken { version: r.get(0)?, name: r.get(1)?, checksum: r.get(2)? })
    };
    let taken = taken.query_map([], step).map_err(failed)?;
    let taken: Vec<Taken> = taken.collect::<rusqlite::Result<_>>().map_err(failed)?;
    judge(&embedded::sqlite::migrations::runner(), &taken)
}

/// The version of a PostgreSQL database's schema; `None` when no step was ever taken in it.
pub(crate) async fn postgres_version(client: &tokio_postgres::Client) -> Result<Option<i32>> {
    let failed = |e: tokio_postgres::Error| Error::Unavailable(crate::db_postgres::words(&e));
    let there = client.query_one("SELECT to_regclass($1) IS NOT NULL", &[&HISTORY]).await;
    if !there.and_then(|r| r.try_get(0)).map_err(failed)? {
        return Ok(None);
    }
    let step = |r: &tokio_postgres::Row| {
        Ok(Taken { version: r.try_get(0)?, name: r.try_get(1)?, checksum: r.try_get(2)? })
    };
    let taken = client.query(TAKEN, &[]).await.map_err(failed)?;
    let taken: Vec<Taken> =
        taken.iter().map(step).collect::<std::result::Result<_, _>>().map_err(failed)?;
    judge(&embedded::postgres::migrations::runner(), &taken)
}

/// The last step that was taken, if all were steps of this program, or of one before it.
fn judge(steps: &Runner, taken: &[Taken]) -> Result<Option<i32>> {
    let last = taken.iter().map(|t| t.version).max();
    if let Some(version) = last.filter(|v| *v > known()) {
        return Err(Error::Db(format!(
            "its schema has version {version}, and this program knows version {} at most: use a newer heliograph",
            known()
        )));
    }
    let same = |ours: &Migration, t: &Taken| {
        (ours.version(), ours.name()) == (t.version, &t.name)
            && ours.checksum().to_string() == t.checksum
    };
    match taken.iter().find(|t| !steps.get_migrations().iter().any(|s| same(s, t))) {
        Some(Taken { version, name, .. }) => Err(Error::Db(format!(
            "its schema is not Heliograph's: step {version} '{name}' is another one"
        ))),
        None => Ok(last),
    }
}
