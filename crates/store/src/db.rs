//! Opens either engine and speaks to both through one thin handle.
//!
//! A statement is written once, with `$1` placeholders. Values go in as [`Value`] and rows come out
//! through [`Row`], so no driver's type leaves the `db*` files.

use crate::bulk::{Ask, Bulk, Rows};
use crate::db_postgres::{PgConn, Postgres};
use crate::db_sqlite::{Sqlite, SqliteConn};
use crate::error::{Error, Result};
use crate::installation;
use crate::migrations;
use crate::row::Row;
use crate::sealing::{Sealer, SealingKey};
use crate::value::Value;
use heliograph_domain::time::{Clock, Timestamp};
use std::ops::{Deref, DerefMut};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering::Relaxed};

/// How to open a database.
#[derive(Clone)]
pub struct Options {
    /// `sqlite:PATH` or `postgres://…`.
    pub url: String,
    /// Connections to PostgreSQL, at most, and two more for each [`Db::apart`]; SQLite has one for writing and a few for reading.
    pub connections: usize,
    /// Seals secrets; the same for every node on one database.
    pub key: SealingKey,
    /// This node's clock. The database's own is read as an offset from it.
    pub clock: Arc<dyn Clock>,
}

/// How far a database's schema is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Schema {
    /// Its version; `None` when there is no schema yet.
    pub found: Option<i32>,
    /// The version that this program works with.
    pub known: i32,
}

/// An open database, cheap to clone.
#[derive(Clone)]
pub struct Db {
    engine: Engine,
    clock: Arc<dyn Clock>,
    offset: Arc<AtomicI64>,
}

#[derive(Clone)]
enum Engine {
    Sqlite(Arc<Sqlite>),
    Postgres(Postgres),
}

impl Db {
    /// Opens the database that `options.url` names, and brings its schema up to date.
    ///
    /// # Errors
    /// [`Error::Unavailable`] when it can't be reached, [`Error::Db`] when the URL names no engine
    /// or a migration fails, [`Error::WrongKey`] when its secrets are sealed with another key.
    pub async fn open(options: Options) -> Result<Self> {
        let sealer = Arc::new(Sealer::new(&options.key)?);
        let engine = if let Some(path) = options.url.strip_prefix("sqlite:") {
            Engine::Sqlite(Arc::new(Sqlite::open(PathBuf::from(path), sealer)?))
        } else {
            Engine::Postgres(Postgres::open(&options.url, options.connections, sealer).await?)
        };
        let db = Self { engine, clock: options.clock, offset: Arc::default() };
        db.measure_offset().await?;
        if !installation::is_ours(&mut db.read().await?).await? {
            let mut tx = db.write().await?;
            installation::prove_key(&mut tx).await?;
            tx.commit().await?;
        }
        Ok(db)
    }

    /// Looks at the schema of the database that `url` names, and changes nothing.
    ///
    /// # Errors
    /// As [`Db::open`].
    pub async fn schema(url: &str) -> Result<Schema> {
        let found = if let Some(path) = url.strip_prefix("sqlite:") {
            crate::db_copy::sqlite_version(Path::new(path))?
        } else {
            Postgres::version(url).await?
        };
        Ok(Schema { found, known: migrations::known() })
    }

    /// The same database, for a thread with a runtime of its own. On PostgreSQL the connections are its own
    /// too, so that its statements travel without waking other threads.
    ///
    /// # Errors
    /// [`Error::Db`].
    pub fn apart(&self) -> Result<Self> {
        let engine = match &self.engine {
            Engine::Sqlite(s) => Engine::Sqlite(s.clone()),
            Engine::Postgres(p) => Engine::Postgres(p.apart(2)?),
        };
        Ok(Self { engine, clock: self.clock.clone(), offset: self.offset.clone() })
    }

    /// The present instant by the database's clock: what leases and due times are compared with.
    pub fn now(&self) -> Timestamp {
        Timestamp(self.clock.now().millis().saturating_add(self.offset.load(Relaxed)))
    }

