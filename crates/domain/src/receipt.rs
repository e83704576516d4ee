//! Delivery receipts: what a carrier says later about a part that it accepted.

use crate::message::{Failure, FailureCode};
use crate::phone::Recipient;

/// A final delivery receipt. (Intermediate ones change nothing and are not represented.)
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Receipt {
    /// The carrier's message id, exactly as the receipt wrote it.
    pub smsc_id: String,
    /// Who it speaks of: the receipt's source address.
    pub recipient: Recipient,
    /// The verdict.
    pub verdict: Verdict,
}

/// How a part ended.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Verdict {
    /// It is on the handset.
    Delivered,
    /// It never will be.
    Failed(Failure),
}

impl Verdict {
    /// The two columns that keep a receipt which came before its submit response:
    /// (failure code or 0 for delivered, the carrier's own code).
    pub fn to_parts(&self) -> (i16, Option<&str>) {
        match self {
            Self::Delivered => (0, None),
            Self::Failed(f) => (f.code.code(), f.carrier_code.as_deref()),
        }
    }

    /// From the stored columns.
    pub fn from_parts(code: i16, carrier_code: Option<String>) -> Option<Self> {
        match code {
            0 => Some(Self::Delivered),
            code => {
                Some(Self::Failed(Failure { code: FailureCode::from_code(code)?, carrier_code }))
            }
        }
    }
}

/// The spellings under which a carrier may have named the message that a receipt speaks of:
/// as written, without leading zeros, case-folded, and hexadecimal read as decimal and back.
/// The first is always the id as written; none comes twice.
pub fn id_candidates(id: &str) -> Vec<String> {
    let mut all = vec![id.to_owned()];
    let mut add = |s: String| {
        if !s.is_empty() && !all.contains(&s) {
            all.push(s);
        }
    };
    let bare = id.trim_start_matches('0');
    add(bare.to_owned());
    add(id.to_ascii_uppercase());
    add(id.to_ascii_lowercase());
    if let Ok(n) = u64::from_str_radix(bare, 16) {
        add(n.to_string());
    }
    if let Ok(n) = bare.parse::<u64>() {
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
    fn hexadecimal_and_decimal_ids_meet() {
        assert!(id_candidates("499602D2").contains(&"1234567890".to_owned()));
        assert!(id_candidates("1234567890").contains(&"499602d2".to_owned()));
        assert!(id_candidates("0000012").contains(&"12".to_owned()));
        assert_eq!(id_candidates("x-1").first().map(String::as_str), Some("x-1"));
    }
}
