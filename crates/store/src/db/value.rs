//! Parameters of statements, and values of any type for backups.

use heliograph_domain::phone::Recipient;
use heliograph_domain::time::Timestamp;
use uuid::Uuid;

/// A parameter of a statement. Integers are narrowed to the width of their column.
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

/// A stored value of any column.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Cell {
    Null,
    Int(i64),
    Text(String),
    /// A byte string, or an id as its 16 bytes, which are the same on both engines.
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
