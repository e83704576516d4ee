//! Recovery codes: single-use codes for users who lost their authenticator app (two-factor
//! authentication).

use sha2::{Digest, Sha256};
use std::fmt;

/// The number of codes that a user gets.
pub const COUNT: usize = 10;
/// The number of random bytes of a code: 120 bits, so a fast hash is sufficient.
pub const RANDOM_BYTES: usize = 15;

/// The stored SHA-256 hash of a code.
pub type CodeHash = [u8; 32];

/// Letters and digits that are hard to confuse.
const ALPHABET: &[u8; 32] = b"abcdefghijkmnpqrstuvwxyz23456789";
const LENGTH: usize = 24;

/// A recovery code. Its `Debug` output does not reveal it.
#[derive(Clone, PartialEq, Eq)]
pub struct RecoveryCode(String);

impl RecoveryCode {
    /// Encodes random bytes, five bits per character.
    pub fn from_random(random: &[u8; RANDOM_BYTES]) -> Self {
        let bits = random.iter().fold(0u128, |all, byte| all << 8 | u128::from(*byte));
        let index = |n: usize| usize::try_from(bits >> (5 * n) & 31).unwrap_or(0);
        let all = (0..LENGTH).filter_map(|n| ALPHABET.get(index(n)));
        Self(all.map(|c| char::from(*c)).collect())
    }

    /// Parses a typed code, ignoring case, spaces and dashes. Returns `None` if it cannot be a
    /// code.
    pub fn parse(text: &str) -> Option<Self> {
        let text = text.chars().filter(|c| !c.is_whitespace() && *c != '-');
        let text: String = text.flat_map(char::to_lowercase).collect();
        let valid = text.len() == LENGTH && text.bytes().all(|b| ALPHABET.contains(&b));
        valid.then_some(Self(text))
    }

    /// Returns the hash that is stored and looked up.
    pub fn hash(&self) -> CodeHash {
        Sha256::digest(self.0.as_bytes()).into()
    }

    /// Returns the code for its owner, in groups of four characters.
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
    fn typed_codes_are_normalized() {
        let code = RecoveryCode::from_random(&[0x5a; RANDOM_BYTES]);
        let shown = code.reveal();
        assert_eq!((shown.len(), shown.matches('-').count()), (29, 5));
        for typed in
            [shown.clone(), shown.to_uppercase(), shown.replace('-', " "), format!(" {shown} ")]
        {
            assert_eq!(RecoveryCode::parse(&typed), Some(code.clone()), "{typed}");
        }
        for invalid in ["", "123456", &shown[1..], &shown.replacen(|c: char| c != '-', "l", 1)] {
            assert_eq!(RecoveryCode::parse(invalid), None, "{invalid}");
        }
        assert_ne!(code.hash(), RecoveryCode::from_random(&[0x5b; RANDOM_BYTES]).hash());
        assert_eq!(format!("{code:?}"), "RecoveryCode(…)");
    }
}
