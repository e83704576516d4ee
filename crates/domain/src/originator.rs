//! Originators: senders of messages.

use crate::phone::{self, BadRecipient, Recipient};
use std::fmt;
use std::str::FromStr;

/// The maximum number of characters of a name (3GPP TS 23.040, 9.1.2.5).
const MAX_NAME: usize = 11;
/// The maximum number of digits of a short code.
const MAX_SHORT_CODE: usize = 8;

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
        } else if self.0.len() <= MAX_SHORT_CODE {
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
    #[error("use a name with at least one letter, or a number, like +447700900123")]
    NoLetter,
    /// The number begins with 0, so that nobody could reply to it.
    #[error(
        "a numeric originator can't begin with 0: use the international format, like \
         +447700900123, or a short code"
    )]
    LeadingZero,
    /// The number has fewer than 3 or more than 15 digits.
    #[error("a numeric originator must have 3 to 15 digits")]
    NumberLength,
    /// The number has more digits than a short code, and is not an international number.
    #[error("{0} (a numeric originator of more than 8 digits must be an international number)")]
    Number(BadRecipient),
}

/// Parses a name, which is used as it is, or a number in any notation that is valid for a
/// recipient. A number of 3 to 8 digits is a short code; a longer one must be possible in its
/// country, since nobody could reply to it otherwise.
impl FromStr for Originator {
    type Err = BadOriginator;

    fn from_str(text: &str) -> Result<Self, BadOriginator> {
        if text.chars().any(|c| c.is_ascii_alphabetic()) { name(text) } else { number(text) }
    }
}

fn name(text: &str) -> Result<Originator, BadOriginator> {
    if let Some(c) = text.chars().find(|c| !is_allowed(*c)) {
        return Err(BadOriginator::Character(c));
    }
    if text.trim_matches(' ').len() < text.len() {
        return Err(BadOriginator::OuterSpace);
    }
    match text.len() {
        1..=MAX_NAME => Ok(Originator(text.to_owned())),
        _ => Err(BadOriginator::LongName),
    }
}

fn number(text: &str) -> Result<Originator, BadOriginator> {
    let digits = match phone::read_digits(text) {
        Ok(digits) => digits.to_string(),
        Err(BadRecipient::NoCountryCode) => return Err(BadOriginator::LeadingZero),
        Err(BadRecipient::TooLong) => return Err(BadOriginator::NumberLength),
        Err(BadRecipient::Character(c)) if !is_allowed(c) => {
            return Err(BadOriginator::Character(c));
        }
        Err(_) if phone::is_blank(text) => return Err(BadOriginator::Blank),
        Err(_) => return Err(BadOriginator::NoLetter),
    };
    match digits.len() {
        ..3 => Err(BadOriginator::NumberLength),
        3..=MAX_SHORT_CODE => Ok(Originator(digits)),
        _ => {
            let number: Recipient = digits.parse().map_err(BadOriginator::Number)?;
            Ok(Originator(number.to_string()))
        }
    }
}

/// Returns whether `c` is allowed in a name.
fn is_allowed(c: char) -> bool {
    c.is_ascii_alphanumeric() || " +-_&.".contains(c)
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
            ("+447700900123", "447700900123", International),
            ("447700900123 ", "447700900123", International),
            ("123-456", "123456", ShortCode),
            ("4915123456789", "4915123456789", International),
            // The notations of a recipient.
            ("+44 7700 900000", "447700900000", International),
            ("+44 (0)7700 900-000", "447700900000", International),
            ("\u{202a}+44\u{a0}7700\u{2011}900000\u{202c}", "447700900000", International),
            ("\u{ff0b}\u{ff14}\u{ff14}7700900000", "447700900000", International),
            ("\u{200b}60\u{200b}777", "60777", ShortCode),
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
            ("\u{200b}", Blank),
            ("\u{a0}", Blank),
            ("Twelve chars", LongName),
            ("Caf\u{e9}", Character('é')),
            ("Shop!", Character('!')),
            ("Sh\nop", Character('\n')),
            ("Sh\u{a0}op", Character('\u{a0}')),
            ("Shop\u{200b}", Character('\u{200b}')),
            ("٤٤٧٧٠٠", Character('٤')),
            ("++123", NoLetter),
            ("+", NoLetter),
            ("&", NoLetter),
            ("12", NumberLength),
            ("00447700900123", LeadingZero),
            ("07700900123", LeadingZero),
            ("+0044", LeadingZero),
            ("000", LeadingZero),
            ("012345", LeadingZero),
            ("123456789", Number(BadRecipient::TooShort)),
            ("+44 7700 9001", Number(BadRecipient::TooShort)),
            ("999999999999", Number(BadRecipient::UnknownCountry)),
            ("123456789012345", Number(BadRecipient::TooLong)),
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
