//! Credentials: API keys with a checksum, tokens of sessions and links, and their stored hashes.

use crate::account::Mode;
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use sha2::{Digest, Sha256};
use std::fmt;

const ALPHABET: &[u8; 62] = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
const RANDOM: usize = 30;
const CHECK: usize = 6;

/// An API key: `hg_live_` or `hg_test_`, 30 random base62 characters, and a CRC-32 checksum in six
/// base62 characters. Its `Debug` output does not reveal it.
#[derive(Clone, PartialEq, Eq)]
pub struct ApiKey(String);

/// The length of the beginning of a key that is stored and shown. The other characters are random
/// enough: more than 150 bits.
const PREFIX: usize = 12;

/// The stored SHA-256 hash of a key.
pub type KeyHash = [u8; 32];

impl ApiKey {
    /// Creates a key from random bytes. Each byte below 248 becomes one character; the others are
    /// skipped, so that all characters are equally likely. Returns `None` if there are too few
    /// bytes (64 are practically always enough).
    pub fn from_random(mode: Mode, random: &[u8]) -> Option<Self> {
        let mut key = format!("hg_{}_", mode.name());
        let usable = random.iter().filter(|b| **b < 248).take(RANDOM);
        key.extend(
            usable.filter_map(|b| ALPHABET.get(usize::from(*b) % 62)).map(|c| char::from(*c)),
        );
        if key.len() != 8 + RANDOM {
            return None;
        }
        let check = checksum(&key);
        key.push_str(&check);
        Some(Self(key))
    }

    /// Parses a key. Returns `None` if it is malformed or its checksum is wrong (mistyped).
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

    /// Returns the SHA-256 hash that is stored and looked up. The key has 178 random bits, so
    /// neither a salt nor a slow hash is needed.
    pub fn hash(&self) -> KeyHash {
        Sha256::digest(self.0.as_bytes()).into()
    }

    /// Returns the beginning of the key, by which its owner recognizes it in a list: the mode and
    /// four of its random characters.
    pub fn prefix(&self) -> &str {
        self.0.get(..PREFIX).unwrap_or_default()
    }

    /// Returns the key itself, to show it once to its owner.
    pub fn reveal(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for ApiKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ApiKey(…)")
    }
}

/// A cryptographically secure random source. Injected, so that tests are reproducible.
pub trait Random: Send + Sync + 'static {
    /// Fills `bytes` with random data; returns false if the source fails.
    fn fill(&self, bytes: &mut [u8]) -> bool;
}

/// The secret of a session, or of a single-use link (magic link, password reset, invitation). Its
/// `Debug` output does not reveal it.
#[derive(Clone, PartialEq, Eq)]
pub struct Token(String);

/// The stored SHA-256 hash of a token.
pub type TokenHash = [u8; 32];

impl Token {
    /// Encodes random bytes as URL-safe base64.
    pub fn from_random(random: &[u8; 32]) -> Self {
        Self(URL_SAFE_NO_PAD.encode(random))
    }

    /// Parses a token. Returns `None` if it is malformed.
    pub fn parse(text: &str) -> Option<Self> {
        let valid = URL_SAFE_NO_PAD.decode(text).is_ok_and(|bytes| bytes.len() == 32);
        valid.then(|| Self(text.to_owned()))
    }

    /// Returns the SHA-256 hash that is stored and looked up; a fast hash is sufficient for 256
    /// random bits.
    pub fn hash(&self) -> TokenHash {
        Sha256::digest(self.0.as_bytes()).into()
    }

    /// Derives another secret for a purpose, such as a CSRF token. It can only be computed from the
    /// token and does not reveal it.
    pub fn derive(&self, purpose: &str) -> [u8; 32] {
        let mut sha = Sha256::new();
        sha.update(purpose.as_bytes());
        sha.update([0]);
        sha.update(self.0.as_bytes());
        sha.finalize().into()
    }

    /// Returns the token itself, for its owner.
    pub fn reveal(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Token(…)")
    }
}

/// Returns the CRC-32 (IEEE) of the key without its checksum, as six base62 digits, most
/// significant first.
fn checksum(body: &str) -> String {
    let mut n = crc32fast::hash(body.as_bytes());
    let mut digits = [b'0'; CHECK];
    for d in digits.iter_mut().rev() {
        *d = ALPHABET.get((n % 62) as usize).copied().unwrap_or(b'0');
        n /= 62;
    }
    digits.iter().map(|b| char::from(*b)).collect()
}

/// Returns the SHA-256 hash of a request body. An idempotency key may only be reused with the same
/// fingerprint.
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
    fn keys_round_trip() {
        let text = key();
        assert_eq!(text.len(), 44);
        let (parsed, mode) = ApiKey::parse(&text).unwrap();
        assert_eq!((parsed.reveal(), mode), (text.as_str(), Mode::Test));
    }

    #[test]
    fn any_mistyped_character_is_detected() {
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
    fn debug_output_does_not_reveal_the_key() {
        let (parsed, _) = ApiKey::parse(&key()).unwrap();
        assert_eq!(format!("{parsed:?}"), "ApiKey(…)");
    }

    #[test]
    fn tokens_round_trip_and_other_texts_are_rejected() {
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
    fn too_few_random_bytes_make_no_key() {
        assert_eq!(ApiKey::from_random(Mode::Live, &[1; 29]), None);
        assert_eq!(ApiKey::from_random(Mode::Live, &[255; 64]), None);
    }
}
