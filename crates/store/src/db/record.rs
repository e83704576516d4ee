//! The columns of a table, declared once.
//!
//! [`record!`] lists the columns of a table as the fields of a struct. From that list come the
//! column list of every statement, the reader of a row and the parameters of an INSERT; the type of
//! a field gives the type of its column ([`Field`]). A new column is one line in a [`record!`] and
//! one in a migration.

use crate::db::field::Field;
use crate::db::row::{FromRow, Row};
use crate::db::value::Value;
use crate::error::StoreResult;

/// A column of a table.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Column {
    /// Its name in the schema.
    pub(crate) name: &'static str,
    /// Its type in PostgreSQL.
    pub(crate) sql_type: &'static str,
}

impl Column {
    /// A parameter of a bulk statement that is not a column of the table.
    pub(crate) const fn parameter<F: Field>(name: &'static str) -> Self {
        Self { name, sql_type: F::SQL_TYPE }
    }
}

/// Returns the type of the column that a field of a record is stored in. Only the type of the
/// accessor matters.
pub(crate) const fn sql_type<R, F: Field>(_: fn(&R) -> &F) -> &'static str {
    F::SQL_TYPE
}

/// A struct whose fields are columns of one table. Implemented by [`record!`].
pub(crate) trait Record: Sized {
    /// The columns, in the order in which [`Self::read`] and [`Self::push`] take them.
    const COLUMNS: &'static [Column];

    /// Reads the columns from a row.
    fn read(row: &mut Row<'_>) -> StoreResult<Self>;

    /// Appends the values of the columns as parameters.
    fn push<'a>(&'a self, values: &mut Vec<Value<'a>>);

    /// Returns the values of the columns as parameters.
    fn values(&self) -> Vec<Value<'_>> {
        let mut values = Vec::with_capacity(Self::COLUMNS.len());
        self.push(&mut values);
        values
    }
}

impl<R: Record> FromRow for R {
    fn from_row(row: &mut Row<'_>) -> StoreResult<Self> {
        R::read(row)
    }
}

/// Declares the columns of a struct. A column has the name of its field, or the one behind `=>`.
///
/// `record! { struct Name { field: Type, … } }` declares the struct too; `record! { for Name {
/// field, … } }` is for a struct of another crate, whose fields are all columns.
macro_rules! record {
    (
        $(#[$meta:meta])*
        $vis:vis struct $record:ident {
            $($(#[$field_meta:meta])* $field_vis:vis $field:ident: $type:ty $(=> $column:ident)?),+ $(,)?
        }
    ) => {
        $(#[$meta])*
        $vis struct $record {
            $($(#[$field_meta])* $field_vis $field: $type),+
        }

        $crate::db::record::record! { for $record { $($field $(=> $column)?),+ } }
    };
    (for $record:ty { $($field:ident $(=> $column:ident)?),+ $(,)? }) => {
        impl $crate::db::record::Record for $record {
            const COLUMNS: &'static [$crate::db::record::Column] =
                $crate::db::record::columns!($record: $($field $(=> $column)?),+);

            fn read(row: &mut $crate::db::row::Row<'_>) -> $crate::error::StoreResult<Self> {
                Ok(Self { $($field: row.get()?),+ })
            }

            fn push<'a>(&'a self, values: &mut Vec<$crate::db::value::Value<'a>>) {
                values.extend([$($crate::db::field::Field::value(&self.$field)),+]);
            }
        }
    };
}
pub(crate) use record;

/// Names some columns of a record by its fields.
macro_rules! columns {
    (@name $field:ident) => { stringify!($field) };
    (@name $field:ident $column:ident) => { stringify!($column) };
    ($record:ty: $($field:ident $(=> $column:ident)?),+ $(,)?) => {
        &[$($crate::db::record::Column {
            name: $crate::db::record::columns!(@name $field $($column)?),
            sql_type: $crate::db::record::sql_type(|record: &$record| &record.$field),
        }),+]
    };
}
pub(crate) use columns;
