//! Schema migrations: forward only, with the same versions and names for both engines.
//!
//! Each migration runs in its own transaction, together with its row in [`HISTORY`].

use crate::db::postgres_error::words;
use crate::db::sqlite_error::failed;
use crate::error::{StoreError, StoreResult};
use rusqlite::Connection;

/// A migration of both engines.
struct Migration {
    version: i32,
    name: &'static str,
    sqlite: &'static str,
    postgres: &'static str,
}

/// Embeds the files `migrations/{engine}/V{version}__{name}.sql`.
macro_rules! migrations {
    ($($version:literal $name:literal),* $(,)?) => {
        [$(Migration {
            version: $version,
            name: $name,
            sqlite: include_str!(concat!("../../migrations/sqlite/V", $version, "__", $name, ".sql")),
            postgres: include_str!(concat!("../../migrations/postgres/V", $version, "__", $name, ".sql")),
        }),*]
    };
}

/// All migrations in the order of their versions.
const MIGRATIONS: &[Migration] = &migrations![
    1 "initial_schema",
    2 "operations",
];

/// The table of the applied migrations.
pub(crate) const HISTORY: &str = "schema_migrations";

const CREATE_HISTORY: &str = "CREATE TABLE IF NOT EXISTS schema_migrations (
    version INTEGER PRIMARY KEY,
    name TEXT NOT NULL,
    applied_at TEXT NOT NULL,
    checksum TEXT NOT NULL
)";

/// The advisory lock that a node holds while it migrates a PostgreSQL database.
const LOCK: i64 = 0x0068_656c_696f_6772;

/// Returns the SHA-256 of a migration's SQL in hexadecimal digits.
fn checksum(sql: &str) -> String {
    let digest = ring::digest::digest(&ring::digest::SHA256, sql.as_bytes());
    digest.as_ref().iter().fold(String::new(), |all, byte| all + &format!("{byte:02x}"))
}

/// Logs a migration that was applied.
fn log(migration: &Migration) {
    let Migration { version, name, .. } = migration;
    tracing::info!(version, name, "schema migration applied");
}

/// Returns the migrations that are newer than `version`.
fn pending(version: Option<i32>) -> impl Iterator<Item = &'static Migration> {
    MIGRATIONS.iter().filter(move |m| version.is_none_or(|v| m.version > v))
}

/// Adds the number and name of the migration that failed to an error.
fn migration_failed(migration: &Migration, error: &str) -> StoreError {
    let Migration { version, name, .. } = migration;
    StoreError::Db(format!("schema migration {version} '{name}' failed: {error}"))
}

/// Migrates a SQLite file. The caller makes sure that no other process does so at the same time.
pub(crate) fn sqlite(conn: &mut Connection) -> StoreResult<()> {
    let version = sqlite_version(conn)?;
    for migration in pending(version) {
        let step = |conn: &mut Connection| -> rusqlite::Result<()> {
            let tx = conn.transaction()?;
            tx.execute_batch(CREATE_HISTORY)?;
            tx.execute_batch(migration.sqlite)?;
            tx.execute(
                "INSERT INTO schema_migrations (version, name, applied_at, checksum)
                 VALUES ($1, $2, strftime('%Y-%m-%dT%H:%M:%SZ', 'now'), $3)",
                (migration.version, migration.name, checksum(migration.sqlite)),
            )?;
            tx.commit()
        };
        step(conn).map_err(|e| match failed(e) {
            StoreError::Db(e) => migration_failed(migration, &e),
            other => other,
        })?;
        log(migration);
    }
    Ok(())
}

/// Migrates a PostgreSQL database, one node at a time, on a connection of its own without timeouts:
/// migrating a large table may take long, and other nodes wait for it.
pub(crate) async fn postgres(client: &mut tokio_postgres::Client) -> StoreResult<()> {
    let failed = |e: tokio_postgres::Error| StoreError::Unavailable(words(&e));
    let no_timeouts = "SET statement_timeout = 0; SET lock_timeout = 0;";
    client.batch_execute(no_timeouts).await.map_err(failed)?;
    client.execute("SELECT pg_advisory_lock($1)", &[&LOCK]).await.map_err(failed)?;
    let done = migrate_postgres(client).await;
    client.execute("SELECT pg_advisory_unlock($1)", &[&LOCK]).await.map_err(failed)?;
    done
}

/// Applies the pending migrations. The caller holds the lock.
async fn migrate_postgres(client: &mut tokio_postgres::Client) -> StoreResult<()> {
    let version = postgres_version(client).await?;
    for migration in pending(version) {
        let step = async {
            let tx = client.transaction().await?;
            tx.batch_execute(CREATE_HISTORY).await?;
            tx.batch_execute(migration.postgres).await?;
            tx.execute(
                "INSERT INTO schema_migrations (version, name, applied_at, checksum)
                 VALUES ($1, $2, to_char(now() AT TIME ZONE 'UTC', 'YYYY-MM-DD\"T\"HH24:MI:SS\"Z\"'), $3)",
                &[&migration.version, &migration.name, &checksum(migration.postgres)],
            )
            .await?;
            tx.commit().await
        };
        step.await.map_err(|e| migration_failed(migration, &words(&e)))?;
        log(migration);
    }
    Ok(())
}

/// Returns the newest schema version that this program knows.
pub(crate) fn known() -> i32 {
    MIGRATIONS.iter().map(|m| m.version).max().unwrap_or(0)
}

/// An applied migration as recorded in the database.
struct Applied {
    version: i32,
    name: String,
    checksum: String,
}

const APPLIED: &str = "SELECT version, name, checksum FROM schema_migrations";

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
    verify(&applied, |m| m.sqlite)
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
    verify(&applied, |m| m.postgres)
}

/// Returns the last applied migration, if all are migrations of this program or of an older
/// version.
fn verify(applied: &[Applied], sql: fn(&Migration) -> &str) -> StoreResult<Option<i32>> {
    let last = applied.iter().map(|a| a.version).max();
    if let Some(version) = last.filter(|v| *v > known()) {
        return Err(StoreError::Db(format!(
            "its schema has version {version}, but this program supports version {} at most: use a newer heliograph",
            known()
        )));
    }
    let same = |ours: &Migration, a: &Applied| {
        (ours.version, ours.name) == (a.version, &*a.name) && checksum(sql(ours)) == a.checksum
    };
    match applied.iter().find(|a| !MIGRATIONS.iter().any(|m| same(m, a))) {
        Some(Applied { version, name, .. }) => Err(StoreError::Db(format!(
            "its schema is not Heliograph's: migration {version} '{name}' is unknown"
        ))),
        None => Ok(last),
    }
}
