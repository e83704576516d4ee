//! The Rust types that are stored in one column, and how each is written and read.

use crate::db::row::{FromColumn, Row};
use crate::db::value::Value;
use crate::error::{StoreError, StoreResult};
use heliograph_domain::id::{
    AccountId, ApiKeyId, AuditId, CarrierId, EndpointId, EventId, InboundId, InvitationId,
    MessageId, NodeId, OptoutListId, SessionId, UserId,
};
use heliograph_domain::money::Amount;
use heliograph_domain::phone::Recipient;
use heliograph_domain::time::Timestamp;
use uuid::Uuid;

/// A type that one column can hold.
pub(crate) trait Field: Sized {
    /// The column's type in PostgreSQL. Arrays of parameters are cast to it.
    const SQL_TYPE: &'static str;

    /// Returns the parameter that stores `self`.
    fn value(&self) -> Value<'_>;

    /// Reads the column at this index; `None` when it is NULL.
    fn read_nullable(row: &Row<'_>, column: usize) -> StoreResult<Option<Self>>;

    /// Reads the column at this index.
    fn read(row: &Row<'_>, column: usize) -> StoreResult<Self> {
        let null = || StoreError::corrupt(format_args!("column {column} is null"));
        Self::read_nullable(row, column)?.ok_or_else(null)
    }
}

impl<T: Field> FromColumn for T {
    fn from_column(row: &Row<'_>, column: usize) -> StoreResult<Self> {
        T::read(row, column)
    }
}

/// A column that may be NULL.
impl<T: Field> Field for Option<T> {
    const SQL_TYPE: &'static str = T::SQL_TYPE;

    fn value(&self) -> Value<'_> {
        self.as_ref().map_or(Value::Null, T::value)
    }

    fn read_nullable(row: &Row<'_>, column: usize) -> StoreResult<Option<Self>> {
        T::read_nullable(row, column).map(Some)
    }

    fn read(row: &Row<'_>, column: usize) -> StoreResult<Self> {
        T::read_nullable(row, column)
    }
}

/// Implements [`Field`] for types that are integers.
macro_rules! integers {
    ($($sql:literal: $($int:ty),+;)+) => {$($(
        impl Field for $int {
            const SQL_TYPE: &'static str = $sql;

            fn value(&self) -> Value<'_> {
                Value::Int((*self).into())
            }

            fn read_nullable(row: &Row<'_>, column: usize) -> StoreResult<Option<Self>> {
                let range = |v| {
                    StoreError::corrupt(format_args!("{v} in column {column} is out of range"))
                };
                let narrow = |v: i64| Self::try_from(v).map_err(|_| range(v));
                row.int(column)?.map(narrow).transpose()
            }
        }
    )+)+};
}

// PostgreSQL's smallint holds every u16 that is stored: counters and numbers of parts stay far
// below its limit.
integers! {
    "smallint": i16, u16, u8;
    "integer": i32, u32;
    "bigint": i64;
}

/// Implements [`Field`] for types that wrap another one.
macro_rules! wrappers {
    ($($inner:ty: $($outer:ident),+;)+) => {$($(
        impl Field for $outer {
            const SQL_TYPE: &'static str = <$inner>::SQL_TYPE;

            fn value(&self) -> Value<'_> {
                self.0.value()
            }

            fn read_nullable(row: &Row<'_>, column: usize) -> StoreResult<Option<Self>> {
                Ok(<$inner>::read_nullable(row, column)?.map($outer))
            }
        }
    )+)+};
}

type Lane = heliograph_domain::lease::Lane;

wrappers! {
    i16: CarrierId;
    i32: NodeId, EndpointId;
    i64: AccountId, Amount, Timestamp;
    Uuid: MessageId, ApiKeyId, UserId, SessionId, InvitationId, AuditId, EventId, InboundId, OptoutListId;
}

impl Field for Lane {
    const SQL_TYPE: &'static str = i16::SQL_TYPE;

    fn value(&self) -> Value<'_> {
        self.0.value()
    }

    fn read_nullable(row: &Row<'_>, column: usize) -> StoreResult<Option<Self>> {
        Ok(i16::read_nullable(row, column)?.map(heliograph_domain::lease::Lane))
    }
}

