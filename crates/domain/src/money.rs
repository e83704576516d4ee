//! Money as an integer number of millionths of a currency unit, never as floating point.

use std::fmt;
use std::iter::Sum;
use std::ops::{Add, Mul, Neg, Sub};
use std::str::FromStr;

/// An amount in millionths of the currency of the account: `42_000` is `0.0420`. Arithmetic
/// saturates.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct Amount(pub i64);

impl Amount {
    /// Zero.
    pub const ZERO: Self = Self(0);

    const UNIT: i64 = 1_000_000;
}

impl Add for Amount {
    type Output = Self;
    fn add(self, o: Self) -> Self {
        Self(self.0.saturating_add(o.0))
    }
}

impl Sub for Amount {
    type Output = Self;
    fn sub(self, o: Self) -> Self {
        Self(self.0.saturating_sub(o.0))
    }
}

impl Neg for Amount {
    type Output = Self;
    fn neg(self) -> Self {
        Self(self.0.saturating_neg())
    }
}

impl Mul<u16> for Amount {
    type Output = Self;
    fn mul(self, n: u16) -> Self {
        Self(self.0.saturating_mul(i64::from(n)))
    }
}

impl Sum for Amount {
    fn sum<I: Iterator<Item = Self>>(all: I) -> Self {
        all.fold(Self::ZERO, Add::add)
    }
}

/// Formats as a decimal string with four to six decimals: `0.0420`, `-12.500001`.
impl fmt::Display for Amount {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (abs, unit) = (self.0.unsigned_abs(), Self::UNIT.unsigned_abs());
        let sign = if self.0 < 0 { "-" } else { "" };
        let (whole, rest) = (abs / unit, abs % unit);
        if rest % 100 == 0 {
            write!(f, "{sign}{whole}.{:04}", rest / 100)
        } else if rest % 10 == 0 {
            write!(f, "{sign}{whole}.{:05}", rest / 10)
        } else {
            write!(f, "{sign}{whole}.{rest:06}")
        }
    }
}

/// The error of an invalid amount.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error(
    "'{0}' is not a valid amount: write it with a decimal point and without separators, like 1250.00 \
     (at most six decimals)"
)]
pub struct BadAmount(String);

impl FromStr for Amount {
    type Err = BadAmount;

    fn from_str(s: &str) -> Result<Self, BadAmount> {
        let bad = || BadAmount(s.to_owned());
        let (negative, digits) = match s.strip_prefix('-') {
            Some(rest) => (true, rest),
            None => (false, s),
        };
        let (whole, decimals) = digits.split_once('.').unwrap_or((digits, "0"));
        let all_digits = |t: &str| !t.is_empty() && t.bytes().all(|b| b.is_ascii_digit());
        if !all_digits(whole) || !all_digits(decimals) || decimals.len() > 6 {
            return Err(bad());
        }
        let whole: i64 = whole.parse().map_err(|_| bad())?;
        let decimals: i64 = format!("{decimals:0<6}").parse().map_err(|_| bad())?;
        let sum = whole.checked_mul(Self::UNIT).and_then(|w| w.checked_add(decimals));
        let sum = sum.ok_or_else(bad)?;
        Ok(Self(if negative { -sum } else { sum }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn formats_four_decimals_or_more_if_needed() {
        for (micros, text) in [
            (0, "0.0000"),
            (42_000, "0.0420"),
            (4_250, "0.00425"),
            (1, "0.000001"),
            (-1_500_000, "-1.5000"),
        ] {
            assert_eq!(Amount(micros).to_string(), text);
        }
    }

    #[test]
    fn invalid_amounts_are_rejected() {
        for text in
            ["", ".", "1.", ".5", "1,5", "1e3", "+1", "--1", "0.0000001", "9999999999999999"]
        {
            assert!(text.parse::<Amount>().is_err(), "{text}");
        }
    }

    proptest! {
        #[test]
        fn formatted_amounts_round_trip(micros in -i64::MAX / 2..i64::MAX / 2) {
            prop_assert_eq!(Amount(micros).to_string().parse::<Amount>(), Ok(Amount(micros)));
        }
    }
}
