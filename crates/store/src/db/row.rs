//! A row of a result, read column by column in the order in which the statement names the columns.

use crate::db::postgres_row::{self, PostgresRow};
use crate::db::sqlite_row::{self, SqliteRow};
use crate::db::value::Cell;
use crate::error::StoreResult;
use uuid::Uuid;

/// One row of a result. [`Row::get`] and [`Row::record`] read from left to right, so that no caller
/// counts columns.
pub(crate) struct Row<'r> {
    driver: DriverRow<'r>,
    next: usize,
}

/// A function that is called with each row of a result. It is not a generic parameter, so that the
/// code of the drivers is compiled once and not for each kind of row.
pub(crate) type EachRow<'a> = &'a mut (dyn FnMut(&mut Row<'_>) -> StoreResult<()> + Send);

/// A type that is read from one column.
pub(crate) trait FromColumn: Sized {
    /// Reads the column at this index.
    fn from_column(row: &Row<'_>, column: usize) -> StoreResult<Self>;
}

/// A type that is read from several columns.
pub(crate) trait FromRow: Sized {
    /// Reads the next columns.
    fn from_row(row: &mut Row<'_>) -> StoreResult<Self>;
}

/// Reads a row of one column. A function for queries that return nothing else.
pub(crate) fn get<T: FromColumn>(row: &mut Row<'_>) -> StoreResult<T> {
    row.get()
}

/// Reads a row whose columns are those of a record.
pub(crate) fn record<R: FromRow>(row: &mut Row<'_>) -> StoreResult<R> {
    row.record()
}

/// A row as the driver returns it.
enum DriverRow<'r> {
    Sqlite(&'r SqliteRow<'r>),
    Postgres(&'r PostgresRow),
}

impl<'r> Row<'r> {
    pub(crate) const fn sqlite(row: &'r SqliteRow<'r>) -> Self {
        Self { driver: DriverRow::Sqlite(row), next: 0 }
    }

    pub(crate) const fn postgres(row: &'r PostgresRow) -> Self {
        Self { driver: DriverRow::Postgres(row), next: 0 }
    }

    /// Reads the next column.
    pub(crate) fn get<T: FromColumn>(&mut self) -> StoreResult<T> {
        let column = self.next;
        self.next += 1;
        T::from_column(self, column)
    }

    /// Reads the next columns, which are those of a record.
    pub(crate) fn record<R: FromRow>(&mut self) -> StoreResult<R> {
        R::from_row(self)
    }

    /// Reads the next column, whatever its type.
    pub(crate) fn cell(&mut self) -> StoreResult<Cell> {
        let column = self.next;
        self.next += 1;
        match self.driver {
            DriverRow::Sqlite(r) => sqlite_row::cell(r, column),
            DriverRow::Postgres(r) => postgres_row::cell(r, column),
        }
    }

    pub(crate) fn int(&self, column: usize) -> StoreResult<Option<i64>> {
        match self.driver {
            DriverRow::Sqlite(r) => sqlite_row::opt_int(r, column),
            DriverRow::Postgres(r) => postgres_row::opt_int(r, column),
        }
    }

    pub(crate) fn text(&self, column: usize) -> StoreResult<Option<String>> {
        match self.driver {
            DriverRow::Sqlite(r) => sqlite_row::opt_text(r, column),
            DriverRow::Postgres(r) => postgres_row::opt_text(r, column),
        }
    }

    pub(crate) fn uuid(&self, column: usize) -> StoreResult<Option<Uuid>> {
        match self.driver {
            DriverRow::Sqlite(r) => sqlite_row::opt_uuid(r, column),
            DriverRow::Postgres(r) => postgres_row::opt_uuid(r, column),
        }
    }

    pub(crate) fn bytes(&self, column: usize) -> StoreResult<Option<Vec<u8>>> {
        match self.driver {
            DriverRow::Sqlite(r) => sqlite_row::opt_bytes(r, column),
            DriverRow::Postgres(r) => postgres_row::opt_bytes(r, column),
        }
    }
}