/// Implements [`Field`] for enumerations, which are stored by their code.
macro_rules! codes {
    ($($name:literal: $code:ty;)+) => {$(
        impl $crate::db::field::Field for $code {
            const SQL_TYPE: &'static str = "smallint";

            fn value(&self) -> $crate::db::value::Value<'_> {
                $crate::db::value::Value::Int(self.code().into())
            }

            fn read_nullable(
                row: &$crate::db::row::Row<'_>,
                column: usize,
            ) -> $crate::error::StoreResult<Option<Self>> {
                let unknown = || $crate::error::StoreError::corrupt(concat!("unknown ", $name));
                let decode = |code: i64| {
                    i16::try_from(code).ok().and_then(Self::from_code).ok_or_else(unknown)
                };
                row.int(column)?.map(decode).transpose()
            }
        }
    )+};
}
pub(crate) use codes;

codes! {
    "attempt outcome": heliograph_domain::delivery_error::AttemptOutcome;
    "reason": heliograph_domain::endpoint_error::DisabledReason;
    "mode": heliograph_domain::account::Mode;
    "role": heliograph_domain::account::Role;
    "event kind": heliograph_domain::event::EventKind;
    "keyword": heliograph_domain::inbound::Keyword;
    "failure code": heliograph_domain::message::FailureCode;
    "status": heliograph_domain::message::MessageStatus;
    "opt-out source": heliograph_domain::optout::OptoutSource;
    "encoding": heliograph_domain::text::Encoding;
}

/// Implements [`Field`] for bit sets.
macro_rules! bit_sets {
    ($($set:ty),+ $(,)?) => {$(
        impl Field for $set {
            const SQL_TYPE: &'static str = "smallint";

            fn value(&self) -> Value<'_> {
                Value::Int(self.bits().into())
            }

            fn read_nullable(row: &Row<'_>, column: usize) -> StoreResult<Option<Self>> {
                Ok(i16::read_nullable(row, column)?.map(Self::from_bits))
            }
        }
    )+};
}

bit_sets!(heliograph_domain::account::Scopes, heliograph_domain::webhook::EventKinds);

impl Field for bool {
    const SQL_TYPE: &'static str = "smallint";

    fn value(&self) -> Value<'_> {
        Value::Int((*self).into())
    }

    fn read_nullable(row: &Row<'_>, column: usize) -> StoreResult<Option<Self>> {
        Ok(row.int(column)?.map(|v| v != 0))
    }
}

/// The digits of a phone number.
impl Field for Recipient {
    const SQL_TYPE: &'static str = "bigint";

    fn value(&self) -> Value<'_> {
        (*self).into()
    }

    fn read_nullable(row: &Row<'_>, column: usize) -> StoreResult<Option<Self>> {
        let range = |v| StoreError::corrupt(format_args!("{v} in column {column} is out of range"));
        let narrow = |v: i64| u64::try_from(v).map(Recipient).map_err(|_| range(v));
        row.int(column)?.map(narrow).transpose()
    }
}

impl Field for String {
    const SQL_TYPE: &'static str = "text";

    fn value(&self) -> Value<'_> {
        Value::Text(self)
    }

    fn read_nullable(row: &Row<'_>, column: usize) -> StoreResult<Option<Self>> {
        row.text(column)
    }
}

impl Field for heliograph_domain::originator::Originator {
    const SQL_TYPE: &'static str = "text";

    fn value(&self) -> Value<'_> {
        Value::Text(self.as_str())
    }

    fn read_nullable(row: &Row<'_>, column: usize) -> StoreResult<Option<Self>> {
        Ok(row.text(column)?.map(Self::from_stored))
    }
}

impl Field for Uuid {
    const SQL_TYPE: &'static str = "uuid";

    fn value(&self) -> Value<'_> {
        Value::Uuid(*self)
    }

    fn read_nullable(row: &Row<'_>, column: usize) -> StoreResult<Option<Self>> {
        row.uuid(column)
    }
}

impl Field for Vec<u8> {
    const SQL_TYPE: &'static str = "bytea";

    fn value(&self) -> Value<'_> {
        Value::Bytes(self)
    }

    fn read_nullable(row: &Row<'_>, column: usize) -> StoreResult<Option<Self>> {
        row.bytes(column)
    }
}

/// A SHA-256 hash.
impl Field for [u8; 32] {
    const SQL_TYPE: &'static str = "bytea";

    fn value(&self) -> Value<'_> {
        Value::Bytes(self)
    }

    fn read_nullable(row: &Row<'_>, column: usize) -> StoreResult<Option<Self>> {
        let short = |_| StoreError::corrupt(format_args!("column {column} is not 32 bytes long"));
        row.bytes(column)?.map(|bytes| bytes.try_into().map_err(short)).transpose()
    }
}
