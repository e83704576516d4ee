//! The fault codes of the API: validation errors of single values of a request.

use serde::{Serialize, Serializer};
use std::borrow::Cow;
use utoipa::ToSchema;

/// A validation error of one value of the request.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, ToSchema)]
pub(crate) struct Fault {
    /// The location of the value: a JSON Pointer into the body as a URI fragment (`#/text`),
    /// `query:NAME` or `header:NAME`.
    pub(crate) pointer: String,
    /// The kind of the error.
    pub(crate) code: FaultCode,
    /// An explanation for people. Do not parse it.
    pub(crate) detail: String,
}

macro_rules! faults {
    ($($id:ident = $name:literal, $meaning:literal;)+) => {
        /// The machine-readable kind of a [`Fault`].
        #[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
        pub(crate) enum FaultCode {
            $($id,)+
        }

        impl FaultCode {
            /// All codes in alphabetical order.
            pub(crate) const ALL: &[Self] = &[$(Self::$id,)+];

            /// Returns the `code` on the wire.
            pub(crate) const fn name(self) -> &'static str {
                match self { $(Self::$id => $name,)+ }
            }

            /// Returns an explanation of the code, with advice.
            pub(crate) const fn meaning(self) -> &'static str {
                match self { $(Self::$id => $meaning,)+ }
            }
        }
    };
}

faults! {
    DuplicateField = "duplicate_field",
        "The field, parameter or header appears more than once. Remove the duplicates.";
    InvalidCharacter = "invalid_character",
        "The text contains the character NUL (U+0000), which can be neither stored nor sent.";
    InvalidCursor = "invalid_cursor",
        "The cursor does not belong to this list, or to these filters. Pass `nextCursor` of the \
         previous page unchanged, with the path and the filters of that page.";
    InvalidIdempotencyKey = "invalid_idempotency_key",
        "The `Idempotency-Key` header must be sent once, with 1 to 255 printable ASCII characters.";
    InvalidName = "invalid_name",
        "The name is blank, longer than 100 characters, or contains control characters.";
    InvalidNumber = "invalid_number",
        "The phone number is invalid. Use the international format with the country code, like \
         `+447700900123`. Numbers without a plus are also read as international numbers.";
    InvalidOriginator = "invalid_originator",
        "An originator is a name of 1 to 11 characters (letters A to Z, digits, spaces and `+ - _ \
         & .`, with at least one letter), a short code of 3 to 8 digits, or an international \
         number like `+447700900123`. A number cannot begin with 0.";
    InvalidTime = "invalid_time",
        "The time is invalid. Use RFC 3339 with an offset from UTC, like \
         `2026-11-20T09:00:00Z`, or a date, like `2026-11-20`, for the whole day in UTC. In a URL, encode a plus sign as `%2B`.";
    InvalidValue = "invalid_value",
        "The value is not one of the allowed values; `detail` lists them.";
    NotAvailable = "not_available",
        "The field belongs to a feature that this version does not support yet. Omit it.";
    OutOfRange = "out_of_range",
        "The number is smaller or larger than allowed; `detail` gives both bounds.";
    Required = "required",
        "The field is required and can be neither `null` nor empty.";
    TooLong = "too_long",
        "The text is longer than allowed; `detail` gives the limit in characters.";
    TooManyParts = "too_many_parts",
        "The text needs more parts than `maxParts` allows, or more than 10. Shorten it. Characters \
         outside the GSM alphabet reduce the size of every part from 153 to 67 characters.";
    UnknownField = "unknown_field",
        "The field or parameter does not exist. Names are case-sensitive, and unknown names are \
         never ignored.";
    WrongType = "wrong_type",
        "The value has the wrong JSON type. Write numbers and booleans without quotes, and strings \
         with quotes.";
}

impl Serialize for FaultCode {
    fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        s.serialize_str(self.name())
    }
}

/// The maximum number of characters of a name that a fault repeats.
const MAX_NAME: usize = 100;

/// Returns the beginning of a name that the client chose, so that a response stays small.
pub(crate) fn shorten(name: &str) -> Cow<'_, str> {
    match name.char_indices().nth(MAX_NAME) {
        Some((end, _)) => Cow::Owned(format!("{}…", name.get(..end).unwrap_or_default())),
        None => Cow::Borrowed(name),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fault_table_is_current() {
        let rows = FaultCode::ALL.iter().map(|c| format!("{}\n    {}\n", c.name(), c.meaning()));
        insta::assert_snapshot!(rows.collect::<String>());
        assert!(FaultCode::ALL.is_sorted_by_key(|c| c.name()));
    }
}
