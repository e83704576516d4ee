//! The table of faults: what can be wrong with one value of a request.

use serde::{Serialize, Serializer};
use utoipa::ToSchema;

/// One thing that is wrong with a request.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, ToSchema)]
pub(crate) struct Fault {
    /// Where: a JSON pointer into the body as a URI fragment, `query:NAME` or `header:NAME`.
    pub(crate) pointer: String,
    /// What kind of thing.
    pub(crate) code: FaultCode,
    /// What exactly, for the person who reads it.
    pub(crate) detail: String,
}

macro_rules! faults {
    ($($id:ident = $name:literal, $meaning:literal;)+) => {
        /// What kind of thing is wrong.
        #[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
        pub(crate) enum FaultCode {
            $($id,)+
        }

        impl FaultCode {
            /// All of them, in the order of the alphabet.
            pub(crate) const ALL: &[Self] = &[$(Self::$id,)+];

            /// As on the wire.
            pub(crate) const fn name(self) -> &'static str {
                match self { $(Self::$id => $name,)+ }
            }

            /// What it means, and what to do.
            pub(crate) const fn meaning(self) -> &'static str {
                match self { $(Self::$id => $meaning,)+ }
            }
        }
    };
}

faults! {
    DuplicateField = "duplicate_field",
        "The field stands in the object twice. Leave one of them out: which one counts is not guessed.";
    InvalidCharacter = "invalid_character",
        "The text holds the character NUL (U+0000), which can be neither stored nor sent.";
    InvalidCursor = "invalid_cursor",
        "The cursor was not given out by this list. Take `nextCursor` of the page before as it is.";
    InvalidIdempotencyKey = "invalid_idempotency_key",
        "The header `Idempotency-Key` must stand there once, with 1 to 255 printable ASCII characters.";
    InvalidName = "invalid_name",
        "The name is blank, longer than 100 characters, or holds control characters.";
    InvalidNumber = "invalid_number",
        "This is no possible phone number. Write it with its country code, like `+447700900123`: numbers are always \
         read as international ones.";
    InvalidOriginator = "invalid_originator",
        "An originator is a name of 1 to 11 characters (letters A to Z, digits, spaces and `+ - _ & .`, with at least \
         one letter), or a number of 3 to 15 digits.";
    InvalidTime = "invalid_time",
        "This is no instant. Write it with its offset from UTC, like `2026-11-20T09:00:00Z`, and a plus sign in an \
         address as `%2B`.";
    InvalidValue = "invalid_value",
        "The value is none of those that are possible here; `detail` says which they are.";
    NotAvailable = "not_available",
        "The field belongs to something that this version can't do yet. Leave it out.";
    OutOfRange = "out_of_range",
        "The number is smaller or larger than allowed; `detail` gives both bounds.";
    Required = "required",
        "The field must be there, and neither `null` nor an empty text.";
    TooLong = "too_long",
        "The text has more characters than allowed; `detail` gives the limit.";
    TooManyParts = "too_many_parts",
        "The text needs more parts than `maxParts` allows, or more than 10. Shorten it. Characters outside the GSM \
         alphabet make every part shorter: 67 characters instead of 153.";
    UnknownField = "unknown_field",
        "There is no such field or parameter here. Names are case-sensitive, and nothing is passed over in silence.";
    WrongType = "wrong_type",
        "The value is of another JSON type than the field: write numbers and `true` without quotes, texts with them.";
}

impl Serialize for FaultCode {
    fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        s.serialize_str(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_of_faults() {
        let rows = FaultCode::ALL.iter().map(|c| format!("{}\n    {}\n", c.name(), c.meaning()));
        insta::assert_snapshot!(rows.collect::<String>());
        assert!(FaultCode::ALL.is_sorted_by_key(|c| c.name()));
    }
}
