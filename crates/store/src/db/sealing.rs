//! Encryption of secrets at rest. Secrets are sealed with a key from outside the database when they
//! are stored.
//!
//! A sealed value is `v1.` and the base64 of nonce, ciphertext and tag (ChaCha20-Poly1305). Table
//! and row are its associated data, so a value that is copied to another row does not open. Nonces
//! are random, which is safe for far more values than an installation has.

use crate::error::{StoreError, StoreResult};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use ring::aead::{Aad, CHACHA20_POLY1305, LessSafeKey, NONCE_LEN, Nonce, UnboundKey};
use ring::hmac;
use ring::rand::{SecureRandom, SystemRandom};
use std::fmt;

/// The prefix of every sealed value.
const VERSION: &str = "v1.";

/// The length of a key in bytes.
pub const KEY_BYTES: usize = 32;

/// The key that seals secrets. Its debug output does not show it.
#[derive(Clone)]
pub struct SealingKey([u8; KEY_BYTES]);

impl SealingKey {
    /// Makes a key from bytes of the operating system's random source.
    pub const fn from_random(random: [u8; KEY_BYTES]) -> Self {
        Self(random)
    }

    /// Parses a key; `None` unless it is 32 bytes in base64.
    pub fn parse(text: &str) -> Option<Self> {
        BASE64.decode(text.trim()).ok()?.try_into().ok().map(Self)
    }

    /// Derives bytes for another purpose, from which the key cannot be computed (HMAC-SHA256).
    pub fn derive(&self, purpose: &str) -> [u8; KEY_BYTES] {
        let key = hmac::Key::new(hmac::HMAC_SHA256, &self.0);
        let mut derived = [0; KEY_BYTES];
        derived.copy_from_slice(hmac::sign(&key, purpose.as_bytes()).as_ref());
        derived
    }

    /// Returns the key as base64, for the key file.
    pub fn reveal(&self) -> String {
        BASE64.encode(self.0)
    }
}

impl fmt::Debug for SealingKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SealingKey(…)")
    }
}

/// Seals and opens secrets.
pub struct Sealer {
    key: LessSafeKey,
    random: SystemRandom,
}

/// The place of a sealed value: its table and its row.
#[derive(Clone, Copy)]
pub(crate) struct Place<'a>(pub(crate) &'static str, pub(crate) &'a (dyn fmt::Display + Sync));

impl fmt::Display for Place<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.0, self.1)
    }
}

impl Sealer {
    pub(crate) fn new(key: &SealingKey) -> StoreResult<Self> {
        let key = UnboundKey::new(&CHACHA20_POLY1305, &key.0).map_err(|_| unusable())?;
        Ok(Self { key: LessSafeKey::new(key), random: SystemRandom::new() })
    }

    /// Seals a secret.
    pub(crate) fn seal(&self, place: Place<'_>, plain: &str) -> StoreResult<String> {
        let mut nonce = [0; NONCE_LEN];
        self.random.fill(&mut nonce).map_err(|_| unusable())?;
        let mut sealed = plain.as_bytes().to_vec();
        let (nonce_, bound) =
            (Nonce::assume_unique_for_key(nonce), Aad::from(place.to_string().into_bytes()));
        self.key.seal_in_place_append_tag(nonce_, bound, &mut sealed).map_err(|_| unusable())?;
        Ok(format!("{VERSION}{}", BASE64.encode([&nonce[..], &sealed].concat())))
    }

    /// Opens a sealed secret.
    pub(crate) fn open(&self, place: Place<'_>, sealed: &str) -> StoreResult<String> {
        self.opened(place, sealed).ok_or_else(|| {
            StoreError::corrupt(format_args!(
                "the secret of {place} cannot be opened with this sealing key"
            ))
        })
    }

    fn opened(&self, place: Place<'_>, sealed: &str) -> Option<String> {
        let bytes = BASE64.decode(sealed.strip_prefix(VERSION)?).ok()?;
        let (nonce, sealed) = bytes.split_first_chunk::<NONCE_LEN>()?;
        let (nonce, bound) =
            (Nonce::assume_unique_for_key(*nonce), Aad::from(place.to_string().into_bytes()));
        let mut sealed = sealed.to_vec();
        let plain = self.key.open_in_place(nonce, bound, &mut sealed).ok()?;
        String::from_utf8(plain.to_vec()).ok()
    }
}

fn unusable() -> StoreError {
    StoreError::Unavailable("cannot seal secrets: no random source".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sealed_values_open_only_in_their_place_and_with_their_key() {
        let sealer = |n| Sealer::new(&SealingKey::from_random([n; KEY_BYTES])).unwrap();
        let (ours, theirs) = (sealer(1), sealer(2));
        let place = Place("endpoints", &7);
        let sealed = ours.seal(place, "hunter2").unwrap();
        assert!(sealed.starts_with("v1.") && !sealed.contains("hunter2"));
        assert_eq!(ours.open(place, &sealed).unwrap(), "hunter2");
        assert_ne!(ours.seal(place, "hunter2").unwrap(), sealed, "the same nonce was used twice");
        assert!(theirs.open(place, &sealed).is_err());
        for elsewhere in [Place("endpoints", &8), Place("users", &7)] {
            assert!(ours.open(elsewhere, &sealed).is_err());
        }
        for wrong in ["", "v1.", "v2.AAAA", "hunter2", &sealed[..sealed.len() - 4]] {
            assert!(ours.open(place, wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn keys_are_parsed_strictly_and_never_printed() {
        let key = SealingKey::from_random([7; KEY_BYTES]);
        assert_eq!(SealingKey::parse(&format!("{}\n", key.reveal())).unwrap().0, key.0);
        for wrong in ["", "no base64!", "c2hvcnQ="] {
            assert!(SealingKey::parse(wrong).is_none());
        }
        assert_eq!(format!("{key:?}"), "SealingKey(…)");
    }
}
