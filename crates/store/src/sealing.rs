//! Secrets at rest: sealed with a key from outside the database on their way in, opened on their way out.
//!
//! A sealed value is `v1.` and the base64 of nonce, ciphertext and tag (ChaCha20-Poly1305). It is bound to its table
//! and row: taken elsewhere, it does not open. Nonces are random, which is safe for far more values than there are.

use crate::error::{Error, Result};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use ring::aead::{Aad, CHACHA20_POLY1305, LessSafeKey, NONCE_LEN, Nonce, UnboundKey};
use ring::rand::{SecureRandom, SystemRandom};
use std::fmt;

/// What every sealed value begins with.
const VERSION: &str = "v1.";

/// The bytes of a key.
pub const KEY_BYTES: usize = 32;

/// The key with which secrets are sealed. Printing it for debugging shows nothing of it.
#[derive(Clone)]
pub struct SealingKey([u8; KEY_BYTES]);

impl SealingKey {
    /// From bytes of the operating system's random source.
    pub const fn from_random(random: [u8; KEY_BYTES]) -> Self {
        Self(random)
    }

    /// Reads a key; `None` when it is not 32 bytes in base64.
    pub fn parse(text: &str) -> Option<Self> {
        BASE64.decode(text.trim()).ok()?.try_into().ok().map(Self)
    }

    /// The key as text, for the file that keeps it.
    pub fn reveal(&self) -> String {
        BASE64.encode(self.0)
    }
}

impl fmt::Debug for SealingKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SealingKey(…)")
    }
}

/// Seals and opens.
pub struct Sealer {
    key: LessSafeKey,
    random: SystemRandom,
}

/// Where a sealed value stands: its table, and its row there.
#[derive(Clone, Copy)]
pub(crate) struct Place<'a>(pub(crate) &'static str, pub(crate) &'a (dyn fmt::Display + Sync));

impl fmt::Display for Place<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.0, self.1)
    }
}

impl Sealer {
    pub(crate) fn new(key: &SealingKey) -> Result<Self> {
        let key = UnboundKey::new(&CHACHA20_POLY1305, &key.0).map_err(|_| unusable())?;
        Ok(Self { key: LessSafeKey::new(key), random: SystemRandom::new() })
    }

    /// The sealed form of a secret.
    pub(crate) fn seal(&self, place: Place<'_>, plain: &str) -> Result<String> {
        let mut nonce = [0; NONCE_LEN];
        self.random.fill(&mut nonce).map_err(|_| unusable())?;
        let mut sealed = plain.as_bytes().to_vec();
        let (nonce_, bound) =
            (Nonce::assume_unique_for_key(nonce), Aad::from(place.to_string().into_bytes()));
        self.key.seal_in_place_append_tag(nonce_, bound, &mut sealed).map_err(|_| unusable())?;
        Ok(format!("{VERSION}{}", BASE64.encode([&nonce[..], &sealed].concat())))
    }

    /// The secret itself.
    pub(crate) fn open(&self, place: Place<'_>, sealed: &str) -> Result<String> {
        self.opened(place, sealed).ok_or_else(|| {
            Error::corrupt(format_args!("the secret of {place} was not sealed with this key"))
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

fn unusable() -> Error {
    Error::Unavailable("nothing can be sealed: there is no randomness".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_sealed_opens_in_its_place_with_its_key_alone() {
        let sealer = |n| Sealer::new(&SealingKey::from_random([n; KEY_BYTES])).unwrap();
        let (ours, theirs) = (sealer(1), sealer(2));
        let place = Place("endpoints", &7);
        let sealed = ours.seal(place, "hunter2").unwrap();
        assert!(sealed.starts_with("v1.") && !sealed.contains("hunter2"));
        assert_eq!(ours.open(place, &sealed).unwrap(), "hunter2");
        assert_ne!(ours.seal(place, "hunter2").unwrap(), sealed, "a nonce was used twice");
        assert!(theirs.open(place, &sealed).is_err());
        for elsewhere in [Place("endpoints", &8), Place("users", &7)] {
            assert!(ours.open(elsewhere, &sealed).is_err());
        }
        for wrong in ["", "v1.", "v2.AAAA", "hunter2", &sealed[..sealed.len() - 4]] {
            assert!(ours.open(place, wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn keys_are_read_strictly_and_never_printed() {
        let key = SealingKey::from_random([7; KEY_BYTES]);
        assert_eq!(SealingKey::parse(&format!("{}\n", key.reveal())).unwrap().0, key.0);
        for wrong in ["", "no base64!", "c2hvcnQ="] {
            assert!(SealingKey::parse(wrong).is_none());
        }
        assert_eq!(format!("{key:?}"), "SealingKey(…)");
    }
}
