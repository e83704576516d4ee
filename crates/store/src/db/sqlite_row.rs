//! Reads the columns of a row of SQLite.

use crate::db::sqlite_error::failed;
use crate::db::value::Cell;
use crate::error::{StoreError, StoreResult};
use rusqlite::types::ValueRef;
use uuid::Uuid;

/// A row as the driver returns it.
pub(crate) type SqliteRow<'r> = rusqlite::Row<'r>;

/// Reads an integer; `None` when it is NULL.
pub(crate) fn opt_int(row: &SqliteRow<'_>, i: usize) -> StoreResult<Option<i64>> {
    row.get(i).map_err(failed)
}

/// Reads a text; `None` when it is NULL.
pub(crate) fn opt_text(row: &SqliteRow<'_>, i: usize) -> StoreResult<Option<String>> {
    row.get(i).map_err(failed)
}

/// Reads a byte string; `None` when it is NULL.
pub(crate) fn opt_bytes(row: &SqliteRow<'_>, i: usize) -> StoreResult<Option<Vec<u8>>> {
    row.get(i).map_err(failed)
}

/// Reads an id; `None` when it is NULL.
pub(crate) fn opt_uuid(row: &SqliteRow<'_>, i: usize) -> StoreResult<Option<Uuid>> {
    let Some(blob) = row.get_ref(i).and_then(|v| Ok(v.as_blob_or_null()?)).map_err(failed)? else {
        return Ok(None);
    };
    Uuid::from_slice(blob).map(Some).map_err(StoreError::corrupt)
}

/// Reads a value of any type from SQLite.
pub(crate) fn cell(row: &SqliteRow<'_>, i: usize) -> StoreResult<Cell> {
    Ok(match row.get_ref(i).map_err(failed)? {
        ValueRef::Null => Cell::Null,
        ValueRef::Integer(v) => Cell::Int(v),
        ValueRef::Text(v) => {
            Cell::Text(String::from_utf8(v.to_vec()).map_err(StoreError::corrupt)?)
        }
        ValueRef::Blob(v) => Cell::Bytes(v.to_vec()),
        ValueRef::Real(_) => {
            return Err(StoreError::corrupt(format_args!("column {i} is not an integer")));
        }
    })
}
