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
    /// Derives a secret for a purpose from a text, with the sealing key. It is the same on all
    /// nodes, and only this installation can compute it.
    pub fn derive(&self, purpose: &str, text: &str) -> StoreResult<[u8; 32]> {
        Ok(self.sealer()?.derive(purpose, text))
    }

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
    pub(crate) async fn query<T: Send>(
        &mut self,
        sql: &'static str,
        params: &[Value<'_>],
        read: impl FnMut(&mut Row<'_>) -> StoreResult<T> + Send,
    ) -> StoreResult<Vec<T>> {
        let mut found = Vec::new();
        self.for_each(sql, params, &mut push_to(&mut found, read)).await?;
        Ok(found)
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
    pub(crate) async fn query_made<T: Send>(
        &mut self,
        sql: &str,
        params: &[Value<'_>],
        read: impl FnMut(&mut Row<'_>) -> StoreResult<T> + Send,
    ) -> StoreResult<Vec<T>> {
        let mut found = Vec::new();
        self.for_each(sql, params, &mut push_to(&mut found, read)).await?;
        Ok(found)
    }

    /// Runs a statement that returns at most one row.
    pub(crate) async fn query_one<T: Send>(
        &mut self,
        sql: &'static str,
        params: &[Value<'_>],
        mut read: impl FnMut(&mut Row<'_>) -> StoreResult<T> + Send,
    ) -> StoreResult<Option<T>> {
        let mut found = None;
        let mut first = |row: &mut Row<'_>| {
            let row = read(row)?;
            found.get_or_insert(row);
            Ok(())
        };
        self.for_each(sql, params, &mut first).await?;
        Ok(found)
    }

    /// Runs a statement and passes each of its rows to `each`. Only its callers are generic, so
    /// that it is compiled once.
    async fn for_each(
        &mut self,
        sql: &str,
        params: &[Value<'_>],
        each: EachRow<'_>,
    ) -> StoreResult<()> {
        match self {
            Self::Sqlite(c) => c.query(sql, params, each),
            Self::Postgres(c) => read_all(&c.query(sql, params).await?, each),
        }
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
    pub(crate) async fn bulk_query<T: Send>(
        &mut self,
        bulk: &Bulk,
        rows: &Rows<'_>,
        read: impl FnMut(&mut Row<'_>) -> StoreResult<T> + Send,
    ) -> StoreResult<Vec<T>> {
        let mut found = Vec::new();
        self.for_each_of_bulk(bulk, rows, &mut push_to(&mut found, read)).await?;
        Ok(found)
    }

    /// Runs a bulk statement for all `rows` and passes each row it returns to `each`.
    async fn for_each_of_bulk(
        &mut self,
        bulk: &Bulk,
        rows: &Rows<'_>,
        each: EachRow<'_>,
    ) -> StoreResult<()> {
        match self {
            _ if rows.is_empty() => Ok(()),
            Self::Sqlite(c) => c.bulk_query(&bulk.each, rows, each),
            Self::Postgres(c) => read_all(&c.bulk_query(&bulk.all, rows).await?, each),
        }
    }

    /// Runs a query that a table's module has prepared.
    pub async fn query_many<T: Send>(&mut self, ask: BulkQuery<'_, T>) -> StoreResult<Vec<T>> {
        self.bulk_query(ask.bulk, &ask.rows, ask.read).await
    }

    /// Runs two queries. PostgreSQL receives both in one round trip.
    pub async fn query_both<T: Send, U: Send>(
        &mut self,
        one: BulkQuery<'_, T>,
        two: BulkQuery<'_, U>,
    ) -> StoreResult<(Vec<T>, Vec<U>)> {
        match self {
            Self::Postgres(c) if !one.rows.is_empty() && !two.rows.is_empty() => {
                let statements = ((&*one.bulk.all, &one.rows), (&*two.bulk.all, &two.rows));
                let (first, second) = c.query_both(statements.0, statements.1).await?;
                let (mut found_one, mut found_two) = (Vec::new(), Vec::new());
                read_all(&first, &mut push_to(&mut found_one, one.read))?;
                read_all(&second, &mut push_to(&mut found_two, two.read))?;
                Ok((found_one, found_two))
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

/// Returns a function that reads a row and adds the result to `found`.
fn push_to<T: Send>(
    found: &mut Vec<T>,
    mut read: impl FnMut(&mut Row<'_>) -> StoreResult<T> + Send,
) -> impl FnMut(&mut Row<'_>) -> StoreResult<()> + Send {
    move |row| {
        found.push(read(row)?);
        Ok(())
    }
}

/// Passes all rows of a result of PostgreSQL to `each`.
fn read_all(rows: &[PostgresRow], each: EachRow<'_>) -> StoreResult<()> {
    rows.iter().try_for_each(|row| each(&mut Row::postgres(row)))
}
