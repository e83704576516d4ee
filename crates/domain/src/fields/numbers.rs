//! Numbers of a message.

use crate::fields::error::FieldError;
use std::num::NonZeroU8;
use std::str::FromStr;
use std::time::Duration;

/// The validity period of a message: the time after which it expires, in whole seconds.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Validity(Duration);

impl Validity {
    /// The shortest validity period, in seconds: one minute.
    pub const MIN_SECONDS: i64 = 60;
    /// The longest validity period, in seconds: 72 hours.
    pub const MAX_SECONDS: i64 = 259_200;
    /// The validity period of a message whose sender specifies none: 48 hours.
    pub const DEFAULT: Self = Self(Duration::from_secs(172_800));

    /// Returns the period.
    pub const fn duration(self) -> Duration {
        self.0
    }
}

impl Default for Validity {
    fn default() -> Self {
        Self::DEFAULT
    }
}

/// Converts a number of seconds.
impl TryFrom<i64> for Validity {
    type Error = FieldError;

    fn try_from(seconds: i64) -> Result<Self, FieldError> {
        let seconds = in_range(seconds, Self::MIN_SECONDS, Self::MAX_SECONDS)?;
        Ok(Self(Duration::from_secs(seconds.unsigned_abs())))
    }
}

/// Parses a number of seconds.
impl FromStr for Validity {
    type Err = FieldError;

    fn from_str(text: &str) -> Result<Self, FieldError> {
        parse(text, Self::MIN_SECONDS, Self::MAX_SECONDS)?.try_into()
    }
}

/// The largest number of parts that a message may need. A message that needs more is rejected.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct MaxParts(NonZeroU8);

impl MaxParts {
    /// The smallest value.
    pub const MIN: i64 = 1;
    /// The largest value: the numbers of the parts have 8 bits (3GPP TS 23.040, 9.2.3.24.1).
    pub const MAX: i64 = 255;

    /// Returns the number.
    pub fn get(self) -> u16 {
        self.0.get().into()
    }
}

impl TryFrom<i64> for MaxParts {
    type Error = FieldError;

    fn try_from(parts: i64) -> Result<Self, FieldError> {
        let valid = u8::try_from(parts).ok().and_then(NonZeroU8::new);
        valid.map(Self).ok_or(FieldError::OutOfRange { min: Self::MIN, max: Self::MAX })
    }
}

impl FromStr for MaxParts {
    type Err = FieldError;

    fn from_str(text: &str) -> Result<Self, FieldError> {
        parse(text, Self::MIN, Self::MAX)?.try_into()
    }
}

fn in_range(number: i64, min: i64, max: i64) -> Result<i64, FieldError> {
    match (min..=max).contains(&number) {
        true => Ok(number),
        false => Err(FieldError::OutOfRange { min, max }),
    }
}

fn parse(text: &str, min: i64, max: i64) -> Result<i64, FieldError> {
    text.parse().map_err(|_| FieldError::OutOfRange { min, max })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn validity_is_between_one_minute_and_three_days() {
        let error = FieldError::OutOfRange { min: 60, max: 259_200 };
        for seconds in [60, 61, 172_800, 259_200] {
            let validity = Validity::try_from(seconds).unwrap();
            assert_eq!(validity.duration(), Duration::from_secs(seconds.unsigned_abs()));
            assert_eq!(seconds.to_string().parse(), Ok(validity));
        }
        for seconds in [i64::MIN, -60, 0, 59, 259_201, i64::MAX] {
            assert_eq!(Validity::try_from(seconds), Err(error), "{seconds}");
            assert_eq!(seconds.to_string().parse::<Validity>(), Err(error), "{seconds}");
        }
        for text in ["", "soon", "60.5", " 60", "9223372036854775808"] {
            assert_eq!(text.parse::<Validity>(), Err(error), "{text}");
        }
        assert_eq!(error.to_string(), "the value must be between 60 and 259200");
    }

    #[test]
    fn default_validity_is_two_days() {
        assert_eq!(Validity::default().duration(), Duration::from_secs(2 * 24 * 3_600));
        assert_eq!(Validity::try_from(172_800), Ok(Validity::default()));
    }

    #[test]
    fn max_parts_fits_into_one_byte() {
        let error = FieldError::OutOfRange { min: MaxParts::MIN, max: MaxParts::MAX };
        for parts in [MaxParts::MIN, 2, MaxParts::MAX] {
            let max = MaxParts::try_from(parts).unwrap();
            assert_eq!(i64::from(max.get()), parts);
            assert_eq!(parts.to_string().parse(), Ok(max));
        }
        for parts in [i64::MIN, -1, MaxParts::MIN - 1, MaxParts::MAX + 1, 65_537, i64::MAX] {
            assert_eq!(MaxParts::try_from(parts), Err(error), "{parts}");
            assert_eq!(parts.to_string().parse::<MaxParts>(), Err(error), "{parts}");
        }
        assert_eq!("many".parse::<MaxParts>(), Err(error));
    }
}
