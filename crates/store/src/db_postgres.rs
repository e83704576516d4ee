//! The PostgreSQL engine: a pool of connections, statements prepared once for each.

use crate::bulk::{Ask, Rows};
use crate::error::{Error, Result};
use crate::migrations;
use crate::row::Row;
use crate::sealing::Sealer;
use crate::value::Value;
use bytes::BytesMut;
use deadpool_postgres::{
    ClientWrapper, Hook, HookError, Manager, ManagerConfig, Object, Pool, RecyclingMethod, Timeouts,
};
use futures_util::future::join_all;
use std::error::Error as _;
use std::fmt::Write;
use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;
use tokio_postgres::error::SqlState;
use tokio_postgres::types::{IsNull, ToSql, Type, to_sql_checked};
use tokio_postgres::{NoTls, Statement};
use uuid::Uuid;

/// A row as the driver gives it.
pub(crate) type RawRow = tokio_postgres::Row;

/// What each connection is told once.
///
/// The plans are generic and may not read whole tables: a plan made while a table was small would
/// otherwise be kept while it grows by millions of rows, until the next analyze.
const SESSION: &str = "SET synchronous_commit = on; SET statement_timeout = '30s'; SET lock_timeout = '10s';
    SET idle_in_transaction_session_timeout = '60s'; SET plan_cache_mode = force_generic_plan;
    SET enable_seqscan = off; SET enable_hashjoin = off; SET enable_mergejoin = off; SET jit = off;";

/// What the server says to one statement.
type Sent<T> = std::result::Result<T, tokio_postgres::Error>;

/// A pool of connections.
#[derive(Clone)]
pub(crate) struct Postgres {
    config: Arc<tokio_postgres::Config>,
    pool: Pool,
    sealer: Arc<Sealer>,
}

impl Postgres {
    pub(crate) async fn open(url: &str, connections: usize, sealer: Arc<Sealer>) -> Result<Self> {
        let config = Arc::new(config(url)?);
        let pool = pool(&config, connections)?;
        let first = pool.get().await.map_err(lost)?;
        let version =
            first.query_one("SELECT current_setting('server_version_num')::int", &[]).await;
        let version: i32 = version.and_then(|r| r.try_get(0)).map_err(|e| failed(&e))?;
        if version < 150_000 {
            return Err(Error::Db(format!(
                "PostgreSQL {} is too old: 15 or newer is needed",
                version / 10_000
            )));
        }
        migrations::postgres(&mut Object::take(first)).await?;
        Ok(Self { config, pool, sealer })
    }

    /// The version of the schema, on which nothing is changed.
    pub(crate) async fn version(url: &str) -> Result<Option<i32>> {
        let first = pool(&config(url)?, 1)?.get().await.map_err(lost)?;
        migrations::postgres_version(&first).await
    }

    /// The same database through a pool of its own.
    pub(crate) fn apart(&self, connections: usize) -> Result<Self> {
        let (config, sealer) = (self.config.clone(), self.sealer.clone());
        Ok(Self { pool: pool(&config, connections)?, config, sealer })
    }

    pub(crate) async fn connect(&self) -> Result<PgConn> {
        let client = self.pool.get().await.map_err(lost)?;
        let sealer = self.sealer.clone();
        Ok(PgConn { client: Some(client), ahead: Vec::new(), open: false, sealer })
    }

    pub(crate) async fn begin(&self) -> Result<PgConn> {
        self.open_with("BEGIN").await
    }

    pub(crate) async fn snapshot(&self) -> Result<PgConn> {
        self.open_with("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY").await
    }

    async fn open_with(&self, begin: &'static str) -> Result<PgConn> {
        let mut conn = self.connect().await?;
        conn.ahead.push(Ahead::Begin(begin));
        Ok(conn)
    }
}

fn config(url: &str) -> Result<tokio_postgres::Config> {
    if !url.starts_with("postgres://") && !url.starts_with("postgresql://") {
        return Err(Error::Db("database.url must begin with sqlite: or postgres://".to_owned()));
    }
    let mut config = tokio_postgres::Config::from_str(url)
        .map_err(|e| Error::Db(format!("database.url can't be read: {}", words(&e))))?;
    config.connect_timeout(Duration::from_secs(5)).application_name("heliograph");
    Ok(config)
}

