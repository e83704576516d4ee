//! Delivery receipts (DLRs): the final report of a carrier on a part that it accepted.

use crate::message::{Failure, FailureCode};
use crate::phone::Recipient;

/// A final delivery receipt. Intermediate receipts change nothing and are not represented.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Receipt {
    /// The message id assigned by the carrier, exactly as written in the receipt.
    pub smsc_id: String,
    /// The recipient of the message: the source address of the receipt.
    pub recipient: Recipient,
    /// The destination address of the receipt, if it is a number. Some carriers swap the addresses,
    /// so that this is the recipient.
    pub destination: Option<Recipient>,
    /// The final result of the part.
    pub outcome: ReceiptOutcome,
}

/// The final result of a part.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum ReceiptOutcome {
    /// The part was delivered to the handset.
    Delivered,
    /// The part was not delivered.
    Failed(Failure),
}

impl ReceiptOutcome {
    /// Returns the two columns that store a receipt which arrived before its submit response: the
    /// failure code, or 0 for delivered, and the code of the carrier.
    pub fn to_parts(&self) -> (i16, Option<&str>) {
        match self {
            Self::Delivered => (0, None),
            Self::Failed(f) => (f.code.code(), f.carrier_code.as_deref()),
        }
    }

    /// Returns the outcome of the stored columns.
    pub fn from_parts(code: i16, carrier_code: Option<String>) -> Option<Self> {
        match code {
            0 => Some(Self::Delivered),
            code => {
                Some(Self::Failed(Failure { code: FailureCode::from_code(code)?, carrier_code }))
            }
        }
    }
}

/// The longest message_id of SMPP 3.4 (§5.2.23), without its NUL.
pub const MAX_ID: usize = 64;

/// Returns the form of a carrier's message id that is stored and looked up: without padding
/// (leading zeros, spaces) and in lower case, because carriers do not always spell an id in the
/// same way in the submit response and in the receipt. An id in mixed case with letters beyond F is
/// neither hexadecimal nor a UUID; its case may distinguish ids, and is kept.
///
/// Returns `None` if the id identifies no part, because it is empty or longer than [`MAX_ID`]
/// characters.
pub fn normalized_id(id: &str) -> Option<String> {
    let id = id.trim();
    if id.is_empty() || (id.len() > MAX_ID && id.chars().nth(MAX_ID).is_some()) {
        return None;
    }
    let digits = id.trim_start_matches(|c: char| c == '0' || c.is_whitespace());
    if digits.is_empty() {
        return Some("0".to_owned());
    }
    let has = |of: fn(&u8) -> bool| digits.bytes().any(|b| of(&b));
    let mixed = has(u8::is_ascii_lowercase) && has(u8::is_ascii_uppercase);
    let beyond_f = has(|b| b.is_ascii_alphabetic() && !b.is_ascii_hexdigit());
    Some(if mixed && beyond_f { digits.to_owned() } else { digits.to_ascii_lowercase() })
}

/// Returns a normalized id in the other number base: hexadecimal as decimal, decimal as
/// hexadecimal. An id of decimal digits can be either, and has both.
pub fn ids_in_other_base(normalized: &str) -> impl Iterator<Item = String> {
    let is = |of: fn(&u8) -> bool| normalized.bytes().all(|b| of(&b));
    let hexadecimal = is(u8::is_ascii_hexdigit).then(|| u128::from_str_radix(normalized, 16));
    let decimal = is(u8::is_ascii_digit).then(|| normalized.parse::<u128>());
    let as_decimal = hexadecimal.and_then(Result::ok).map(|n| n.to_string());
    let as_hexadecimal = decimal.and_then(Result::ok).map(|n| format!("{n:x}"));
    // A number of one digit is the same in both.
    let of_several = normalized.len() > 1 || as_hexadecimal.is_none();
    as_decimal.into_iter().chain(as_hexadecimal).filter(move |_| of_several)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spellings_of_an_id_have_one_form() {
        for (spellings, form) in [
            (&["1234567890", "0001234567890", " 1234567890 "][..], "1234567890"),
            (&["499602d2", "499602D2", "00000000499602D2", "499602D2  "], "499602d2"),
            (
                &[
                    "9F1C2B4E-0A1D-4C3B-8E7F-0123456789AB",
                    "9f1c2b4e-0a1d-4c3b-8e7f-0123456789ab",
                    "9f1C2b4e-0A1d-4c3B-8e7F-0123456789aB",
                ],
                "9f1c2b4e-0a1d-4c3b-8e7f-0123456789ab",
            ),
            (&["XK-77", "xk-77"], "xk-77"),
            (&["0", "0000"], "0"),
        ] {
            for id in spellings {
                assert_eq!(normalized_id(id).as_deref(), Some(form), "{id}");
            }
            assert_eq!(normalized_id(form).as_deref(), Some(form));
        }
    }

    #[test]
    fn case_that_may_distinguish_ids_is_kept() {
        assert_eq!(normalized_id("xA7q").as_deref(), Some("xA7q"));
        assert_eq!(normalized_id("Xa7q").as_deref(), Some("Xa7q"));
    }

    #[test]
    fn empty_and_long_ids_identify_nothing() {
        assert_eq!(normalized_id(""), None);
        assert_eq!(normalized_id("  "), None);
        assert_eq!(normalized_id(&"a".repeat(64)), Some("a".repeat(64)));
        assert_eq!(normalized_id(&"ä".repeat(64)), Some("ä".repeat(64)));
        assert_eq!(normalized_id(&"a".repeat(65)), None);
        assert_eq!(normalized_id(&"ä".repeat(65)), None);
    }

    #[test]
    fn hexadecimal_and_decimal_ids_are_converted() {
        let converted = |id| ids_in_other_base(id).collect::<Vec<_>>();
        assert_eq!(converted("499602d2"), ["1234567890"]);
        assert_eq!(converted("1234567890"), ["78187493520", "499602d2"]);
        assert_eq!(converted("ffffffffffffffff"), ["18446744073709551615"]);
        assert_eq!(converted("a"), ["10"]);
        assert_eq!(converted("5"), [""; 0]);
        assert_eq!(converted("xk-77"), [""; 0]);
        assert_eq!(converted(&"f".repeat(64)), [""; 0]);
    }
}
