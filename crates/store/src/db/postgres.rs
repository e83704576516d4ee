//! The PostgreSQL engine: a connection pool with prepared statements and pipelining.

use crate::db::bulk::Rows;
use crate::db::migrations;
use crate::db::postgres_error::{failed, lost};
use crate::db::postgres_row::PostgresRow;
use crate::db::postgres_tls::{self, PostgresServer};
use crate::db::sealing::Sealer;
use crate::db::value::Value;
use crate::error::{StoreError, StoreResult};
use bytes::BytesMut;
use deadpool_postgres::{
    ClientWrapper, Hook, HookError, Manager, ManagerConfig, Object, Pool, RecyclingMethod, Timeouts,
};
use futures_util::future::{BoxFuture, join_all};
use std::sync::Arc;
use tokio_postgres::Statement;
use tokio_postgres::types::{IsNull, ToSql, Type, to_sql_checked};

/// The settings of each connection.
///
/// Plans are generic and do not scan whole tables. Otherwise a plan that was made for a small table
/// would be kept while the table grows by millions of rows, until the next ANALYZE.
const SESSION: &str = "SET synchronous_commit = on; SET statement_timeout = '30s'; SET lock_timeout = '10s';
    SET idle_in_transaction_session_timeout = '60s'; SET plan_cache_mode = force_generic_plan;
    SET enable_seqscan = off; SET enable_hashjoin = off; SET enable_mergejoin = off; SET jit = off;";

/// The server's answer to one statement.
type Sent<T> = std::result::Result<T, tokio_postgres::Error>;

/// A connection pool.
#[derive(Clone)]
pub(crate) struct Postgres {
    server: Arc<PostgresServer>,
    pool: Pool,
    sealer: Arc<Sealer>,
}

impl Postgres {
    pub(crate) async fn open(
        url: &str,
        connections: usize,
        sealer: Arc<Sealer>,
    ) -> StoreResult<Self> {
        let server = Arc::new(postgres_tls::server(url)?);
        let pool = pool(&server, connections)?;
        let first = pool.get().await.map_err(lost)?;
        let version =
            first.query_one("SELECT current_setting('server_version_num')::int", &[]).await;
        let version: i32 = version.and_then(|r| r.try_get(0)).map_err(|e| failed(&e))?;
        if version < 150_000 {
            return Err(StoreError::Db(format!(
                "PostgreSQL {} is too old: 15 or newer is needed",
                version / 10_000
            )));
        }
        migrations::postgres(&mut Object::take(first)).await?;
        Ok(Self { server, pool, sealer })
    }

    /// Returns the schema version, without a migration.
    pub(crate) async fn version(url: &str) -> StoreResult<Option<i32>> {
        let first = pool(&postgres_tls::server(url)?, 1)?.get().await.map_err(lost)?;
        migrations::postgres_version(&first).await
    }

    /// Returns whether the database holds users, without a migration.
    pub(crate) async fn has_users(url: &str) -> StoreResult<bool> {
        let first = pool(&postgres_tls::server(url)?, 1)?.get().await.map_err(lost)?;
        if migrations::postgres_version(&first).await?.is_none() {
            return Ok(false);
        }
        let found = first.query_one("SELECT EXISTS (SELECT 1 FROM users)", &[]).await;
        found.and_then(|row| row.try_get(0)).map_err(|e| failed(&e))
    }

    /// Returns the same database with a separate pool.
    pub(crate) fn with_own_pool(&self, connections: usize) -> StoreResult<Self> {
        let (server, sealer) = (self.server.clone(), self.sealer.clone());
        Ok(Self { pool: pool(&server, connections)?, server, sealer })
    }

    pub(crate) fn connect(&self) -> BoxFuture<'_, StoreResult<PgConn>> {
        Box::pin(async move {
            let client = self.pool.get().await.map_err(lost)?;
            let sealer = self.sealer.clone();
            Ok(PgConn { client: Some(client), pipelined: Vec::new(), open: false, sealer })
        })
    }

    pub(crate) async fn begin(&self) -> StoreResult<PgConn> {
        self.open_with("BEGIN").await
    }

    pub(crate) async fn snapshot(&self) -> StoreResult<PgConn> {
        self.open_with("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY").await
    }

    async fn open_with(&self, begin: &'static str) -> StoreResult<PgConn> {
        let mut conn = self.connect().await?;
        conn.pipelined.push(Pipelined::Begin(begin));
        Ok(conn)
    }
}

