//! Secrets that let somebody in: API keys with their checksum, tokens, and the hashes that are stored.

use crate::account::Mode;
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use sha2::{Digest, Sha256};
use std::fmt;

const ALPHABET: &[u8; 62] = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
const RANDOM: usize = 30;
const CHECK: usize = 6;

/// An API key as its owner holds it: `hg_live_` or `hg_test_`, 30 random base62 characters, and six
/// of their CRC-32. Printing it for debugging shows nothing of it.
#[derive(Clone, PartialEq, Eq)]
pub struct ApiKey(String);

/// What is stored of a key.
pub type KeyHash = [u8; 32];

impl ApiKey {
    /// Makes a key from random bytes: each byte below 248 gives one character, the others are
    /// passed over so that all characters are equally likely. `None` when the bytes do not suffice
    /// (64 practically always do).
    pub fn from_random(mode: Mode, random: &[u8]) -> Option<Self> {
        let mut key = format!("hg_{}_", mode.name());
        let fair = random.iter().filter(|b| **b < 248).take(RANDOM);
        key.extend(fair.filter_map(|b| ALPHABET.get(usize::from(*b) % 62)).map(|c| char::from(*c)));
        if key.len() != 8 + RANDOM {
            return None;
        }
        let check = checksum(&key);
        key.push_str(&check);
        Some(Self(key))
    }

    /// Reads a key; `None` when it is not one, or mistyped.
    pub fn parse(text: &str) -> Option<(Self, Mode)> {
        let mode = match text.get(..8)? {
            "hg_live_" => Mode::Live,
            "hg_test_" => Mode::Test,
            _ => return None,
        };
        let (body, check) = text.split_at_checked(8 + RANDOM)?;
        let fits = text.len() == 8 + RANDOM + CHECK
            && text.bytes().skip(8).all(|b| b.is_ascii_alphanumeric());
        (fits && checksum(body) == check).then(|| (Self(text.to_owned()), mode))
    }

    /// What is stored and looked up: SHA-256. (The key has 178 bits of its own, so no salt and no
    /// slow hash are needed.)
    pub fn hash(&self) -> KeyHash {
        Sha256::digest(self.0.as_bytes()).into()
    }

    /// The key itself, to be shown once to its owner.
    pub fn reveal(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for ApiKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ApiKey(…)")
    }
}

/// A source of what nobody can guess. Handed in, so that tests can repeat a run.
pub trait Random: Send + Sync + 'static {
    /// Fills `bytes`; false when there is nothing to fill them with.
    fn fill(&self, bytes: &mut [u8]) -> bool;
}

/// What lets a person in: the secret of a session, or of a link that works once. Printing it for debugging shows
/// nothing of it.
#[derive(Clone, PartialEq, Eq)]
pub struct Token(String);

/// What is stored of a token.
pub type TokenHash = [u8; 32];

impl Token {
    /// Random bytes as text.
    pub fn from_random(random: &[u8; 32]) -> Self {
        Self(URL_SAFE_NO_PAD.encode(random))
    }

    /// Reads a token; `None` when it can't be one.
    pub fn parse(text: &str) -> Option<Self> {
        let whole = URL_SAFE_NO_PAD.decode(text).is_ok_and(|bytes| bytes.len() == 32);
        whole.then(|| Self(text.to_owned()))
    }

    /// What is stored and looked up: SHA-256, which suffices for 256 random bits.
    pub fn hash(&self) -> TokenHash {
        Sha256::digest(self.0.as_bytes()).into()
    }

    /// Another secret that only who has the token can know, and that does not tell the token.
    pub fn derive(&self, purpose: &str) -> [u8; 32] {
        let mut sha = Sha256::new();
        sha.update(purpose.as_bytes());
        sha.update([0]);
        sha.update(self.0.as_bytes());
        sha.finalize().into()
    }

    /// The token itself, for its owner.
    pub fn reveal(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Token(…)")
    }
}

/// CRC-32 (IEEE) of the key so far, in six base62 digits, the highest first.
fn checksum(body: &str) -> String {
    let mut n = crc32fast::hash(body.as_bytes());
    let mut digits = [b'0'; CHECK];
    for d in digits.iter_mut().rev() {
        *d = ALPHABET.get((n % 62) as usize).copied().unwrap_or(b'0');
        n /= 62;
    }
    digits.iter().map(|b| char::from(*b)).collect()
}

/// SHA-256 of a request body: what an idempotency key is compared by.
pub fn fingerprint(body: &[u8]) -> [u8; 32] {
    Sha256::digest(body).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key() -> String {
        let bytes: Vec<u8> = (0..64).collect();
        ApiKey::from_random(Mode::Test, &bytes).unwrap().reveal().to_owned()
    }

    #[test]
    fn a_key_reads_back() {
        let text = key();
        assert_eq!(text.len(), 44);
        let (parsed, mode) = ApiKey::parse(&text).unwrap();
        assert_eq!((parsed.reveal(), mode), (text.as_str(), Mode::Test));
    }

    #[test]
    fn each_mistyped_character_is_noticed() {
        let text = key();
        for i in 0..text.len() {
            let mut wrong = text.clone().into_bytes();
            wrong[i] = if wrong[i] == b'x' { b'y' } else { b'x' };
            assert_eq!(ApiKey::parse(&String::from_utf8(wrong).unwrap()), None, "character {i}");
        }
        for wrong in [
            "",
            "hg_test_",
            &text[..43],
            &format!("{text}0"),
            &text.replace("test", "live"),
            "hg_tést_äöü",
        ] {
            assert_eq!(ApiKey::parse(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn debugging_output_keeps_the_secret() {
        let (parsed, _) = ApiKey::parse(&key()).unwrap();
        assert_eq!(format!("{parsed:?}"), "ApiKey(…)");
    }

    #[test]
    fn a_token_is_read_as_it_was_shown_and_nothing_else_is() {
        let token = Token::from_random(&[7; 32]);
        assert_eq!(Token::parse(token.reveal()), Some(token.clone()));
        for wrong in ["", "short", &format!("{}A", token.reveal()), "*".repeat(43).as_str()] {
            assert_eq!(Token::parse(wrong), None, "{wrong}");
        }
        assert_eq!(format!("{token:?}"), "Token(…)");
        assert_ne!(token.derive("a"), token.derive("b"));
        assert_ne!(token.derive(""), token.hash());
    }

    #[test]
    fn too_little_randomness_makes_no_key() {
        assert_eq!(ApiKey::from_random(Mode::Live, &[1; 29]), None);
        assert_eq!(ApiKey::from_random(Mode::Live, &[255; 64]), None);
    }
}
