//! Phone numbers of recipients.

use rlibphonenumber::{
    NumberLengthType, PHONE_NUMBER_UTIL, PhoneNumber, PhoneNumberFormat, ValidationError,
};
use std::fmt;
use std::str::FromStr;

/// The maximum number of digits of an international number (E.164).
const MAX_DIGITS: usize = 15;

/// An international number (E.164) as digits without the plus: `447700900123`. At most 15 digits.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Recipient(pub u64);

impl fmt::Display for Recipient {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// The reason why a text is not a valid phone number.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum BadRecipient {
    /// The text contains no digit.
    #[error("the number is empty: use the international format, like +447700900123")]
    Empty,
    /// The text contains a character that is not allowed, or a plus that is not at the beginning.
    #[error(
        "{0:?} is not allowed in a phone number: use the international format, like +447700900123"
    )]
    Character(char),
    /// The number begins with 0.
    #[error("the country code is missing: replace a leading 0 with it, or remove a leading 00")]
    NoCountryCode,
    /// No country code matches the beginning of the number.
    #[error("unknown country code: use the international format, like +447700900123")]
    UnknownCountry,
    /// The number is shorter than the numbers of its country, or valid only for local calls.
    #[error("the number has too few digits: write it in full, with its country and area code")]
    TooShort,
    /// The number is longer than the numbers of its country, or has more than 15 digits.
    #[error("the number has too many digits: check for repeated digits, or for two numbers in one")]
    TooLong,
    /// The length of the number lies between the valid lengths of its country.
    #[error(
        "the number has the wrong length for its country: check for a missing or repeated digit"
    )]
    WrongLength,
}

/// Parses a number as people write it: an optional plus and digits that begin with the country
/// code. Spaces, dashes, dots, brackets and invisible characters are ignored, and full-width digits
/// are digits. The length must be valid for the country.
/// Whether the number range is in use is not checked, because new ranges appear faster than
/// metadata is updated.
impl FromStr for Recipient {
    type Err = BadRecipient;

    fn from_str(text: &str) -> Result<Self, BadRecipient> {
        let mut recipient = Self(read_digits(text)?);
        let mut number = recipient.split().ok_or(BadRecipient::UnknownCountry)?;
        while number.italian_leading_zero() {
            let Some(shorter) = recipient.without_trunk_zero() else {
                break;
            };
            recipient = shorter;
            number = recipient.split().ok_or(BadRecipient::UnknownCountry)?;
        }
        check_length(&number)?;
        Ok(recipient)
    }
}

impl Recipient {
    /// Parses an address as carriers write it: digits after an optional plus. Leading zeros are
    /// dropped, and
    /// 1 to 15 digits must remain. Country and length are not checked.
    pub fn from_digits(text: &str) -> Option<Self> {
        let digits = text.strip_prefix('+').unwrap_or(text);
        let digits = digits.trim_start_matches('0');
        if digits.len() > MAX_DIGITS || !digits.bytes().all(|b| b.is_ascii_digit()) {
            return None;
        }
        digits.parse().ok().map(Self)
    }

    /// Splits off the country code; returns `None` if there is no such code. No country code is a
    /// prefix of another, so the first match is the right one.
    fn split(self) -> Option<PhoneNumber> {
        (1..=3).find_map(|code_length| {
            let length = count_digits(self.0).checked_sub(code_length)?;
            let scale = 10u64.checked_pow(length)?;
            let country_code = i32::try_from(self.0 / scale).ok()?;
            PHONE_NUMBER_UTIL.get_region_for_country_code(country_code)?;
            let national_number = self.0 % scale;
            let zeros = length.saturating_sub(count_digits(national_number));
            Some(PhoneNumber {
                country_code,
                national_number,
                italian_leading_zero: (zeros > 0).then_some(true),
                number_of_leading_zeros: i32::try_from(zeros).ok().filter(|n| *n > 1),
                ..PhoneNumber::default()
            })
        })
    }

    /// Drops the trunk prefix of `+44 (0)20 7946 0000`, which is dialled only within the country.
    /// Returns
    /// `None` if there is none: a leading zero of an Italian number belongs to the number.
    fn without_trunk_zero(self) -> Option<Self> {
        let number = PHONE_NUMBER_UTIL.parse(format!("+{self}"), None).ok()?;
        let shorter = Self::from_digits(&number.format_as(PhoneNumberFormat::E164))?;
        (shorter < self).then_some(shorter)
    }
}

/// Reads the digits of a number, ASCII or full-width, after an optional plus. Separators and
/// invisible characters are ignored. The first digit must not be 0.
pub(crate) fn read_digits(text: &str) -> Result<u64, BadRecipient> {
    let (mut number, mut digits, mut plus) = (0, 0, false);
    for c in text.chars() {
        match to_digit(c) {
            Some(0) if digits == 0 => return Err(BadRecipient::NoCountryCode),
            Some(_) if digits == MAX_DIGITS => return Err(BadRecipient::TooLong),
            Some(digit) => {
                number = number * 10 + u64::from(digit);
                digits += 1;
            }
            None if matches!(c, '+' | '\u{ff0b}') && digits == 0 && !plus => plus = true,
            None if is_separator(c) || is_invisible(c) => {}
            None => return Err(BadRecipient::Character(c)),
        }
    }
    match digits {
        0 => Err(BadRecipient::Empty),
        _ => Ok(number),
    }
}

