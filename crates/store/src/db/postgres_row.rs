//! Reads the columns of a row of PostgreSQL.

use crate::db::postgres_error::failed;
use crate::db::value::Cell;
use crate::error::{StoreError, StoreResult};
use tokio_postgres::types::Type;
use uuid::Uuid;

/// A row as the driver returns it.
pub(crate) type PostgresRow = tokio_postgres::Row;

/// Reads an integer; `None` when it is NULL.
pub(crate) fn opt_int(row: &PostgresRow, i: usize) -> StoreResult<Option<i64>> {
    let bad = || StoreError::corrupt(format_args!("there is no column {i}"));
    let value = match *row.columns().get(i).ok_or_else(bad)?.type_() {
        Type::INT2 => row.try_get::<_, Option<i16>>(i).map(|v| v.map(i64::from)),
        Type::INT4 => row.try_get::<_, Option<i32>>(i).map(|v| v.map(i64::from)),
        _ => row.try_get(i),
    };
    value.map_err(|e| failed(&e))
}

/// Reads a text; `None` when it is NULL.
pub(crate) fn opt_text(row: &PostgresRow, i: usize) -> StoreResult<Option<String>> {
    row.try_get(i).map_err(|e| failed(&e))
}

/// Reads a byte string; `None` when it is NULL.
pub(crate) fn opt_bytes(row: &PostgresRow, i: usize) -> StoreResult<Option<Vec<u8>>> {
    row.try_get(i).map_err(|e| failed(&e))
}

/// Reads an id; `None` when it is NULL.
pub(crate) fn opt_uuid(row: &PostgresRow, i: usize) -> StoreResult<Option<Uuid>> {
    row.try_get(i).map_err(|e| failed(&e))
}

/// Reads a value of any type that the schema uses from PostgreSQL.
pub(crate) fn cell(row: &PostgresRow, i: usize) -> StoreResult<Cell> {
    let bad = || StoreError::corrupt(format_args!("there is no column {i}"));
    let cell = match *row.columns().get(i).ok_or_else(bad)?.type_() {
        Type::INT2 => row.try_get::<_, Option<i16>>(i).map(|v| v.map(|v| Cell::Int(v.into()))),
        Type::INT4 => row.try_get::<_, Option<i32>>(i).map(|v| v.map(|v| Cell::Int(v.into()))),
        Type::INT8 => row.try_get::<_, Option<i64>>(i).map(|v| v.map(Cell::Int)),
        Type::BYTEA => row.try_get::<_, Option<Vec<u8>>>(i).map(|v| v.map(Cell::Bytes)),
        Type::UUID => {
            row.try_get::<_, Option<Uuid>>(i).map(|v| v.map(|v| Cell::Bytes(v.as_bytes().to_vec())))
        }
        _ => row.try_get::<_, Option<String>>(i).map(|v| v.map(Cell::Text)),
    };
    cell.map(|c| c.unwrap_or(Cell::Null)).map_err(|e| failed(&e))
}
