//! Schema migrations: forward only, with the same numbers and names for both engines.

use crate::db::postgres_error::words;
use crate::db::sqlite_error::failed;
use crate::error::{StoreError, StoreResult};
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

/// The table in which refinery records the applied migrations.
pub(crate) const HISTORY: &str = "refinery_schema_history";

/// The advisory lock that a node holds while it migrates a PostgreSQL database.
const LOCK: i64 = 0x0068_656c_696f_6772;

/// Migrates a SQLite file. The caller makes sure that no other process does so at the same time.
pub(crate) fn sqlite(conn: &mut Connection) -> StoreResult<()> {
    embedded::sqlite::migrations::runner()
        .run(conn)
        .map(drop)
        .map_err(|e| StoreError::Db(format!("schema migration failed: {e}")))
}

/// Migrates a PostgreSQL database, one node at a time, on a connection of its own without timeouts:
/// migrating a large table may take long, and other nodes wait for it.
pub(crate) async fn postgres(client: &mut tokio_postgres::Client) -> StoreResult<()> {
    let failed = |e: tokio_postgres::Error| StoreError::Unavailable(words(&e));
    let no_timeouts = "SET statement_timeout = 0; SET lock_timeout = 0;";
    client.batch_execute(no_timeouts).await.map_err(failed)?;
    client.execute("SELECT pg_advisory_lock($1)", &[&LOCK]).await.map_err(failed)?;
    let done = embedded::postgres::migrations::runner().run_async(client).await;
    client.execute("SELECT pg_advisory_unlock($1)", &[&LOCK]).await.map_err(failed)?;
    done.map(drop).map_err(|e| StoreError::Db(format!("schema migration failed: {e}")))
}

/// Returns the newest schema version that this program knows.
pub(crate) fn known() -> i32 {
    let steps = embedded::sqlite::migrations::runner();
    steps.get_migrations().iter().map(Migration::version).max().unwrap_or(0)
}

/// An applied migration as recorded in the database. Refinery itself panics on a history that it
/// did not write.
struct Applied {
    version: i32,
    name: String,
    checksum: String,
}

const APPLIED: &str = "SELECT version, name, checksum FROM refinery_schema_history";

/// Returns the schema version of a SQLite file; `None` without any migration.
pub(crate) fn sqlite_version(conn: &Connection) -> StoreResult<Option<i32>> {
    if !conn.table_exists(None, HISTORY).map_err(failed)? {
        return Ok(None);
    }
    let mut applied = conn.prepare(APPLIED).map_err(failed)?;
    let step = |r: &rusqlite::Row<'_>| {
        Ok(Applied { version: r.get(0)?, name: r.get(1)?, checksum: r.get(2)? })
    };
    let applied = applied.query_map([], step).map_err(failed)?;
    let applied: Vec<Applied> = applied.collect::<rusqlite::Result<_>>().map_err(failed)?;
    verify(&embedded::sqlite::migrations::runner(), &applied)
}

/// Returns the schema version of a PostgreSQL database; `None` without any migration.
pub(crate) async fn postgres_version(client: &tokio_postgres::Client) -> StoreResult<Option<i32>> {
    let failed = |e: tokio_postgres::Error| StoreError::Unavailable(words(&e));
    let there = client.query_one("SELECT to_regclass($1) IS NOT NULL", &[&HISTORY]).await;
    if !there.and_then(|r| r.try_get(0)).map_err(failed)? {
        return Ok(None);
    }
    let step = |r: &tokio_postgres::Row| {
        Ok(Applied { version: r.try_get(0)?, name: r.try_get(1)?, checksum: r.try_get(2)? })
    };
    let applied = client.query(APPLIED, &[]).await.map_err(failed)?;
    let applied: Vec<Applied> =
        applied.iter().map(step).collect::<std::result::Result<_, _>>().map_err(failed)?;
    verify(&embedded::postgres::migrations::runner(), &applied)
}

/// Returns the last applied migration, if all are migrations of this program or of an older
/// version.
fn verify(steps: &Runner, applied: &[Applied]) -> StoreResult<Option<i32>> {
    let last = applied.iter().map(|t| t.version).max();
    if let Some(version) = last.filter(|v| *v > known()) {
        return Err(StoreError::Db(format!(
            "its schema has version {version}, but this program supports version {} at most: use a newer heliograph",
            known()
        )));
    }
    let same = |ours: &Migration, t: &Applied| {
        (ours.version(), ours.name()) == (t.version, &t.name)
            && ours.checksum().to_string() == t.checksum
    };
    match applied.iter().find(|t| !steps.get_migrations().iter().any(|s| same(s, t))) {
        Some(Applied { version, name, .. }) => Err(StoreError::Db(format!(
            "its schema is not Heliograph's: migration {version} '{name}' is unknown"
        ))),
        None => Ok(last),
    }
}