/// Returns whether the text has only characters that cannot be seen.
pub(crate) fn is_blank(text: &str) -> bool {
    text.chars().all(|c| c.is_whitespace() || is_invisible(c))
}

/// Returns the value of an ASCII or full-width digit.
fn to_digit(c: char) -> Option<u32> {
    match c {
        '\u{ff10}'..='\u{ff19}' => Some(u32::from(c) - 0xff10),
        c => c.to_digit(10),
    }
}

/// Returns whether `c` is a separator, which only makes a number easier to read.
fn is_separator(c: char) -> bool {
    match c {
        '-' | '.' | '(' | ')' | '[' | ']' => true,
        // Full-width brackets and full stop.
        '\u{ff08}' | '\u{ff09}' | '\u{ff0e}' => true,
        // Hyphens and dashes, minus sign, small and full-width hyphens.
        '\u{2010}'..='\u{2015}' | '\u{2212}' | '\u{fe58}' | '\u{fe63}' | '\u{ff0d}' => true,
        // Spaces of all widths, but not tabs and line breaks, which separate fields.
        c => c.is_whitespace() && !c.is_control(),
    }
}

/// Returns whether `c` is an invisible format character. Numbers that are copied from contacts and
/// documents contain them: soft hyphens, zero-width characters, and marks of the text direction.
fn is_invisible(c: char) -> bool {
    matches!(
        c,
        '\u{ad}' | '\u{61c}' | '\u{180e}' | '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}' | '\u{feff}'
    )
}

fn check_length(number: &PhoneNumber) -> Result<(), BadRecipient> {
    match PHONE_NUMBER_UTIL.is_possible_number_with_reason(number) {
        Ok(NumberLengthType::IsPossible) => Ok(()),
        Ok(NumberLengthType::IsPossibleLocalOnly) | Err(ValidationError::TooShort) => {
            Err(BadRecipient::TooShort)
        }
        Err(ValidationError::TooLong) => Err(BadRecipient::TooLong),
        Err(ValidationError::InvalidLength) => Err(BadRecipient::WrongLength),
        Err(ValidationError::InvalidCountryCode) => Err(BadRecipient::UnknownCountry),
    }
}