/// Creates a pool. Connections are opened when they are first needed, and the runtime in which that
/// happens serves their sockets.
fn pool(server: &PostgresServer, connections: usize) -> StoreResult<Pool> {
    let fast = ManagerConfig { recycling_method: RecyclingMethod::Fast };
    let session = Hook::async_fn(|client: &mut ClientWrapper, _| {
        Box::pin(async move { client.batch_execute(SESSION).await.map_err(HookError::Backend) })
    });
    let manager = Manager::from_config(server.config.clone(), server.tls.clone(), fast);
    Pool::builder(manager)
        .max_size(connections.max(2))
        .runtime(deadpool_postgres::Runtime::Tokio1)
        .timeouts(Timeouts::wait_millis(10_000))
        .post_create(session)
        .build()
        .map_err(|e| StoreError::Db(e.to_string()))
}

/// A connection from the pool.
///
/// Its methods return boxed futures. The code of an `async fn` is compiled again in every crate
/// that awaits it, and the driver is large; a boxed future is compiled once, here. The allocation
/// costs far less than the round trip to the server.
pub struct PgConn {
    /// `None` only while being dropped.
    client: Option<Object>,
    /// Pipelined statements: they are sent with the next statement, ahead of it, and cost no round
    /// trip.
    pipelined: Vec<Pipelined>,
    /// True if a transaction is open.
    open: bool,
    sealer: Arc<Sealer>,
}

/// A pipelined statement.
enum Pipelined {
    Begin(&'static str),
    Bulk(Statement, Vec<Encoded>),
}

impl Pipelined {
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

/// A parameter in binary form.
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
    /// Closes the connection of an open transaction, which the server then rolls back.
    fn drop(&mut self) {
        if self.open
            && let Some(client) = self.client.take()
        {
            drop(Object::take(client));
        }
    }
}

impl PgConn {
    pub(crate) fn client(&self) -> StoreResult<&Object> {
        self.client.as_ref().ok_or_else(|| StoreError::Unavailable("no connection".to_owned()))
    }

    pub(crate) fn commit(self) -> BoxFuture<'static, StoreResult<()>> {
        Box::pin(async move {
            let mut conn = self;
            if matches!(conn.pipelined[..], [Pipelined::Begin(_)]) {
                return Ok(()); // nothing was sent
            }
            let pipelined = conn.take_pipelined();
            let client = conn.client()?;
            let commit = client.batch_execute("COMMIT");
            let (earlier, done) = send_all(client, &pipelined, commit).await;
            // After an earlier failure the server takes COMMIT as ROLLBACK.
            conn.open = done.is_err();
            earlier.and(done).map_err(|e| match failed(&e) {
                StoreError::Unavailable(e) => StoreError::CommitLost(e),
                other => other,
            })
        })
    }

    pub(crate) fn sealer(&self) -> Arc<Sealer> {
        self.sealer.clone()
    }

    fn take_pipelined(&mut self) -> Vec<Pipelined> {
        self.open |= !self.pipelined.is_empty();
        std::mem::take(&mut self.pipelined)
    }

