//! The two encodings of a message text.

use std::fmt;

/// The encoding of a text. All parts of a message share one encoding.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Encoding {
    /// GSM-7: the GSM 03.38 default alphabet with its extension table, one septet per octet.
    Gsm7,
    /// Unicode (UCS-2): UTF-16, big endian, for all other texts; emoji as surrogate pairs.
    Ucs2,
}

impl Encoding {
    /// Returns the stored code.
    pub const fn code(self) -> i16 {
        match self {
            Self::Gsm7 => 0,
            Self::Ucs2 => 1,
        }
    }

    /// Returns the value of a stored code.
    pub const fn from_code(code: i16) -> Option<Self> {
        match code {
            0 => Some(Self::Gsm7),
            1 => Some(Self::Ucs2),
            _ => None,
        }
    }

    /// Returns the name on the wire: `GSM_7` or `UCS_2`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Gsm7 => "GSM_7",
            Self::Ucs2 => "UCS_2",
        }
    }

    /// Returns the SMPP data_coding.
    pub const fn data_coding(self) -> u8 {
        match self {
            Self::Gsm7 => 0,
            Self::Ucs2 => 8,
        }
    }
}

impl fmt::Display for Encoding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stored_codes_round_trip() {
        for encoding in [Encoding::Gsm7, Encoding::Ucs2] {
            assert_eq!(Encoding::from_code(encoding.code()), Some(encoding));
        }
        assert_eq!(Encoding::from_code(2), None);
        assert_eq!(Encoding::from_code(-1), None);
    }
}
