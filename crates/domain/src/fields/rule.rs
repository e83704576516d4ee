//! The rule of a text, and the types of texts that obey one.

use crate::fields::error::FieldError;

/// The rule of a text. Lengths count characters (Unicode code points).
pub(super) struct TextRule {
    /// The name of the field in errors.
    pub(super) field: &'static str,
    /// True if the text must not be empty.
    pub(super) is_required: bool,
    /// The maximum number of characters; `None` if another rule limits the text.
    pub(super) max_length: Option<usize>,
    /// True if white space around the text does not belong to it.
    pub(super) is_trimmed: bool,
    /// Returns the first character that the text must not contain.
    pub(super) find_invalid: fn(&str) -> Option<char>,
}

impl TextRule {
    pub(super) fn check<'a>(&self, text: &'a str) -> Result<&'a str, FieldError> {
        let &Self { field, is_required, max_length, is_trimmed, find_invalid } = self;
        let text = if is_trimmed { text.trim() } else { text };
        if text.is_empty() && is_required {
            return Err(FieldError::Empty(field));
        }
        // A text has no more characters than bytes.
        if let Some(limit) = max_length.filter(|limit| text.len() > *limit)
            && text.chars().count() > limit
        {
            return Err(FieldError::TooLong { field, limit });
        }
        match find_invalid(text) {
            Some(character) => Err(FieldError::InvalidCharacter { field, character }),
            None => Ok(text),
        }
    }
}

/// Finds NUL, which PostgreSQL can't store. The text of each message is searched, hence the search of
/// bytes.
pub(super) fn find_nul(text: &str) -> Option<char> {
    text.as_bytes().contains(&0).then_some('\0')
}

/// Finds a character that can't be seen in a list of names.
pub(super) fn find_control(text: &str) -> Option<char> {
    text.chars().find(|c| c.is_control())
}

pub(super) fn find_non_printable_ascii(text: &str) -> Option<char> {
    text.chars().find(|c| !matches!(c, ' '..='~'))
}

/// Defines a type of texts that obey a rule.
macro_rules! text_type {
    ($(#[$docs:meta])+ $name:ident, $rule:expr) => {
        $(#[$docs])+
        #[derive(Clone, PartialEq, Eq, Hash, Debug)]
        pub struct $name(String);

        impl $name {
            const RULE: $crate::fields::rule::TextRule = $rule;

            /// Returns the text.
            pub fn as_str(&self) -> &str {
                &self.0
            }

            /// Returns the text.
            pub fn into_string(self) -> String {
                self.0
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(&self.0)
            }
        }

        impl std::str::FromStr for $name {
            type Err = $crate::fields::error::FieldError;

            fn from_str(text: &str) -> Result<Self, $crate::fields::error::FieldError> {
                Self::RULE.check(text).map(|text| Self(text.to_owned()))
            }
        }

        impl TryFrom<String> for $name {
            type Error = $crate::fields::error::FieldError;

            fn try_from(text: String) -> Result<Self, $crate::fields::error::FieldError> {
                let checked = Self::RULE.check(&text)?;
                if checked.len() < text.len() {
                    return Ok(Self(checked.to_owned()));
                }
                Ok(Self(text))
            }
        }
    };
}

pub(super) use text_type;

#[cfg(test)]
pub(super) mod assertions {
    //! Assertions about types of texts.

    use crate::fields::error::FieldError;
    use std::fmt::{Debug, Display};
    use std::str::FromStr;

    /// Three bytes each, to prove that limits count characters.
    pub(in crate::fields) fn wide(count: usize) -> String {
        "短".repeat(count)
    }

    #[track_caller]
    pub(in crate::fields) fn accepts<T>(text: &str)
    where
        T: FromStr<Err = FieldError> + TryFrom<String, Error = FieldError> + Display,
        T: PartialEq + Debug,
    {
        let parsed: T = text.parse().unwrap();
        assert_eq!(parsed.to_string(), text);
        assert_eq!(T::try_from(text.to_owned()), Ok(parsed));
    }

    #[track_caller]
    pub(in crate::fields) fn rejects<T>(text: &str, error: FieldError, message: &str)
    where
        T: FromStr<Err = FieldError> + TryFrom<String, Error = FieldError> + PartialEq + Debug,
    {
        assert_eq!(text.parse::<T>(), Err(error));
        assert_eq!(T::try_from(text.to_owned()), Err(error));
        assert_eq!(error.to_string(), message);
    }

    pub(in crate::fields) const fn too_long(field: &'static str, limit: usize) -> FieldError {
        FieldError::TooLong { field, limit }
    }

    pub(in crate::fields) const fn invalid(field: &'static str, character: char) -> FieldError {
        FieldError::InvalidCharacter { field, character }
    }
}
