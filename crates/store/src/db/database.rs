//! The handle of a database, which opens either engine.

use crate::db::conn::{Conn, Tx};
use crate::db::postgres::Postgres;
use crate::db::sealing::{Sealer, SealingKey};
use crate::db::sqlite::Sqlite;
use crate::db::time::DatabaseTime;
use crate::db::{copy, installation, migrations};
use crate::error::{StoreError, StoreResult};
use futures_util::future::BoxFuture;
use heliograph_domain::time::{Clock, Timestamp};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The options of a database.
#[derive(Clone)]
pub struct Options {
    /// `sqlite:PATH` or `postgres://…`.
    pub url: String,
    /// The maximum number of connections to PostgreSQL; each [`Db::with_own_pool`] has two more.
    /// SQLite has one for writing and a few for reading.
    pub connections: usize,
    /// The key that seals secrets; the same for all nodes on one database.
    pub key: SealingKey,
    /// This node's clock. The database's clock is an offset from it.
    pub clock: Arc<dyn Clock>,
}

/// The schema version of a database.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Schema {
    /// The version found; `None` without a schema.
    pub found: Option<i32>,
    /// The version that this program needs.
    pub known: i32,
}

/// An open database, cheap to clone.
#[derive(Clone)]
pub struct Db {
    engine: Engine,
    time: Arc<DatabaseTime>,
}

#[derive(Clone)]
enum Engine {
    Sqlite(Arc<Sqlite>),
    Postgres(Postgres),
}

impl Db {
    /// Opens the database at `options.url` and migrates its schema.
    ///
    /// # Errors
    /// [`StoreError::Db`] when the URL names no engine or a migration fails,
    /// [`StoreError::WrongKey`] when the secrets of the database are sealed with another key.
    pub async fn open(options: Options) -> StoreResult<Self> {
        let sealer = Arc::new(Sealer::new(&options.key)?);
        let engine = if let Some(path) = options.url.strip_prefix("sqlite:") {
            Engine::Sqlite(Arc::new(Sqlite::open(PathBuf::from(path), sealer)?))
        } else {
            Engine::Postgres(Postgres::open(&options.url, options.connections, sealer).await?)
        };
        let db = Self { engine, time: Arc::new(DatabaseTime::new(options.clock)) };
        db.measure_offset().await?;
        if !installation::has_our_key(&mut db.read().await?).await? {
            let mut tx = db.write().await?;
            installation::verify_sealing_key(&mut tx).await?;
            tx.commit().await?;
        }
        Ok(db)
    }

    /// Returns the schema version of the database at `url`, which is not changed.
    pub async fn schema(url: &str) -> StoreResult<Schema> {
        let found = if let Some(path) = url.strip_prefix("sqlite:") {
            copy::sqlite_version(Path::new(path))?
        } else {
            Postgres::version(url).await?
        };
        Ok(Schema { found, known: migrations::known() })
    }

    /// Returns whether the database at `url` exists and holds users, whose secrets are sealed. It is
    /// not changed.
    pub async fn has_users(url: &str) -> StoreResult<bool> {
        if let Some(path) = url.strip_prefix("sqlite:") {
            copy::sqlite_has_users(Path::new(path))
        } else {
            Postgres::has_users(url).await
        }
    }

    /// Returns a handle for a thread with a runtime of its own. On PostgreSQL it has its own
    /// connection pool, so that its statements do not wake other threads.
    pub fn with_own_pool(&self) -> StoreResult<Self> {
        let engine = match &self.engine {
            Engine::Sqlite(s) => Engine::Sqlite(s.clone()),
            Engine::Postgres(p) => Engine::Postgres(p.with_own_pool(2)?),
        };
        Ok(Self { engine, time: self.time.clone() })
    }

    /// Returns the current time by the database's clock, which leases and due times are compared
    /// with. It never runs backwards, and between two measurements it does not depend on the wall
    /// clock of this node.
    pub fn now(&self) -> Timestamp {
        self.time.now()
    }

    /// Returns the current time for the leases of this node: without the steps of the last minute,
    /// by which the database's clock was set forward.
    pub fn now_for_own_leases(&self) -> Timestamp {
        self.time.now_for_own_leases()
    }

    /// Measures the time of the database's clock, and follows it from now on. Returns by how many
    /// milliseconds it is ahead of this node's clock. SQLite has no clock of its own: there it is the
    /// clock of this node, and the result 0.
    pub async fn measure_offset(&self) -> StoreResult<i64> {
        let clock = &self.time.clock;
        let Engine::Postgres(pg) = &self.engine else {
            self.time.set(clock.now());
            return Ok(0);
        };
        let mut conn = Conn::Postgres(pg.connect().await?);
        let before = clock.now().millis();
        let sql = "SELECT (extract(epoch FROM clock_timestamp()) * 1000)::bigint";
        let there = conn.query_one(sql, &[], |r| r.get::<i64>()).await?;
        let after = clock.now().millis();
        let here = before.midpoint(after);
        let offset = there.unwrap_or(here) - here;
        // `there` was true between `before` and `after`.
        self.time.set(Timestamp(after + offset));
        Ok(offset)
    }

    /// Runs a trivial query, to see whether the database answers.
    pub async fn ping(&self) -> StoreResult<()> {
        let found = self.read().await?.query_one("SELECT 1", &[], |_| Ok(())).await?;
        found.ok_or_else(|| StoreError::Unavailable("no answer".to_owned()))
    }

    /// Begins a write transaction. SQLite runs one at a time.
    pub fn write(&self) -> BoxFuture<'_, StoreResult<Tx>> {
        Box::pin(async move {
            let conn = match &self.engine {
                Engine::Sqlite(s) => Conn::Sqlite(s.begin().await?),
                Engine::Postgres(p) => Conn::Postgres(p.begin().await?),
            };
            Ok(Tx(conn))
        })
    }

    /// Returns a connection for reading. Each statement sees what was committed before it began.
    pub fn read(&self) -> BoxFuture<'_, StoreResult<Conn>> {
        Box::pin(async move {
            match &self.engine {
                Engine::Sqlite(s) => Ok(Conn::Sqlite(s.reader().await?)),
                Engine::Postgres(p) => Ok(Conn::Postgres(p.connect().await?)),
            }
        })
    }

    /// Begins a read transaction, whose statements all see the same snapshot. Writers are not
    /// blocked.
    pub fn snapshot(&self) -> BoxFuture<'_, StoreResult<Tx>> {
        Box::pin(async move {
            match &self.engine {
                Engine::Sqlite(s) => Ok(Tx(Conn::Sqlite(s.snapshot().await?))),
                Engine::Postgres(p) => Ok(Tx(Conn::Postgres(p.snapshot().await?))),
            }
        })
    }

    /// Returns whether several nodes can share this database.
    pub const fn is_shared(&self) -> bool {
        matches!(self.engine, Engine::Postgres(_))
    }
}
