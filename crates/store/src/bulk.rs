//! Many rows at once: a prepared statement repeated on SQLite, UNNEST on PostgreSQL.
//!
//! On SQLite a call is cheap and a changing text is not, so one fixed statement runs row by row; on
//! PostgreSQL the round trip costs most, so all rows travel as one array per column.

use crate::error::Result;
use crate::row::Row;
use crate::value::Value;

/// One statement over many rows, in the form that suits each engine. Both take the same columns.
pub(crate) struct Bulk {
    /// SQLite: for one row, `$1` … `$N` are its values.
    pub(crate) each: &'static str,
    /// PostgreSQL: for all rows, `$1` … `$N` are arrays.
    pub(crate) all: &'static str,
}

/// Rows of N values.
pub(crate) struct Rows<'a, const N: usize>(Vec<[Value<'a>; N]>);

impl<'a, const N: usize> Rows<'a, N> {
    pub(crate) fn iter(&self) -> std::slice::Iter<'_, [Value<'a>; N]> {
        self.0.iter()
    }

    pub(crate) const fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl<'a, const N: usize> FromIterator<[Value<'a>; N]> for Rows<'a, N> {
    fn from_iter<I: IntoIterator<Item = [Value<'a>; N]>>(rows: I) -> Self {
        Self(rows.into_iter().collect())
    }
}

/// A question over many rows, not asked yet: two of them can be asked in one breath
/// ([`crate::Conn::ask_both`]).
pub struct Ask<'a, T, const N: usize> {
    pub(crate) bulk: &'static Bulk,
    pub(crate) rows: Rows<'a, N>,
    pub(crate) read: fn(&Row<'_>) -> Result<T>,
}