    /// Measures by how many milliseconds the database's clock is ahead of this node's, and uses it
    /// from now on. SQLite has no clock of its own: zero.
    ///
    /// # Errors
    /// As any read.
    pub async fn measure_offset(&self) -> Result<i64> {
        let Engine::Postgres(pg) = &self.engine else { return Ok(0) };
        let mut conn = pg.connect().await?;
        let before = self.clock.now().millis();
        let there = conn
            .query("SELECT (extract(epoch FROM clock_timestamp()) * 1000)::bigint", &[], &mut |r| {
                r.int(0)
            })
            .await?;
        let here = before.midpoint(self.clock.now().millis());
        let offset = there.first().copied().unwrap_or(here) - here;
        self.offset.store(offset, Relaxed);
        Ok(offset)
    }

    /// Asks the database anything: whether it answers.
    ///
    /// # Errors
    /// As any read.
    pub async fn ping(&self) -> Result<()> {
        let found = self.read().await?.query_one("SELECT 1", &[], |_| Ok(())).await?;
        found.ok_or_else(|| Error::Unavailable("no answer".to_owned()))
    }

    /// Begins a transaction that writes. On SQLite there is one at a time.
    ///
    /// # Errors
    /// [`Error::Unavailable`].
    pub async fn write(&self) -> Result<Tx> {
        let conn = match &self.engine {
            Engine::Sqlite(s) => Conn::Sqlite(s.begin().await?),
            Engine::Postgres(p) => Conn::Postgres(p.begin().await?),
        };
        Ok(Tx(conn))
    }

    /// A connection for reading. Each statement sees what was committed before it began.
    ///
    /// # Errors
    /// [`Error::Unavailable`].
    pub async fn read(&self) -> Result<Conn> {
        match &self.engine {
            Engine::Sqlite(s) => Ok(Conn::Sqlite(s.reader().await?)),
            Engine::Postgres(p) => Ok(Conn::Postgres(p.connect().await?)),
        }
    }

    /// A connection for reading, all of whose statements see the same moment. Writers go on meanwhile.
    ///
    /// # Errors
    /// [`Error::Unavailable`].
    pub async fn snapshot(&self) -> Result<Tx> {
        match &self.engine {
            Engine::Sqlite(s) => Ok(Tx(Conn::Sqlite(s.snapshot().await?))),
            Engine::Postgres(p) => Ok(Tx(Conn::Postgres(p.snapshot().await?))),
        }
    }

    /// Whether several nodes can share this database.
    pub const fn is_shared(&self) -> bool {
        matches!(self.engine, Engine::Postgres(_))
    }
}

/// A connection: runs statements.
pub enum Conn {
    /// SQLite, in this process.
    #[doc(hidden)]
    Sqlite(SqliteConn),
    /// PostgreSQL, over a socket.
    #[doc(hidden)]
    Postgres(PgConn),
}

/// A transaction. Dropping it without [`Tx::commit`] undoes it.
pub struct Tx(Conn);

impl Tx {
    /// Makes everything durable and visible.
    ///
    /// # Errors
    /// [`Error::CommitLost`] when the connection broke before the answer; otherwise nothing happened.
    pub async fn commit(self) -> Result<()> {
        match self.0 {
            Conn::Sqlite(c) => c.commit(),
            Conn::Postgres(c) => c.commit().await,
        }
    }
}

impl Deref for Tx {
    type Target = Conn;
    fn deref(&self) -> &Conn {
        &self.0
    }
}

impl DerefMut for Tx {
    fn deref_mut(&mut self) -> &mut Conn {
        &mut self.0
    }
}

impl Conn {
    /// Seals and opens the secrets of this database.
    pub(crate) fn sealer(&self) -> Result<Arc<Sealer>> {
        match self {
            Self::Sqlite(c) => c.sealer(),
            Self::Postgres(c) => Ok(c.sealer()),
        }
    }