    /// Queues a bulk statement, which is sent with the next statement. That one returns its error.
    pub(crate) fn pipeline<'a>(
        &'a mut self,
        sql: &'a str,
        rows: &'a Rows<'a>,
    ) -> BoxFuture<'a, StoreResult<()>> {
        Box::pin(async move {
            let statement = self.client()?.prepare_cached(sql).await.map_err(|e| failed(&e))?;
            let encode = |(column, ty): (&Vec<&Value<'_>>, &Type)| {
                let mut bytes = BytesMut::new();
                let encoded = column.to_sql(ty, &mut bytes);
                encoded.map(|_| Encoded(bytes)).map_err(|e| StoreError::Db(e.to_string()))
            };
            let columns = rows.columns();
            let params =
                columns.iter().zip(statement.params()).map(encode).collect::<StoreResult<_>>()?;
            self.pipelined.push(Pipelined::Bulk(statement, params));
            Ok(())
        })
    }

    pub(crate) fn execute<'a>(
        &'a mut self,
        sql: &'a str,
        params: &'a [Value<'a>],
    ) -> BoxFuture<'a, StoreResult<u64>> {
        Box::pin(async move { self.changed(sql, &references(params)).await })
    }

    pub(crate) fn query<'a>(
        &'a mut self,
        sql: &'a str,
        params: &'a [Value<'a>],
    ) -> BoxFuture<'a, StoreResult<Vec<PostgresRow>>> {
        Box::pin(async move { self.rows(sql, &references(params)).await })
    }

    pub(crate) fn bulk_execute<'a>(
        &'a mut self,
        sql: &'a str,
        rows: &'a Rows<'a>,
    ) -> BoxFuture<'a, StoreResult<u64>> {
        Box::pin(async move { self.changed(sql, &references(&rows.columns())).await })
    }

    pub(crate) fn bulk_query<'a>(
        &'a mut self,
        sql: &'a str,
        rows: &'a Rows<'a>,
    ) -> BoxFuture<'a, StoreResult<Vec<PostgresRow>>> {
        Box::pin(async move { self.rows(sql, &references(&rows.columns())).await })
    }

    /// Runs two queries in one round trip.
    pub(crate) fn query_both<'a>(
        &'a mut self,
        (one, one_rows): (&'a str, &'a Rows<'a>),
        (two, two_rows): (&'a str, &'a Rows<'a>),
    ) -> BoxFuture<'a, StoreResult<(Vec<PostgresRow>, Vec<PostgresRow>)>> {
        Box::pin(async move {
            let (first, second) = (one_rows.columns(), two_rows.columns());
            let (first, second) = (references(&first), references(&second));
            let pipelined = self.take_pipelined();
            let client = self.client()?;
            let statements = async {
                let one = client.prepare_cached(one).await?;
                let two = client.prepare_cached(two).await?;
                let both =
                    tokio::join!(biased; client.query(&one, &first), client.query(&two, &second));
                Ok((both.0?, both.1?))
            };
            let (earlier, rows) = send_all(client, &pipelined, statements).await;
            earlier.and(rows).map_err(|e| failed(&e))
        })
    }

    async fn changed(&mut self, sql: &str, params: &[&(dyn ToSql + Sync)]) -> StoreResult<u64> {
        let pipelined = self.take_pipelined();
        let client = self.client()?;
        let statement = async { client.execute(&client.prepare_cached(sql).await?, params).await };
        let (earlier, changed) = send_all(client, &pipelined, statement).await;
        earlier.and(changed).map_err(|e| failed(&e))
    }

    async fn rows(
        &mut self,
        sql: &str,
        params: &[&(dyn ToSql + Sync)],
    ) -> StoreResult<Vec<PostgresRow>> {
        let pipelined = self.take_pipelined();
        let client = self.client()?;
        let statement = async { client.query(&client.prepare_cached(sql).await?, params).await };
        let (earlier, rows) = send_all(client, &pipelined, statement).await;
        earlier.and(rows).map_err(|e| failed(&e))
    }
}

/// Returns parameters in the form that the driver takes.
fn references<T: ToSql + Sync>(params: &[T]) -> Vec<&(dyn ToSql + Sync)> {
    params.iter().map(|p| p as &(dyn ToSql + Sync)).collect()
}

/// Sends the pipelined statements and one more in one round trip. They are answered in order.
async fn send_all<T>(
    client: &Object,
    pipelined: &[Pipelined],
    statement: impl Future<Output = Sent<T>>,
) -> (Sent<()>, Sent<T>) {
    let earlier = join_all(pipelined.iter().map(|a| a.send(client)));
    let (earlier, done) = tokio::join!(biased; earlier, statement);
    (earlier.into_iter().collect(), done)
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