/// Returns the number of digits of `n`.
fn count_digits(n: u64) -> u32 {
    n.checked_ilog10().map_or(1, |log| log + 1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn common_notations_are_accepted() {
        for (text, digits) in [
            ("+447700900123", 447_700_900_123),
            ("447700900123", 447_700_900_123),
            ("6598234567", 6_598_234_567),
            ("+44 7700 900123", 447_700_900_123),
            ("+44\u{a0}7700\u{202f}900\u{2009}123", 447_700_900_123),
            (" (+44) 7700-900.123 ", 447_700_900_123),
            ("+1 [415] 555\u{2011}2671", 14_155_552_671),
            ("+1 415\u{2013}555\u{2212}26\u{ad}71", 14_155_552_671),
            // Marks of the text direction from copied contacts, zero-width characters, full-width.
            ("\u{202a}+44 7700 900123\u{202c}", 447_700_900_123),
            ("\u{2068}+44\u{200b}7700900123\u{feff}\u{2069}", 447_700_900_123),
            ("+44770090012３", 447_700_900_123),
            ("＋４４（７７００）９００．１２３", 447_700_900_123),
            ("+49 176 12345678", 4_917_612_345_678),
            ("+61 412 345 678", 61_412_345_678),
            ("+55 11 98765-4321", 5_511_987_654_321),
            ("+91 98765 43210", 919_876_543_210),
            ("+86 138 0013 8000", 8_613_800_138_000),
            ("+7 912 345-67-89", 79_123_456_789),
            ("+52 55 1234 5678", 525_512_345_678),
            ("+290 22158", 29_022_158),
            // A trunk prefix is dropped, a zero that belongs to the number is kept.
            ("+44 (0)20 7946 0000", 442_079_460_000),
            ("+4407700900123", 447_700_900_123),
            ("+49 (0)176 12345678", 4_917_612_345_678),
            ("+33 (0)6 12 34 56 78", 33_612_345_678),
            ("+39 06 1234 5678", 390_612_345_678),
            ("+225 01 23 45 67 89", 2_250_123_456_789),
            // Not in a range of the metadata, but possible: a drama number, an unused area code.
            ("+44 7700 900 000", 447_700_900_000),
            ("+1 999 555 2671", 19_995_552_671),
            // No country: satellite phones, international freephone.
            ("+881 612 345 678", 881_612_345_678),
            ("+800 1234 5678", 80_012_345_678),
            ("+800 0012 3456", 80_000_123_456),
        ] {
            assert_eq!(text.parse(), Ok(Recipient(digits)), "{text:?}");
        }
    }

    #[test]
    fn invalid_numbers_are_rejected_with_a_reason() {
        use BadRecipient::*;
        for (text, error) in [
            ("", Empty),
            ("+", Empty),
            (" ()- ", Empty),
            ("07700900123", NoCountryCode),
            ("00447700900123", NoCountryCode),
            ("+0447700900123", NoCountryCode),
            ("0", NoCountryCode),
            ("+999 1234 5678", UnknownCountry),
            ("+210 1234 5678", UnknownCountry),
            ("9", UnknownCountry),
            ("1", TooShort),
            ("65", TooShort),
            ("+44 7700", TooShort),
            ("+1 555 2671", TooShort),
            ("+65 9823 456", TooShort),
            ("+44 7700 9001", TooShort),
            ("+65 9823 45678", WrongLength),
            ("+44 7700 9001234", TooLong),
            ("+1 415 555 26711", TooLong),
            ("+49 1761 2345 6789 0123", TooLong),
            ("447700900123 447700900124", TooLong),
            ("447700900123,447700900124", Character(',')),
            ("447700900123\n", Character('\n')),
            ("++447700900123", Character('+')),
            ("44+7700900123", Character('+')),
            ("+\u{ff0b}447700900123", Character('\u{ff0b}')),
            ("+44 7700 900123 ext 5", Character('e')),
            ("1-800-FLOWERS", Character('F')),
            ("tel:+447700900123", Character('t')),
            ("٤٤٧٧٠٠٩٠٠١٢٣", Character('٤')),
            ("\u{202a}\u{202c}", Empty),
            ("\u{200b}０7700900123", NoCountryCode),
            ("+44/7700900123", Character('/')),
        ] {
            assert_eq!(text.parse::<Recipient>(), Err(error), "{text:?}");
        }
    }

    #[test]
    fn huge_texts_are_rejected() {
        for text in ["1".repeat(1 << 20), "0".repeat(1 << 20), " ".repeat(1 << 20)] {
            assert!(text.parse::<Recipient>().is_err());
            assert_eq!(Recipient::from_digits(&text), None);
        }
    }

    #[test]
    fn errors_escape_invisible_characters() {
        assert_eq!(
            BadRecipient::Character('\u{fe0f}').to_string(),
            "'\\u{fe0f}' is not allowed in a phone number: use the international format, \
             like +447700900123"
        );
    }

    #[test]
    fn carrier_addresses_are_parsed_leniently() {
        for (text, recipient) in [
            ("447700900123", Some(447_700_900_123)),
            ("+447700900123", Some(447_700_900_123)),
            ("00447700900123", Some(447_700_900_123)),
            ("12345", Some(12_345)),
            ("999999999999999", Some(999_999_999_999_999)),
            ("9999999999999999", None),
            ("", None),
            ("+", None),
            ("0", None),
            ("++44", None),
            ("44 7700 900123", None),
            ("Heliograph", None),
            ("٤٤", None),
        ] {
            assert_eq!(Recipient::from_digits(text), recipient.map(Recipient), "{text}");
        }
    }

    #[test]
    fn no_country_code_is_a_prefix_of_another() {
        let codes: Vec<i32> = PHONE_NUMBER_UTIL.get_supported_calling_codes().collect();
        for code in &codes {
            let shorter = [code / 10, code / 100];
            assert!(!shorter.iter().any(|s| codes.contains(s)), "{code}");
        }
    }

    proptest! {
        #[test]
        fn formatted_numbers_round_trip(
            text in "\\+?[1-9][0-9 ]{4,16}|[1-9][0-9]{0,2}0{1,3}[0-9]{4,11}",
        ) {
            if let Ok(recipient) = text.parse::<Recipient>() {
                let printed = recipient.to_string();
                prop_assert!(printed.len() <= MAX_DIGITS);
                prop_assert_eq!(printed.parse(), Ok(recipient));
                prop_assert_eq!(Recipient::from_digits(&printed), Some(recipient));
            }
        }

        /// The fast split of the country code agrees with the parser of the library.
        #[test]
        fn agrees_with_the_library(digits in "[1-9][1-9]{3}[0-9]{2,11}") {
            if let Ok(recipient) = digits.parse::<Recipient>() {
                let number = PHONE_NUMBER_UTIL.parse(format!("+{digits}"), None).unwrap();
                let split = recipient.split().unwrap();
                prop_assert_eq!(split.country_code, number.country_code);
                prop_assert!(PHONE_NUMBER_UTIL.is_possible_number(&number));
            }
        }

        #[test]
        fn any_text_is_parsed_without_panic(text: String) {
            let _ = text.parse::<Recipient>();
            let _ = Recipient::from_digits(&text);
        }
    }
}
