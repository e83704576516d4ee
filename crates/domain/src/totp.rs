//! The second factor: codes that an app shows, from a secret and the time (RFC 6238).

use crate::time::Timestamp;
use std::fmt;
use totp_rs::{Algorithm, Builder, Secret, Totp};

/// The random bytes of a secret, as many as the hash has.
pub const RANDOM: usize = 20;
/// For how many seconds a code is shown.
const STEP: u64 = 30;
/// Steps before and after that are taken as well: clocks differ.
const SKEW: u16 = 1;
const ISSUER: &str = "Heliograph";

/// A secret that an app and we share. Printing it for debugging shows nothing of it.
#[derive(Clone)]
pub struct TotpSecret(Totp);

impl TotpSecret {
    /// From bytes of the operating system's random source.
    pub fn from_random(random: [u8; RANDOM]) -> Self {
        Self::of(Secret::from(random))
    }

    /// Reads a secret as it is stored; `None` when it is not one.
    pub fn parse(text: &str) -> Option<Self> {
        let secret = Secret::try_from_base32(text).ok()?;
        (secret.as_ref().len() == RANDOM).then(|| Self::of(secret))
    }

    fn of(secret: Secret) -> Self {
        // What every app can do: others are passed over in silence by some.
        let builder = Builder::new().with_algorithm(Algorithm::SHA1).with_digits(6);
        Self(
            builder
                .with_skew(SKEW)
                .with_step_duration(STEP)
                .with_secret(secret)
                .build_noncompliant(),
        )
    }

    /// The secret itself, in base32 as apps take it.
    pub fn reveal(&self) -> String {
        self.0.secret().to_base32()
    }

    /// What the picture says to an app: whose secret it is, and which.
    pub fn address(&self, email: &str) -> String {
        let email: String = url::form_urlencoded::byte_serialize(email.as_bytes()).collect();
        let email = email.replace('+', "%20");
        format!("otpauth://totp/{ISSUER}:{email}?secret={}&issuer={ISSUER}", self.reveal())
    }

    /// The step of a code that is shown about now. A step must be used once: the caller keeps the last.
    pub fn step(&self, code: &str, now: Timestamp) -> Option<i64> {
        let code: String = code.chars().filter(|c| !c.is_whitespace()).collect();
        let digits = code.len() == 6 && code.bytes().all(|b| b.is_ascii_digit());
        let seconds = u64::try_from(now.millis() / 1_000).ok().filter(|_| digits)?;
        i64::try_from(self.0.check(&code, seconds)?).ok()
    }

    /// The code of an instant, as an app shows it.
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

    /// The example of RFC 6238, appendix B, cut to six digits.
    #[test]
    fn codes_are_those_of_the_standard() {
        let secret = TotpSecret::from_random(*b"12345678901234567890");
        for (seconds, code) in
            [(59, "287082"), (1_111_111_109, "081804"), (20_000_000_000, "353130")]
        {
            let at = Timestamp(seconds * 1_000);
            assert_eq!(secret.code(at), code);
            assert_eq!(secret.step(code, at), Some(seconds / 30));
        }
    }

    #[test]
    fn a_code_is_good_one_step_to_either_side() {
        let secret = TotpSecret::from_random([7; RANDOM]);
        let at = Timestamp(1_795_165_200_000);
        let code = secret.code(at);
        for (seconds, good) in [(-60, false), (-30, true), (0, true), (30, true), (60, false)] {
            let there = Timestamp(at.millis() + seconds * 1_000);
            assert_eq!(secret.step(&code, there).is_some(), good, "{seconds} s");
        }
        assert!(secret.step(&format!("{} {}", &code[..3], &code[3..]), at).is_some());
        for wrong in ["", "12345", "1234567", "abcdef", "１２３４５６"] {
            assert_eq!(secret.step(wrong, at), None, "{wrong}");
        }
    }

    #[test]
    fn a_secret_reads_back_and_is_never_printed() {
        let secret = TotpSecret::from_random([9; RANDOM]);
        assert_eq!(TotpSecret::parse(&secret.reveal()).unwrap().reveal(), secret.reveal());
        assert!(TotpSecret::parse("").is_none() && TotpSecret::parse("AAAA").is_none());
        assert_eq!(format!("{secret:?}"), "TotpSecret(…)");
        let address = secret.address("ann+x@example.com");
        assert!(
            address.starts_with("otpauth://totp/Heliograph:ann%2Bx%40example.com?secret="),
            "{address}"
        );
    }
}
