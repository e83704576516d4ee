//! Webhook endpoints: what each wants to be told, and how what it is told is signed (Standard Webhooks 1.0.0).

use crate::account::Mode;
use crate::event::Kind;
use crate::id::{AccountId, EndpointId, EventId};
use crate::time::Timestamp;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;
use std::borrow::Cow;
use std::fmt;
use std::time::Duration;

/// For how long after a rotation the secret before it still signs, too.
pub const ROTATION: Duration = Duration::from_secs(24 * 3_600);
/// An endpoint that has only failed for so long is switched off.
pub const PATIENCE: Duration = Duration::from_secs(5 * 24 * 3_600);

/// The bytes of a fresh secret: as many as Standard Webhooks asks for at least.
pub const SECRET_BYTES: usize = 24;
const PREFIX: &str = "whsec_";
/// What a sender of webhooks calls itself.
const WHO: &str = concat!("Heliograph/", env!("CARGO_PKG_VERSION"));

/// What signs an endpoint's webhooks: `whsec_` and base64. Printing it for debugging shows nothing of it.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(String, Vec<u8>);

impl Secret {
    /// From bytes of the operating system's random source.
    pub fn from_random(random: &[u8; SECRET_BYTES]) -> Self {
        Self(format!("{PREFIX}{}", BASE64.encode(random)), random.to_vec())
    }

    /// Reads a secret; `None` when it is not one.
    pub fn parse(text: &str) -> Option<Self> {
        let bytes = BASE64.decode(text.strip_prefix(PREFIX)?).ok()?;
        (SECRET_BYTES..=64).contains(&bytes.len()).then(|| Self(text.to_owned(), bytes))
    }

    /// The secret itself, for its owner.
    pub fn reveal(&self) -> &str {
        &self.0
    }

    /// `v1,` and the HMAC-SHA256 of `id.timestamp.body` in base64; the timestamp in whole seconds.
    pub fn sign(&self, id: &str, timestamp: i64, body: &[u8]) -> String {
        // HMAC takes keys of any length.
        let Ok(mut mac) = Hmac::<Sha256>::new_from_slice(&self.1) else { return String::new() };
        mac.update(id.as_bytes());
        mac.update(format!(".{timestamp}.").as_bytes());
        mac.update(body);
        let mut signature = String::with_capacity(47);
        signature.push_str("v1,");
        BASE64.encode_string(mac.finalize().into_bytes(), &mut signature);
        signature
    }

    /// Whether one of the signatures in a `webhook-signature` header is ours.
    pub fn verify(&self, id: &str, timestamp: i64, body: &[u8], header: &str) -> bool {
        let ours = self.sign(id, timestamp, body);
        header.split(' ').any(|theirs| same(theirs.as_bytes(), ours.as_bytes()))
    }
}

/// Compares without telling by its time where the difference is.
fn same(a: &[u8], b: &[u8]) -> bool {
    a.len() == b.len() && a.iter().zip(b).fold(0, |sum, (a, b)| sum | (a ^ b)) == 0
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("whsec_***")
    }
}

/// Why an endpoint gets nothing any more.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum OffReason {
    /// It answered 410 Gone.
    Gone,
    /// It only failed for [`PATIENCE`].
    Failing,
    /// By hand.
    Owner,
}

impl OffReason {
    /// As stored.
    pub const fn code(self) -> i16 {
        match self {
            Self::Gone => 1,
            Self::Failing => 2,
            Self::Owner => 3,
        }
    }

    /// From the stored form.
    pub const fn from_code(code: i16) -> Option<Self> {
        match code {
            1 => Some(Self::Gone),
            2 => Some(Self::Failing),
            3 => Some(Self::Owner),
            _ => None,
        }
    }

    /// For the person whose endpoint it is.
    pub const fn detail(self) -> &'static str {
        match self {
            Self::Gone => "it answered 410 Gone",
            Self::Failing => "it only failed for five days",
            Self::Owner => "it was switched off by hand",
        }
    }
}

