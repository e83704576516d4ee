//! Webhook endpoints: their event kinds, and the signature of requests (Standard Webhooks 1.0.0).

use crate::account::Mode;
use crate::endpoint_error::DisabledReason;
use crate::event::EventKind;
use crate::id::{AccountId, EndpointId, EventId};
use crate::time::Timestamp;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;
use std::borrow::Cow;
use std::fmt;
use std::time::Duration;

/// The time after a rotation during which the previous secret signs as well.
pub const SECRET_OVERLAP: Duration = Duration::from_secs(24 * 3_600);
/// The time after which an endpoint that only failed is switched off.
pub const DISABLE_AFTER: Duration = Duration::from_secs(5 * 24 * 3_600);

/// The number of random bytes of a new secret: the minimum of Standard Webhooks.
pub const SECRET_BYTES: usize = 24;
const PREFIX: &str = "whsec_";
/// The `User-Agent` header of webhook requests.
const USER_AGENT: &str = concat!("Heliograph/", env!("CARGO_PKG_VERSION"));

/// The signing secret of an endpoint: `whsec_` and base64. Its `Debug` output does not reveal it.
#[derive(Clone, PartialEq, Eq)]
pub struct WebhookSecret(String, Vec<u8>);

impl WebhookSecret {
    /// Creates a secret from random bytes.
    pub fn from_random(random: &[u8; SECRET_BYTES]) -> Self {
        Self(format!("{PREFIX}{}", BASE64.encode(random)), random.to_vec())
    }

    /// Parses a secret. Returns `None` if it is malformed.
    pub fn parse(text: &str) -> Option<Self> {
        let bytes = BASE64.decode(text.strip_prefix(PREFIX)?).ok()?;
        (SECRET_BYTES..=64).contains(&bytes.len()).then(|| Self(text.to_owned(), bytes))
    }

    /// Returns the secret itself, for its owner.
    pub fn reveal(&self) -> &str {
        &self.0
    }

    /// Returns the signature: `v1,` and the HMAC-SHA256 of `id.timestamp.body` in base64. The
    /// timestamp is in seconds.
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

    /// Returns whether a `webhook-signature` header contains a valid signature.
    pub fn verify(&self, id: &str, timestamp: i64, body: &[u8], header: &str) -> bool {
        let expected = self.sign(id, timestamp, body);
        header.split(' ').any(|given| constant_time_eq(given.as_bytes(), expected.as_bytes()))
    }
}

/// Compares in constant time, to prevent timing attacks.
fn constant_time_eq(a: &[u8], b: &[u8]) -> bool {
    a.len() == b.len() && a.iter().zip(b).fold(0, |sum, (a, b)| sum | (a ^ b)) == 0
}

impl fmt::Debug for WebhookSecret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("whsec_***")
    }
}

/// A webhook endpoint: a registered URL that receives events of an account.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct WebhookEndpoint {
    /// The number within the installation.
    pub id: EndpointId,
    /// The account that owns it.
    pub account: AccountId,
    /// The mode whose events it receives.
    pub mode: Mode,
    /// The URL that events are posted to.
    pub url: String,
    /// The event kinds to send.
    pub kinds: EventKinds,
    /// The signing secret.
    pub secret: WebhookSecret,
    /// The secret before the last rotation, and the end of the time in which it signs as well.
    pub old_secret: Option<(WebhookSecret, Timestamp)>,
    /// True if `heliograph listen` registered it for a program on this machine. Other endpoints must
    /// not be on loopback.
    pub local: bool,
    /// When it was registered.
    pub created_at: Timestamp,
    /// When it ceases to exist; only for `local` endpoints.
    pub expires_at: Option<Timestamp>,
    /// The time of the first failure since the last success.
    pub failing_since: Option<Timestamp>,
    /// When it was switched off, and why.
    pub off: Option<(Timestamp, DisabledReason)>,
}

impl WebhookEndpoint {
    /// Returns the headers of a delivery attempt that starts at `now`, except those of the HTTP
    /// connection.
    pub fn headers(
        &self,
        now: Timestamp,
        event: EventId,
        body: &[u8],
    ) -> [(&'static str, Cow<'static, str>); 5] {
        let (id, seconds) = (event.to_string(), now.millis().div_euclid(1_000));
        let signatures = self.signatures(now, &id, seconds, body);
        [
            ("user-agent", Cow::Borrowed(USER_AGENT)),
            ("content-type", Cow::Borrowed("application/json")),
            ("webhook-id", id.into()),
            ("webhook-timestamp", seconds.to_string().into()),
            ("webhook-signature", signatures.into()),
        ]
    }

    /// Returns the `webhook-signature` header: one signature, or two for a day after a rotation.
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

/// A set of event kinds, stored as a bit set.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct EventKinds(i16);

impl EventKinds {
    /// All event kinds.
    pub const ALL: Self = Self(0b111);

    /// Returns the set of stored bits; unknown bits are ignored.
    pub const fn from_bits(bits: i16) -> Self {
        Self(bits & Self::ALL.0)
    }

    /// Returns the bits to store.
    pub const fn bits(self) -> i16 {
        self.0
    }

    /// Returns whether the set contains `kind`.
    pub const fn contains(self, kind: EventKind) -> bool {
        self.0 & Self::bit(kind) != 0
    }

    /// Returns the names of the kinds, in listing order.
    pub fn names(self) -> Vec<&'static str> {
        EventKind::ALL.into_iter().filter(|k| self.contains(*k)).map(EventKind::name).collect()
    }

    const fn bit(kind: EventKind) -> i16 {
        match kind {
            EventKind::MessageDelivered => 1,
            EventKind::MessageFailed => 2,
            EventKind::MessageReceived => 4,
        }
    }
}

impl FromIterator<EventKind> for EventKinds {
    fn from_iter<I: IntoIterator<Item = EventKind>>(all: I) -> Self {
        Self(all.into_iter().fold(0, |bits, k| bits | Self::bit(k)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The example of the tests of the Standard Webhooks libraries.
    #[test]
    fn signatures_match_the_standard() {
        let secret = WebhookSecret::parse("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw").unwrap();
        let (id, body) = ("msg_p5jXN8AQM9LWM0D4loKWxJek", br#"{"test": 2432232314}"#);
        let signature = "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=";
        assert_eq!(secret.sign(id, 1_614_265_330, body), signature);
        assert!(secret.verify(id, 1_614_265_330, body, &format!("v1,no {signature}")));
        assert!(!secret.verify(id, 1_614_265_331, body, signature));
        assert_eq!(format!("{secret:?}"), "whsec_***");
    }

    #[test]
    fn malformed_secrets_are_rejected() {
        let secret = WebhookSecret::from_random(&[7; SECRET_BYTES]);
        assert_eq!(WebhookSecret::parse(secret.reveal()), Some(secret));
        for text in ["", "whsec_", "MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", "whsec_AAAA", "whsec_ä"] {
            assert_eq!(WebhookSecret::parse(text), None, "{text}");
        }
    }

    #[test]
    fn event_kinds_are_a_set() {
        assert_eq!(EventKinds::ALL.names().len(), EventKind::ALL.len());
        let some: EventKinds = [EventKind::MessageFailed].into_iter().collect();
        assert!(
            some.contains(EventKind::MessageFailed) && !some.contains(EventKind::MessageDelivered)
        );
        assert_eq!(EventKinds::from_bits(some.bits()), some);
    }
}
