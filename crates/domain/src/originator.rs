//! Originators: senders of messages.

use std::fmt;
use std::str::FromStr;

/// The sender of a message as the recipient sees it: an alphanumeric name, or a number as digits
/// without the plus.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Originator(String);

/// The kind of an originator, with its SMPP type of number (TON) and numbering plan indicator
/// (NPI).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum OriginatorKind {
    /// An alphanumeric name: TON 5, NPI 0.
    Alphanumeric,
    /// A short code of 3 to 8 digits: TON 3, NPI 0.
    ShortCode,
    /// An international number: TON 1, NPI 1.
    International,
}

impl Originator {
    /// Wraps a stored originator, which was validated by [`FromStr`] before it was stored.
    pub fn from_stored(text: String) -> Self {
        Self(text)
    }

    /// Returns the text, as it is stored and shown.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Returns the kind of the originator.
    pub fn kind(&self) -> OriginatorKind {
        if !is_number(&self.0) {
            OriginatorKind::Alphanumeric
        } else if self.0.len() <= 8 {
            OriginatorKind::ShortCode
        } else {
            OriginatorKind::International
        }
    }
}

impl fmt::Display for Originator {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// The reason why a text is not a valid originator.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum BadOriginator {
    /// The text is empty or consists of spaces.
    #[error("an originator can't be blank: use a name of 1 to 11 characters, or a number")]
    Blank,
    /// The text begins or ends with a space.
    #[error("an originator can't begin or end with a space")]
    OuterSpace,
    /// The text contains a character that carriers do not support.
    #[error(
        "{0:?} is not allowed in an originator: use the letters A to Z, digits, spaces and + - _ \
         & ."
    )]
    Character(char),
    /// The name has more than 11 characters.
    #[error("the originator is too long: a name can have at most 11 characters")]
    LongName,
    /// The text has no letter and is not a number either.
    #[error("use a name with at least one letter, or a number of digits only, like 447700900123")]
    NoLetter,
    /// The number has fewer than 3 or more than 15 digits.
    #[error("a numeric originator must have 3 to 15 digits")]
    NumberLength,
}

impl FromStr for Originator {
    type Err = BadOriginator;

    fn from_str(text: &str) -> Result<Self, BadOriginator> {
        let is_allowed = |c: char| c.is_ascii_alphanumeric() || " +-_&.".contains(c);
        if let Some(c) = text.chars().find(|c| !is_allowed(*c)) {
            return Err(BadOriginator::Character(c));
        }
        let trimmed = text.trim_matches(' ');
        if trimmed.is_empty() {
            return Err(BadOriginator::Blank);
        }
        if trimmed.len() < text.len() {
            return Err(BadOriginator::OuterSpace);
        }
        if text.bytes().any(|b| b.is_ascii_alphabetic()) {
            return match text.len() {
                1..=11 => Ok(Self(text.to_owned())),
                _ => Err(BadOriginator::LongName),
            };
        }
        let digits = text.strip_prefix('+').unwrap_or(text);
        match digits.len() {
            _ if !is_number(digits) => Err(BadOriginator::NoLetter),
            3..=15 => Ok(Self(digits.to_owned())),
            _ => Err(BadOriginator::NumberLength),
        }
    }
}

fn is_number(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn names_and_numbers_are_accepted() {
        use OriginatorKind::{Alphanumeric, International, ShortCode};
        for (text, stored, kind) in [
            ("Heliograph", "Heliograph", Alphanumeric),
            ("A", "A", Alphanumeric),
            ("A-B_C&D. +1", "A-B_C&D. +1", Alphanumeric),
            ("+X", "+X", Alphanumeric),
            ("4you", "4you", Alphanumeric),
            ("123", "123", ShortCode),
            ("+12345678", "12345678", ShortCode),
            ("123456789", "123456789", International),
            ("+447700900123", "447700900123", International),
            ("123456789012345", "123456789012345", International),
        ] {
            let originator: Originator = text.parse().unwrap();
            assert_eq!(originator.as_str(), stored);
            assert_eq!(originator.kind(), kind, "{text}");
        }
    }

    #[test]
    fn invalid_originators_are_rejected_with_a_reason() {
        use BadOriginator::*;
        for (text, error) in [
            ("", Blank),
            ("   ", Blank),
            (" Shop", OuterSpace),
            ("Shop ", OuterSpace),
            ("447700900123 ", OuterSpace),
            ("Twelve chars", LongName),
            ("Caf\u{e9}", Character('é')),
            ("Shop!", Character('!')),
            ("Sh\nop", Character('\n')),
            ("\u{a0}", Character('\u{a0}')),
            ("\u{ff0b}447700900123", Character('\u{ff0b}')),
            ("٤٤٧٧٠٠", Character('٤')),
            ("+44 7700 900123", NoLetter),
            ("123-456", NoLetter),
            ("++123", NoLetter),
            ("+", NoLetter),
            ("&", NoLetter),
            ("12", NumberLength),
            ("+1234567890123456", NumberLength),
        ] {
            assert_eq!(text.parse::<Originator>(), Err(error), "{text:?}");
        }
        assert_eq!("x".repeat(1 << 20).parse::<Originator>(), Err(LongName));
    }

    proptest! {
        #[test]
        fn stored_originators_round_trip(text in "[A-Za-z0-9 +_&.-]{1,16}|\\+?[0-9]{1,17}") {
            if let Ok(originator) = text.parse::<Originator>() {
                prop_assert_eq!(originator.as_str().parse(), Ok(originator.clone()));
                let stored = Originator::from_stored(originator.to_string());
                prop_assert_eq!(stored, originator);
            }
        }

        #[test]
        fn any_text_is_accepted_or_rejected(text: String) {
            if let Ok(originator) = text.parse::<Originator>() {
                prop_assert!((1..=15).contains(&originator.as_str().len()));
            }
        }
    }
}
