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

/// Returns the forms that a message id in a receipt may have had in the submit response: as
/// written, without leading zeros, in upper and lower case, and converted between hexadecimal and
/// decimal. Carriers are inconsistent about this. The first form is the id as written; there are no
/// duplicates.
pub fn id_candidates(id: &str) -> Vec<String> {
    let mut all = vec![id.to_owned()];
    let mut add = |s: String| {
        if !s.is_empty() && !all.contains(&s) {
            all.push(s);
        }
    };
    let trimmed = id.trim_start_matches('0');
    add(trimmed.to_owned());
    add(id.to_ascii_uppercase());
    add(id.to_ascii_lowercase());
    if let Ok(n) = u64::from_str_radix(trimmed, 16) {
        add(n.to_string());
    }
    if let Ok(n) = trimmed.parse::<u64>() {
        add(format!("{n:X}"));
        add(format!("{n:x}"));
        add(format!("{n:08X}"));
        add(format!("{n:08x}"));
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hexadecimal_and_decimal_ids_are_converted() {
        assert!(id_candidates("499602D2").contains(&"1234567890".to_owned()));
        assert!(id_candidates("1234567890").contains(&"499602d2".to_owned()));
        assert!(id_candidates("0000012").contains(&"12".to_owned()));
        assert_eq!(id_candidates("x-1").first().map(String::as_str), Some("x-1"));
    }
}
