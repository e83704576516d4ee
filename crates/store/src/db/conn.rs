//! Connections and transactions, and the statements that run on them.

use crate::db::bulk::{Bulk, BulkQuery, Rows};
use crate::db::postgres::PgConn;
use crate::db::postgres_row::PostgresRow;
use crate::db::row::{EachRow, Row};
use crate::db::sealing::Sealer;
use crate::db::sqlite::SqliteConn;
use crate::db::value::Value;
use crate::error::StoreResult;
use std::ops::{Deref, DerefMut};
use std::sync::Arc;

/// A connection.
pub enum Conn {
    /// SQLite, in this process.
    #[doc(hidden)]
    Sqlite(SqliteConn),
    /// PostgreSQL, over a socket.
    #[doc(hidden)]
    Postgres(PgConn),
}

/// A transaction. It is rolled back when it is dropped without [`Tx::commit`].
pub struct Tx(pub(crate) Conn);

impl Tx {
    /// Commits the transaction.
    ///
    /// # Errors
    /// [`crate::error::StoreError::CommitLost`] when the connection broke before the answer. After any other
    /// error nothing was changed.
    pub async fn commit(self) -> StoreResult<()> {
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
    /// Returns what seals and opens the secrets of this database.
    pub(crate) fn sealer(&self) -> StoreResult<Arc<Sealer>> {
        match self {
            Self::Sqlite(c) => c.sealer(),
            Self::Postgres(c) => Ok(c.sealer()),
        }
    }

    /// Runs a statement and returns the number of rows it changed.
    pub(crate) async fn execute(
        &mut self,
        sql: &'static str,
        params: &[Value<'_>],
    ) -> StoreResult<u64> {
        self.execute_made(sql, params).await
    }

    /// Runs a statement and reads its rows.
    pub(crate) async fn query<T>(
        &mut self,
        sql: &'static str,
        params: &[Value<'_>],
        read: impl FnMut(&mut Row<'_>) -> StoreResult<T>,
    ) -> StoreResult<Vec<T>> {
        self.query_made(sql, params, read).await
    }

    /// Runs a statement whose text is generated from names of the catalogue, never from input, and
    /// returns the number of rows it changed.
    pub(crate) async fn execute_made(
        &mut self,
        sql: &str,
        params: &[Value<'_>],
    ) -> StoreResult<u64> {
        match self {
            Self::Sqlite(c) => c.execute(sql, params),
            Self::Postgres(c) => c.execute(sql, params).await,
        }
    }

    /// Runs a statement with a generated text, as [`Self::execute_made`] does, and reads its rows.
    pub(crate) async fn query_made<T>(
        &mut self,
        sql: &str,
        params: &[Value<'_>],
        mut read: impl FnMut(&mut Row<'_>) -> StoreResult<T>,
    ) -> StoreResult<Vec<T>> {
        match self {
            Self::Sqlite(c) => collect(&mut read, |each| c.query(sql, params, each)),
            Self::Postgres(c) => read_all(&c.query(sql, params).await?, read),
        }
    }

    /// Runs a statement that returns at most one row.
    pub(crate) async fn query_one<T>(
        &mut self,
        sql: &'static str,
        params: &[Value<'_>],
        read: impl FnMut(&mut Row<'_>) -> StoreResult<T>,
    ) -> StoreResult<Option<T>> {
        Ok(self.query(sql, params, read).await?.into_iter().next())
    }

    /// Runs a bulk statement for all `rows` and returns the number of rows it changed.
    pub(crate) async fn bulk_execute(&mut self, bulk: &Bulk, rows: &Rows<'_>) -> StoreResult<u64> {
        match self {
            _ if rows.is_empty() => Ok(0),
            Self::Sqlite(c) => c.bulk_execute(&bulk.each, rows),
            Self::Postgres(c) => c.bulk_execute(&bulk.all, rows).await,
        }
    }

    /// Runs a bulk statement for all `rows` without waiting for its result. On PostgreSQL the
    /// statement is pipelined: it is sent with the next statement or with the commit, which also
    /// returns its error.
    pub(crate) async fn pipeline(&mut self, bulk: &Bulk, rows: &Rows<'_>) -> StoreResult<()> {
        match self {
            _ if rows.is_empty() => Ok(()),
            Self::Sqlite(c) => c.bulk_execute(&bulk.each, rows).map(drop),
            Self::Postgres(c) => c.pipeline(&bulk.all, rows).await,
        }
    }

    /// Runs a bulk statement for all `rows` and reads the rows it returns, in any order.
    pub(crate) async fn bulk_query<T>(
        &mut self,
        bulk: &Bulk,
        rows: &Rows<'_>,
        mut read: impl FnMut(&mut Row<'_>) -> StoreResult<T>,
    ) -> StoreResult<Vec<T>> {
        match self {
            _ if rows.is_empty() => Ok(Vec::new()),
            Self::Sqlite(c) => collect(&mut read, |each| c.bulk_query(&bulk.each, rows, each)),
            Self::Postgres(c) => read_all(&c.bulk_query(&bulk.all, rows).await?, read),
        }
    }

    /// Runs a query that a table's module has prepared.
    pub async fn query_many<T>(&mut self, ask: BulkQuery<'_, T>) -> StoreResult<Vec<T>> {
        self.bulk_query(ask.bulk, &ask.rows, ask.read).await
    }

    /// Runs two queries. PostgreSQL receives both in one round trip.
    pub async fn query_both<T, U>(
        &mut self,
        one: BulkQuery<'_, T>,
        two: BulkQuery<'_, U>,
    ) -> StoreResult<(Vec<T>, Vec<U>)> {
        match self {
            Self::Postgres(c) if !one.rows.is_empty() && !two.rows.is_empty() => {
                let statements = ((&*one.bulk.all, &one.rows), (&*two.bulk.all, &two.rows));
                let (first, second) = c.query_both(statements.0, statements.1).await?;
                Ok((read_all(&first, one.read)?, read_all(&second, two.read)?))
            }
            _ => Ok((self.query_many(one).await?, self.query_many(two).await?)),
        }
    }

    /// Returns the text for the engine, for a statement that must differ between the engines.
    pub(crate) const fn pick(&self, sqlite: &'static str, postgres: &'static str) -> &'static str {
        match self {
            Self::Sqlite(_) => sqlite,
            Self::Postgres(_) => postgres,
        }
    }
}

/// Reads all rows that a query of SQLite finds.
fn collect<T>(
    mut read: impl FnMut(&mut Row<'_>) -> StoreResult<T>,
    query: impl FnOnce(EachRow<'_>) -> StoreResult<()>,
) -> StoreResult<Vec<T>> {
    let mut found = Vec::new();
    query(&mut |row| {
        found.push(read(row)?);
        Ok(())
    })?;
    Ok(found)
}

/// Reads all rows of a result of PostgreSQL.
fn read_all<T>(
    rows: &[PostgresRow],
    mut read: impl FnMut(&mut Row<'_>) -> StoreResult<T>,
) -> StoreResult<Vec<T>> {
    rows.iter().map(|row| read(&mut Row::postgres(row))).collect()
}