    /// Runs a statement; how many rows it changed.
    pub(crate) async fn execute(&mut self, sql: &'static str, params: &[Value<'_>]) -> Result<u64> {
        match self {
            Self::Sqlite(c) => c.execute(sql, params),
            Self::Postgres(c) => c.execute(sql, params).await,
        }
    }

    /// Runs a statement and reads its rows.
    pub(crate) async fn query<T>(
        &mut self,
        sql: &'static str,
        params: &[Value<'_>],
        mut read: impl FnMut(&Row<'_>) -> Result<T>,
    ) -> Result<Vec<T>> {
        match self {
            Self::Sqlite(c) => c.query(sql, params, &mut read),
            Self::Postgres(c) => c.query(sql, params, &mut read).await,
        }
    }

    /// Runs a statement whose text is made here, of the catalogue's names and of nothing from outside; how many
    /// rows it changed.
    pub(crate) async fn execute_made(&mut self, sql: &str, params: &[Value<'_>]) -> Result<u64> {
        match self {
            Self::Sqlite(c) => c.execute(sql, params),
            Self::Postgres(c) => c.execute(sql, params).await,
        }
    }

    /// Runs such a statement and reads its rows.
    pub(crate) async fn query_made<T>(
        &mut self,
        sql: &str,
        params: &[Value<'_>],
        mut read: impl FnMut(&Row<'_>) -> Result<T>,
    ) -> Result<Vec<T>> {
        match self {
            Self::Sqlite(c) => c.query(sql, params, &mut read),
            Self::Postgres(c) => c.query(sql, params, &mut read).await,
        }
    }

    /// Runs a statement that gives at most one row.
    pub(crate) async fn query_one<T>(
        &mut self,
        sql: &'static str,
        params: &[Value<'_>],
        read: impl FnMut(&Row<'_>) -> Result<T>,
    ) -> Result<Option<T>> {
        Ok(self.query(sql, params, read).await?.into_iter().next())
    }

    /// Runs a bulk statement for all `rows`; how many rows it changed.
    pub(crate) async fn bulk_execute<const N: usize>(
        &mut self,
        bulk: &Bulk,
        rows: &Rows<'_, N>,
    ) -> Result<u64> {
        match self {
            _ if rows.is_empty() => Ok(0),
            Self::Sqlite(c) => c.bulk_execute(bulk.each, rows),
            Self::Postgres(c) => c.bulk_execute(bulk.all, rows).await,
        }
    }

    /// Runs a bulk statement for all `rows`, when nobody needs to know how many it changed: on PostgreSQL it
    /// travels with the next statement, or with the commit, and an error of it shows there.
    pub(crate) async fn bulk_ahead<const N: usize>(
        &mut self,
        bulk: &Bulk,
        rows: &Rows<'_, N>,
    ) -> Result<()> {
        match self {
            _ if rows.is_empty() => Ok(()),
            Self::Sqlite(c) => c.bulk_execute(bulk.each, rows).map(drop),
            Self::Postgres(c) => c.bulk_ahead(bulk.all, rows).await,
        }
    }

    /// Runs a bulk statement for all `rows` and reads what it gives back, in any order.
    pub(crate) async fn bulk_query<T, const N: usize>(
        &mut self,
        bulk: &Bulk,
        rows: &Rows<'_, N>,
        mut read: impl FnMut(&Row<'_>) -> Result<T>,
    ) -> Result<Vec<T>> {
        match self {
            _ if rows.is_empty() => Ok(Vec::new()),
            Self::Sqlite(c) => c.bulk_query(bulk.each, rows, &mut read),
            Self::Postgres(c) => c.bulk_query(bulk.all, rows, &mut read).await,
        }
    }

    /// Asks for what a noun's file has words for.
    ///
    /// # Errors
    /// As any read.
    pub async fn ask<T, const N: usize>(&mut self, ask: Ask<'_, T, N>) -> Result<Vec<T>> {
        self.bulk_query(ask.bulk, &ask.rows, ask.read).await
    }

    /// Asks two questions; on PostgreSQL in one breath, which saves a round trip.
    ///
    /// # Errors
    /// As any read.
    pub async fn ask_both<T, U, const N: usize, const M: usize>(
        &mut self,
        one: Ask<'_, T, N>,
        two: Ask<'_, U, M>,
    ) -> Result<(Vec<T>, Vec<U>)> {
        match self {
            Self::Postgres(c) if !one.rows.is_empty() && !two.rows.is_empty() => {
                c.bulk_query_both(one, two).await
            }
            _ => Ok((self.ask(one).await?, self.ask(two).await?)),
        }
    }

    /// Picks the text of a statement that must differ between the engines.
    pub(crate) const fn pick(&self, sqlite: &'static str, postgres: &'static str) -> &'static str {
        match self {
            Self::Sqlite(_) => sqlite,
            Self::Postgres(_) => postgres,
        }
    }
}
