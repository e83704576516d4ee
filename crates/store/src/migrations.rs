//! The schema's steps, forward only, the same numbers and names for both engines.

use crate::error::{Error, Result};
use rusqlite::Connection;

mod embedded {
    pub(crate) mod sqlite {
        refinery::embed_migrations!("migrations/sqlite");
    }
    pub(crate) mod postgres {
        refinery::embed_migrations!("migrations/postgres");
    }
}

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
