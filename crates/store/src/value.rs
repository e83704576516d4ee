//! Values on their way into a statement.

use heliograph_domain::phone::Recipient;
use heliograph_domain::time::Timestamp;
use uuid::Uuid;

/// A value on its way into a statement. Integers fit themselves to the column's width.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Value<'a> {
    Null,
    Int(i64),
    Text(&'a str),
    Bytes(&'a [u8]),
    Uuid(Uuid),
}

impl From<i64> for Value<'_> {
    fn from(v: i64) -> Self {
        Self::Int(v)
    }
}

impl From<i32> for Value<'_> {
    fn from(v: i32) -> Self {
        Self::Int(v.into())
    }
}

impl From<i16> for Value<'_> {
    fn from(v: i16) -> Self {
        Self::Int(v.into())
    }
}

impl From<u16> for Value<'_> {
    fn from(v: u16) -> Self {
        Self::Int(v.into())
    }
}

impl From<Timestamp> for Value<'_> {
    fn from(v: Timestamp) -> Self {
        Self::Int(v.millis())
    }
}

impl From<Recipient> for Value<'_> {
    fn from(v: Recipient) -> Self {
        Self::Int(i64::try_from(v.0).unwrap_or(i64::MAX))
    }
}

impl From<Uuid> for Value<'_> {
    fn from(v: Uuid) -> Self {
        Self::Uuid(v)
    }
}

impl<'a> From<&'a str> for Value<'a> {
    fn from(v: &'a str) -> Self {
        Self::Text(v)
    }
}

impl<'a, T: Into<Value<'a>>> From<Option<T>> for Value<'a> {
    fn from(v: Option<T>) -> Self {
        v.map_or(Value::Null, Into::into)
    }
}

/// A value as it stands in a table, of whatever column.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Cell {
    Null,
    Int(i64),
    Text(String),
    /// Also an id, whose 16 bytes are the same on both engines.
    Bytes(Vec<u8>),
}

impl<'a> From<&'a Cell> for Value<'a> {
    fn from(cell: &'a Cell) -> Self {
        match cell {
            Cell::Null => Value::Null,
            Cell::Int(v) => Value::Int(*v),
            Cell::Text(v) => Value::Text(v),
            Cell::Bytes(v) => Value::Bytes(v),
        }
    }
}