/// Connections are made when they are first needed, and their sockets are served by the runtime in which
/// that happens.
fn pool(config: &tokio_postgres::Config, connections: usize) -> Result<Pool> {
    let fast = ManagerConfig { recycling_method: RecyclingMethod::Fast };
    let session = Hook::async_fn(|client: &mut ClientWrapper, _| {
        Box::pin(async move { client.batch_execute(SESSION).await.map_err(HookError::Backend) })
    });
    Pool::builder(Manager::from_config(config.clone(), NoTls, fast))
        .max_size(connections.max(2))
        .runtime(deadpool_postgres::Runtime::Tokio1)
        .timeouts(Timeouts::wait_millis(10_000))
        .post_create(session)
        .build()
        .map_err(|e| Error::Db(e.to_string()))
}

/// A connection on loan.
pub struct PgConn {
    /// `None` only while being dropped.
    client: Option<Object>,
    /// What travels with the next statement, ahead of it, and costs no round trip of its own.
    ahead: Vec<Ahead>,
    /// Whether a transaction still waits for its end.
    open: bool,
    sealer: Arc<Sealer>,
}

/// What is said without waiting for an answer.
enum Ahead {
    Begin(&'static str),
    Bulk(Statement, Vec<Encoded>),
}

impl Ahead {
    async fn send(&self, client: &Object) -> Sent<()> {
        match self {
            Self::Begin(begin) => client.batch_execute(begin).await,
            Self::Bulk(statement, params) => {
                let params = params.iter().map(|p| p as &(dyn ToSql + Sync));
                client.execute(statement, &params.collect::<Vec<_>>()).await.map(drop)
            }
        }
    }
}

/// A parameter in its binary form.
#[derive(Debug)]
struct Encoded(BytesMut);

impl ToSql for Encoded {
    fn to_sql(
        &self,
        _: &Type,
        out: &mut BytesMut,
    ) -> std::result::Result<IsNull, Box<dyn std::error::Error + Sync + Send>> {
        out.extend_from_slice(&self.0);
        Ok(IsNull::No)
    }

    fn accepts(_: &Type) -> bool {
        true
    }

    to_sql_checked!();
}

impl Drop for PgConn {
    /// A transaction that nobody ended dies with its connection, which the server rolls back.
    fn drop(&mut self) {
        if self.open
            && let Some(client) = self.client.take()
        {
            drop(Object::take(client));
        }
    }
}

impl PgConn {
    pub(crate) fn client(&self) -> Result<&Object> {
        self.client.as_ref().ok_or_else(|| Error::Unavailable("no connection".to_owned()))
    }

    pub(crate) async fn commit(mut self) -> Result<()> {
        if matches!(self.ahead[..], [Ahead::Begin(_)]) {
            return Ok(()); // nothing was said
        }
        let ahead = self.take_ahead();
        let client = self.client()?;
        let (earlier, done) = together(client, &ahead, client.batch_execute("COMMIT")).await;
        // After an earlier failure the server takes COMMIT as ROLLBACK.
        self.open = done.is_err();
        earlier.and(done).map_err(|e| match failed(&e) {
            Error::Unavailable(e) => Error::CommitLost(e),
            other => other,
        })
    }

    pub(crate) fn sealer(&self) -> Arc<Sealer> {
        self.sealer.clone()
    }

    fn take_ahead(&mut self) -> Vec<Ahead> {
        self.open |= !self.ahead.is_empty();
        std::mem::take(&mut self.ahead)
    }

    /// Lets a bulk statement travel with what is said next. If it fails, that says so.
    pub(crate) async fn bulk_ahead<const N: usize>(
        &mut self,
        sql: &str,
        rows: &Rows<'_, N>,
    ) -> Result<()> {
        let statement = self.client()?.prepare_cached(sql).await.map_err(|e| failed(&e))?;
        let encode = |(column, ty): (&Vec<&Value<'_>>, &Type)| {
            let mut bytes = BytesMut::new();
            let encoded = column.to_sql(ty, &mut bytes);
            encoded.map(|_| Encoded(bytes)).map_err(|e| Error::Db(e.to_string()))
        };
        let columns = columns(rows);
        let params = columns.iter().zip(statement.params()).map(encode).collect::<Result<_>>()?;
        self.ahead.push(Ahead::Bulk(statement, params));
        Ok(())
    }

