//! Two-factor authentication: time-based one-time passwords of an authenticator app (TOTP, RFC
//! 6238).

use crate::time::Timestamp;
use std::fmt;
use totp_rs::{Algorithm, Builder, Secret, Totp};

/// The number of random bytes of a secret, equal to the length of the hash (SHA-1).
pub const SECRET_BYTES: usize = 20;
/// The validity of a code in seconds: the time step.
const STEP: u64 = 30;
/// The number of time steps accepted before and after the current one, for clock skew.
const SKEW: u16 = 1;
const ISSUER: &str = "Heliograph";

/// The secret shared with the authenticator app. Its `Debug` output does not reveal it.
#[derive(Clone)]
pub struct TotpSecret(Totp);

impl TotpSecret {
    /// Creates a secret from random bytes.
    pub fn from_random(random: [u8; SECRET_BYTES]) -> Self {
        Self::new(Secret::from(random))
    }

    /// Parses a stored secret (base32). Returns `None` if it is malformed.
    pub fn parse(text: &str) -> Option<Self> {
        let secret = Secret::try_from_base32(text).ok()?;
        (secret.as_ref().len() == SECRET_BYTES).then(|| Self::new(secret))
    }

    fn new(secret: Secret) -> Self {
        // SHA-1 and six digits work in every app; some apps silently ignore other parameters.
        let builder = Builder::new().with_algorithm(Algorithm::SHA1).with_digits(6);
        Self(
            builder
                .with_skew(SKEW)
                .with_step_duration(STEP)
                .with_secret(secret)
                .build_noncompliant(),
        )
    }

    /// Returns the secret in base32, as apps accept it.
    pub fn reveal(&self) -> String {
        self.0.secret().to_base32()
    }

    /// Returns the `otpauth://` URL of the QR code, with the secret and the email address of the
    /// user.
    pub fn otpauth_url(&self, email: &str) -> String {
        let email: String = url::form_urlencoded::byte_serialize(email.as_bytes()).collect();
        let email = email.replace('+', "%20");
        format!("otpauth://totp/{ISSUER}:{email}?secret={}&issuer={ISSUER}", self.reveal())
    }

    /// Returns the time step of a code that is valid now. The caller must store the last used step
    /// and reject it and earlier ones, so that a code works only once.
    pub fn matching_step(&self, code: &str, now: Timestamp) -> Option<i64> {
        let code: String = code.chars().filter(|c| !c.is_whitespace()).collect();
        let digits = code.len() == 6 && code.bytes().all(|b| b.is_ascii_digit());
        let seconds = u64::try_from(now.millis() / 1_000).ok().filter(|_| digits)?;
        i64::try_from(self.0.check(&code, seconds)?).ok()
    }

    /// Returns the code of a point in time, as an app shows it.
    pub fn code(&self, at: Timestamp) -> String {
        self.0.generate(u64::try_from(at.millis() / 1_000).unwrap_or(0)).to_string()
    }
}

impl fmt::Debug for TotpSecret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("TotpSecret(…)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The test vectors of RFC 6238, appendix B, truncated to six digits.
    #[test]
    fn codes_match_the_rfc() {
        let secret = TotpSecret::from_random(*b"12345678901234567890");
        for (seconds, code) in
            [(59, "287082"), (1_111_111_109, "081804"), (20_000_000_000, "353130")]
        {
            let at = Timestamp(seconds * 1_000);
            assert_eq!(secret.code(at), code);
            assert_eq!(secret.matching_step(code, at), Some(seconds / 30));
        }
    }

    #[test]
    fn codes_are_valid_one_step_before_and_after() {
        let secret = TotpSecret::from_random([7; SECRET_BYTES]);
        let at = Timestamp(1_795_165_200_000);
        let code = secret.code(at);
        for (seconds, valid) in [(-60, false), (-30, true), (0, true), (30, true), (60, false)] {
            let there = Timestamp(at.millis() + seconds * 1_000);
            assert_eq!(secret.matching_step(&code, there).is_some(), valid, "{seconds} s");
        }
        assert!(secret.matching_step(&format!("{} {}", &code[..3], &code[3..]), at).is_some());
        for wrong in ["", "12345", "1234567", "abcdef", "１２３４５６"] {
            assert_eq!(secret.matching_step(wrong, at), None, "{wrong}");
        }
    }

    #[test]
    fn secrets_round_trip_and_are_not_printed() {
        let secret = TotpSecret::from_random([9; SECRET_BYTES]);
        assert_eq!(TotpSecret::parse(&secret.reveal()).unwrap().reveal(), secret.reveal());
        assert!(TotpSecret::parse("").is_none() && TotpSecret::parse("AAAA").is_none());
        assert_eq!(format!("{secret:?}"), "TotpSecret(…)");
        let address = secret.otpauth_url("ann+x@example.com");
        assert!(
            address.starts_with("otpauth://totp/Heliograph:ann%2Bx%40example.com?secret="),
            "{address}"
        );
    }
}
