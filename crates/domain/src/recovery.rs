//! Recovery codes: what lets a person in once whose second factor is gone.

use sha2::{Digest, Sha256};
use std::fmt;

/// How many a person gets.
pub const COUNT: usize = 10;
/// The random bytes of one: 80 bits, which no slow hash has to protect.
pub const RANDOM: usize = 10;

/// What is stored of a code.
pub type CodeHash = [u8; 32];

/// Letters and digits that are not taken for one another.
const ALPHABET: &[u8; 32] = b"abcdefghijkmnpqrstuvwxyz23456789";
const LENGTH: usize = 16;

/// A recovery code. Printing it for debugging shows nothing of it.
#[derive(Clone, PartialEq, Eq)]
pub struct RecoveryCode(String);

impl RecoveryCode {
    /// Each five bits are one character.
    pub fn from_random(random: &[u8; RANDOM]) -> Self {
        let bits = random.iter().fold(0u128, |all, byte| all << 8 | u128::from(*byte));
        let place = |n: usize| usize::try_from(bits >> (5 * n) & 31).unwrap_or(0);
        let all = (0..LENGTH).filter_map(|n| ALPHABET.get(place(n)));
        Self(all.map(|c| char::from(*c)).collect())
    }

    /// Reads a code as a person types it; `None` when it can't be one.
    pub fn parse(text: &str) -> Option<Self> {
        let text = text.chars().filter(|c| !c.is_whitespace() && *c != '-');
        let text: String = text.flat_map(char::to_lowercase).collect();
        let whole = text.len() == LENGTH && text.bytes().all(|b| ALPHABET.contains(&b));
        whole.then_some(Self(text))
    }

    /// What is stored and looked up.
    pub fn hash(&self) -> CodeHash {
        Sha256::digest(self.0.as_bytes()).into()
    }

    /// The code for its owner, in groups of four.
    pub fn reveal(&self) -> String {
        let groups: Vec<String> =
            self.0.as_bytes().chunks(4).map(|g| String::from_utf8_lossy(g).into_owned()).collect();
        groups.join("-")
    }
}

impl fmt::Debug for RecoveryCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("RecoveryCode(…)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_code_is_read_as_people_type_it() {
        let code = RecoveryCode::from_random(&[0x5a; RANDOM]);
        let shown = code.reveal();
        assert_eq!((shown.len(), shown.matches('-').count()), (19, 3));
        for typed in
            [shown.clone(), shown.to_uppercase(), shown.replace('-', " "), format!(" {shown} ")]
        {
            assert_eq!(RecoveryCode::parse(&typed), Some(code.clone()), "{typed}");
        }
        for wrong in ["", "123456", &shown[1..], &shown.replacen(|c: char| c != '-', "l", 1)] {
            assert_eq!(RecoveryCode::parse(wrong), None, "{wrong}");
        }
        assert_ne!(code.hash(), RecoveryCode::from_random(&[0x5b; RANDOM]).hash());
        assert_eq!(format!("{code:?}"), "RecoveryCode(…)");
    }
}
