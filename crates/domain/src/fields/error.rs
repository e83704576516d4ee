//! The reasons why a field is invalid.

/// The reason why the value of a field is invalid. A variant is a code; its text, a clause without
/// a full stop, names the field and the limit.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum FieldError {
    /// The field requires at least one character. Carries the name of the field.
    #[error("the {0} must not be empty")]
    Empty(&'static str),
    /// The text has too many characters.
    #[error("the {field} must not exceed {limit} characters")]
    TooLong {
        /// The name of the field.
        field: &'static str,
        /// The maximum number of characters.
        limit: usize,
    },
    /// The text contains a character that the field does not allow.
    #[error("the {field} must not contain the character {character:?}")]
    InvalidCharacter {
        /// The name of the field.
        field: &'static str,
        /// The first such character.
        character: char,
    },
    /// The number is too small or too large, or the text is not a number.
    #[error("the value must be between {min} and {max}")]
    OutOfRange {
        /// The smallest valid value.
        min: i64,
        /// The largest valid value.
        max: i64,
    },
}