    pub(crate) async fn execute(&mut self, sql: &str, params: &[Value<'_>]) -> Result<u64> {
        let params = params.iter().map(|p| p as &(dyn ToSql + Sync));
        self.changed(sql, &params.collect::<Vec<_>>()).await
    }

    pub(crate) async fn query<T>(
        &mut self,
        sql: &str,
        params: &[Value<'_>],
        read: &mut impl FnMut(&Row<'_>) -> Result<T>,
    ) -> Result<Vec<T>> {
        let params = params.iter().map(|p| p as &(dyn ToSql + Sync));
        self.rows(sql, &params.collect::<Vec<_>>(), read).await
    }

    pub(crate) async fn bulk_execute<const N: usize>(
        &mut self,
        sql: &str,
        rows: &Rows<'_, N>,
    ) -> Result<u64> {
        let columns = columns(rows);
        let params = columns.iter().map(|c| c as &(dyn ToSql + Sync));
        self.changed(sql, &params.collect::<Vec<_>>()).await
    }

    pub(crate) async fn bulk_query<T, const N: usize>(
        &mut self,
        sql: &str,
        rows: &Rows<'_, N>,
        read: &mut impl FnMut(&Row<'_>) -> Result<T>,
    ) -> Result<Vec<T>> {
        let columns = columns(rows);
        let params = columns.iter().map(|c| c as &(dyn ToSql + Sync));
        self.rows(sql, &params.collect::<Vec<_>>(), read).await
    }

    /// Asks two questions in one breath.
    pub(crate) async fn bulk_query_both<T, U, const N: usize, const M: usize>(
        &mut self,
        one: Ask<'_, T, N>,
        two: Ask<'_, U, M>,
    ) -> Result<(Vec<T>, Vec<U>)> {
        let (first, second) = (columns(&one.rows), columns(&two.rows));
        let first: Vec<_> = first.iter().map(|c| c as &(dyn ToSql + Sync)).collect();
        let second: Vec<_> = second.iter().map(|c| c as &(dyn ToSql + Sync)).collect();
        let ahead = self.take_ahead();
        let client = self.client()?;
        let statements = async {
            let one_ = client.prepare_cached(one.bulk.all).await?;
            let two_ = client.prepare_cached(two.bulk.all).await?;
            let both =
                tokio::join!(biased; client.query(&one_, &first), client.query(&two_, &second));
            Ok((both.0?, both.1?))
        };
        let (earlier, rows) = together(client, &ahead, statements).await;
        let (first, second) = earlier.and(rows).map_err(|e| failed(&e))?;
        let first = first.iter().map(|r| (one.read)(&Row::Postgres(r))).collect::<Result<_>>()?;
        let second = second.iter().map(|r| (two.read)(&Row::Postgres(r))).collect::<Result<_>>()?;
        Ok((first, second))
    }

    async fn changed(&mut self, sql: &str, params: &[&(dyn ToSql + Sync)]) -> Result<u64> {
        let ahead = self.take_ahead();
        let client = self.client()?;
        let statement = async { client.execute(&client.prepare_cached(sql).await?, params).await };
        let (earlier, changed) = together(client, &ahead, statement).await;
        earlier.and(changed).map_err(|e| failed(&e))
    }

    async fn rows<T>(
        &mut self,
        sql: &str,
        params: &[&(dyn ToSql + Sync)],
        read: &mut impl FnMut(&Row<'_>) -> Result<T>,
    ) -> Result<Vec<T>> {
        let ahead = self.take_ahead();
        let client = self.client()?;
        let statement = async { client.query(&client.prepare_cached(sql).await?, params).await };
        let (earlier, rows) = together(client, &ahead, statement).await;
        let rows = earlier.and(rows).map_err(|e| failed(&e))?;
        rows.iter().map(|r| read(&Row::Postgres(r))).collect()
    }
}

/// Says a statement and what goes ahead of it in one breath: written in this order, and answered in it.
async fn together<T>(
    client: &Object,
    ahead: &[Ahead],
    statement: impl Future<Output = Sent<T>>,
) -> (Sent<()>, Sent<T>) {
    let earlier = join_all(ahead.iter().map(|a| a.send(client)));
    let (earlier, done) = tokio::join!(biased; earlier, statement);
    (earlier.into_iter().collect(), done)
}

/// Turns rows into one array per column, as UNNEST takes them.
fn columns<'r, 'v, const N: usize>(rows: &'r Rows<'v, N>) -> Vec<Vec<&'r Value<'v>>> {
    let mut columns: Vec<Vec<&Value<'_>>> = Vec::with_capacity(N);
    columns.resize_with(N, || Vec::with_capacity(rows.iter().len()));
    for row in rows.iter() {
        for (column, value) in columns.iter_mut().zip(row) {
            column.push(value);
        }
    }
    columns
}

impl ToSql for Value<'_> {
    fn to_sql(
        &self,
        ty: &Type,
        out: &mut BytesMut,
    ) -> std::result::Result<IsNull, Box<dyn std::error::Error + Sync + Send>> {
        match (self, ty) {
            (Self::Null, _) => Ok(IsNull::Yes),
            (Self::Int(v), &Type::INT2) => i16::try_from(*v)?.to_sql(ty, out),
            (Self::Int(v), &Type::INT4) => i32::try_from(*v)?.to_sql(ty, out),
            (Self::Int(v), _) => v.to_sql(ty, out),
            (Self::Text(v), _) => v.to_sql(ty, out),
            (Self::Bytes(v), _) => v.to_sql(ty, out),
            (Self::Uuid(v), _) => v.to_sql(ty, out),
        }
    }

    fn accepts(ty: &Type) -> bool {
        [Type::INT2, Type::INT4, Type::INT8, Type::TEXT, Type::BYTEA, Type::UUID].contains(ty)
    }

    to_sql_checked!();
}

pub(crate) fn opt_int(row: &tokio_postgres::Row, i: usize) -> Result<Option<i64>> {
    let bad = || Error::corrupt(format_args!("there is no column {i}"));
    let value = match *row.columns().get(i).ok_or_else(bad)?.type_() {
        Type::INT2 => row.try_get::<_, Option<i16>>(i).map(|v| v.map(i64::from)),
        Type::INT4 => row.try_get::<_, Option<i32>>(i).map(|v| v.map(i64::from)),
        _ => row.try_get(i),
    };
    value.map_err(|e| failed(&e))
}

pub(crate) fn opt_text(row: &tokio_postgres::Row, i: usize) -> Result<Option<String>> {
    row.try_get(i).map_err(|e| failed(&e))
}

pub(crate) fn bytes(row: &tokio_postgres::Row, i: usize) -> Result<Vec<u8>> {
    row.try_get(i).map_err(|e| failed(&e))
}

pub(crate) fn opt_uuid(row: &tokio_postgres::Row, i: usize) -> Result<Option<Uuid>> {
    row.try_get(i).map_err(|e| failed(&e))
}

fn lost(e: deadpool_postgres::PoolError) -> Error {
    match e {
        deadpool_postgres::PoolError::Backend(e) => Error::Unavailable(words(&e)),
        other => Error::Unavailable(other.to_string()),
    }
}

/// The whole chain of an error, since tokio-postgres says only "db error" itself.
pub(crate) fn words(e: &tokio_postgres::Error) -> String {
    let mut text = e.to_string();
    let mut cause = e.source();
    while let Some(c) = cause {
        let _ = write!(text, ": {c}");
        cause = c.source();
    }
    text
}

/// Sorts PostgreSQL's errors by what can be done.
pub(crate) fn failed(e: &tokio_postgres::Error) -> Error {
    let Some(code) = e.code() else { return Error::Unavailable(words(e)) };
    if [
        SqlState::T_R_DEADLOCK_DETECTED,
        SqlState::T_R_SERIALIZATION_FAILURE,
        SqlState::LOCK_NOT_AVAILABLE,
    ]
    .contains(code)
    {
        return Error::Conflict(words(e));
    }
    // Classes: 08 connection, 53 insufficient resources (disk, memory, connections), 57 operator
    // intervention (shutdown, time-out), 58 system error; 25006 is a standby that only reads.
    match code.code() {
        "25006" => Error::Unavailable(words(e)),
        c if ["08", "53", "57", "58"].iter().any(|class| c.starts_with(class)) => {
            Error::Unavailable(words(e))
        }
        c if c.starts_with("XX") => Error::Corrupt(words(e)),
        _ => Error::Db(words(e)),
    }
}