/// Where an account is told what happened.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Endpoint {
    /// Its number.
    pub id: EndpointId,
    /// Whose it is.
    pub account: AccountId,
    /// Of which of the account's two worlds it is told.
    pub mode: Mode,
    /// Where the POSTs go.
    pub url: String,
    /// What it wants to be told.
    pub kinds: Kinds,
    /// What signs.
    pub secret: Secret,
    /// What signed before the last rotation, and until when it still does.
    pub old_secret: Option<(Secret, Timestamp)>,
    /// Registered by `heliograph listen` for a program on this machine: it alone may be on loopback.
    pub local: bool,
    /// When it was registered.
    pub created_at: Timestamp,
    /// After this it does not exist any more; only for those that are `local`.
    pub expires_at: Option<Timestamp>,
    /// Since when there were only failures.
    pub failing_since: Option<Timestamp>,
    /// Since when it gets nothing, and why.
    pub off: Option<(Timestamp, OffReason)>,
}

impl Endpoint {
    /// The headers of a POST of this event that begins at `now`, but for those that its connection needs.
    pub fn headers(
        &self,
        now: Timestamp,
        event: EventId,
        body: &[u8],
    ) -> [(&'static str, Cow<'static, str>); 5] {
        let (id, seconds) = (event.to_string(), now.millis().div_euclid(1_000));
        let signatures = self.signatures(now, &id, seconds, body);
        [
            ("user-agent", Cow::Borrowed(WHO)),
            ("content-type", Cow::Borrowed("application/json")),
            ("webhook-id", id.into()),
            ("webhook-timestamp", seconds.to_string().into()),
            ("webhook-signature", signatures.into()),
        ]
    }

    /// The `webhook-signature` header: one signature, or two for a day after a rotation.
    pub fn signatures(&self, now: Timestamp, id: &str, timestamp: i64, body: &[u8]) -> String {
        let mut all = self.secret.sign(id, timestamp, body);
        if let Some((old, until)) = &self.old_secret
            && now < *until
        {
            all.push(' ');
            all.push_str(&old.sign(id, timestamp, body));
        }
        all
    }
}

/// A set of kinds of events, stored as bits.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Kinds(i16);

impl Kinds {
    /// Everything that can be chosen.
    pub const ALL: Self = Self(0b111);

    /// From the stored bits.
    pub const fn from_bits(bits: i16) -> Self {
        Self(bits & Self::ALL.0)
    }

    /// The bits to store.
    pub const fn bits(self) -> i16 {
        self.0
    }

    /// Whether `kind` is in it.
    pub const fn has(self, kind: Kind) -> bool {
        self.0 & Self::bit(kind) != 0
    }

    /// The names, in order.
    pub fn names(self) -> Vec<&'static str> {
        Kind::CHOICES.into_iter().filter(|k| self.has(*k)).map(Kind::name).collect()
    }

    const fn bit(kind: Kind) -> i16 {
        match kind {
            Kind::MessageDelivered => 1,
            Kind::MessageFailed => 2,
            Kind::MessageReceived => 4,
        }
    }
}

impl FromIterator<Kind> for Kinds {
    fn from_iter<I: IntoIterator<Item = Kind>>(all: I) -> Self {
        Self(all.into_iter().fold(0, |bits, k| bits | Self::bit(k)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The example of the Standard Webhooks libraries' own tests.
    #[test]
    fn signs_as_the_standard_says() {
        let secret = Secret::parse("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw").unwrap();
        let (id, body) = ("msg_p5jXN8AQM9LWM0D4loKWxJek", br#"{"test": 2432232314}"#);
        let signature = "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=";
        assert_eq!(secret.sign(id, 1_614_265_330, body), signature);
        assert!(secret.verify(id, 1_614_265_330, body, &format!("v1,no {signature}")));
        assert!(!secret.verify(id, 1_614_265_331, body, signature));
        assert_eq!(format!("{secret:?}"), "whsec_***");
    }

    #[test]
    fn secrets_are_read_strictly() {
        let secret = Secret::from_random(&[7; SECRET_BYTES]);
        assert_eq!(Secret::parse(secret.reveal()), Some(secret));
        for text in ["", "whsec_", "MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", "whsec_AAAA", "whsec_ä"] {
            assert_eq!(Secret::parse(text), None, "{text}");
        }
    }

    #[test]
    fn kinds_are_a_set() {
        assert_eq!(Kinds::ALL.names().len(), Kind::CHOICES.len());
        let some: Kinds = [Kind::MessageFailed].into_iter().collect();
        assert!(some.has(Kind::MessageFailed) && !some.has(Kind::MessageDelivered));
        assert_eq!(Kinds::from_bits(some.bits()), some);
    }
}
