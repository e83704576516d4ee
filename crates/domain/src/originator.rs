//! Originators: who a message is from.

use std::fmt;
use std::str::FromStr;

/// Who a message is from, as the recipient sees it: a short name, or a number as digits without the
/// plus.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Originator(String);

/// What an originator is to a carrier.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum OriginatorKind {
    /// A name: type of number 5, numbering plan 0.
    Alphanumeric,
    /// 3 to 8 digits: 3 and 0.
    ShortCode,
    /// An international number: 1 and 1.
    International,
}

impl Originator {
    /// From what was read by [`FromStr`] before it was stored.
    pub fn from_stored(text: String) -> Self {
        Self(text)
    }

    /// As stored and shown.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// What it is to a carrier.
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

/// Why a text is no originator.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum BadOriginator {
    /// Nothing, or only spaces.
    #[error("an originator can't be blank: write a name of 1 to 11 characters, or a number")]
    Blank,
    /// A space before or after it.
    #[error("an originator can't begin or end with a space: leave it out")]
    OuterSpace,
    /// A character that carriers don't pass on.
    #[error(
        "{0:?} can't be part of an originator: use the letters A to Z, digits, spaces and + - _ & ."
    )]
    Character(char),
    /// A name of more than 11 characters.
    #[error("the name is too long: an originator with letters has at most 11 characters")]
    LongName,
    /// Neither a letter nor digits alone.
    #[error(
        "write a name with at least one letter, or a number as digits alone, like 447700900123"
    )]
    NoLetter,
    /// A number that is too short or too long.
    #[error("a number that messages come from has 3 to 15 digits")]
    NumberLength,
}

impl FromStr for Originator {
    type Err = BadOriginator;

    fn from_str(text: &str) -> Result<Self, BadOriginator> {
        let fits = |c: char| c.is_ascii_alphanumeric() || " +-_&.".contains(c);
        if let Some(c) = text.chars().find(|c| !fits(*c)) {
            return Err(BadOriginator::Character(c));
        }
        let bare = text.trim_matches(' ');
        if bare.is_empty() {
            return Err(BadOriginator::Blank);
        }
        if bare.len() < text.len() {
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
    fn reads_names_and_numbers() {
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
    fn says_what_is_wrong() {
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
        fn what_is_stored_reads_back(text in "[A-Za-z0-9 +_&.-]{1,16}|\\+?[0-9]{1,17}") {
            if let Ok(originator) = text.parse::<Originator>() {
                prop_assert_eq!(originator.as_str().parse(), Ok(originator.clone()));
                let stored = Originator::from_stored(originator.to_string());
                prop_assert_eq!(stored, originator);
            }
        }

        #[test]
        fn anything_is_read_or_refused(text: String) {
            if let Ok(originator) = text.parse::<Originator>() {
                prop_assert!((1..=15).contains(&originator.as_str().len()));
            }
        }
    }
}
