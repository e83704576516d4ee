//! Bulk statements: a prepared statement that is repeated on SQLite, UNNEST on PostgreSQL.
//!
//! On SQLite a call is cheap and a changing text is not, so one fixed statement runs once per row.
//! On PostgreSQL the round trip costs most, so all rows travel as one array per column.

use crate::db::record::Record;
use crate::db::row::Row;
use crate::db::value::Value;
use crate::error::StoreResult;

/// One statement over many rows, in the form that suits each engine. Both forms take the same
/// columns.
pub(crate) struct Bulk {
    /// SQLite: for one row, `$1` … `$N` are its values.
    pub(crate) each: String,
    /// PostgreSQL: for all rows, `$1` … `$N` are arrays.
    pub(crate) all: String,
}

impl Bulk {
    /// A statement that is written by hand for each engine.
    pub(crate) fn new(each: impl Into<String>, all: impl Into<String>) -> Self {
        Self { each: each.into(), all: all.into() }
    }
}

/// The parameters of a bulk statement: rows of equal width, one after the other.
pub(crate) struct Rows<'a> {
    width: usize,
    values: Vec<Value<'a>>,
}

impl<'a> Rows<'a> {
    /// The columns of these records.
    pub(crate) fn of<R: Record + 'a>(records: impl ExactSizeIterator<Item = &'a R>) -> Self {
        Self::with(R::COLUMNS.len(), records, |values, record| record.push(values))
    }

    /// Rows of `width` values each, which `push` appends for each item.
    pub(crate) fn with<T>(
        width: usize,
        items: impl ExactSizeIterator<Item = T>,
        mut push: impl FnMut(&mut Vec<Value<'a>>, T),
    ) -> Self {
        let mut values = Vec::with_capacity(width * items.len());
        items.for_each(|item| push(&mut values, item));
        Self { width, values }
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &[Value<'a>]> {
        self.values.chunks_exact(self.width)
    }

    /// The values of each column.
    pub(crate) fn columns(&self) -> Vec<Vec<&Value<'a>>> {
        let column = |i| self.values.iter().skip(i).step_by(self.width).collect();
        (0..self.width).map(column).collect()
    }

    pub(crate) const fn is_empty(&self) -> bool {
        self.values.is_empty()
    }
}

impl<'a, const N: usize> FromIterator<[Value<'a>; N]> for Rows<'a> {
    fn from_iter<I: IntoIterator<Item = [Value<'a>; N]>>(rows: I) -> Self {
        let rows = rows.into_iter();
        let mut values = Vec::with_capacity(rows.size_hint().0 * N);
        rows.for_each(|row| values.extend_from_slice(&row));
        Self { width: N, values }
    }
}

/// A query over many rows that has not run yet. Two of them can share one round trip
/// ([`crate::Conn::query_both`]).
pub struct BulkQuery<'a, T> {
    pub(crate) bulk: &'static Bulk,
    pub(crate) rows: Rows<'a>,
    pub(crate) read: fn(&mut Row<'_>) -> StoreResult<T>,
}
