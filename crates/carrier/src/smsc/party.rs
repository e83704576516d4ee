//! Addresses and short texts as the simulated SMSC keeps them: without allocations of their own.

use crate::smpp::body::Address;
use heliograph_domain::phone::Recipient;
use std::fmt::Arguments;
use std::io::Write;

/// An address, kept.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Party {
    ton: u8,
    npi: u8,
    digits: Text<20>,
}

/// A short text without an allocation of its own; what does not fit is cut off.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Text<const N: usize> {
    bytes: [u8; N],
    length: usize,
}

impl Party {
    pub(crate) fn new(ton: u8, npi: u8, digits: &str) -> Self {
        Self { ton, npi, digits: Text::new(digits.as_bytes()) }
    }

    /// A handset's number.
    pub(crate) fn handset(number: Recipient) -> Self {
        Self { ton: 1, npi: 1, digits: Text::print(format_args!("{number}")) }
    }

    pub(crate) fn name(&self) -> &str {
        self.digits.as_str()
    }

    pub(crate) fn address(&self) -> Address<'_> {
        Address { ton: self.ton, npi: self.npi, digits: self.digits.as_bytes() }
    }
}

impl From<Address<'_>> for Party {
    fn from(address: Address<'_>) -> Self {
        Self { ton: address.ton, npi: address.npi, digits: Text::new(address.digits) }
    }
}

impl<const N: usize> Text<N> {
    pub(crate) fn new(text: &[u8]) -> Self {
        let mut bytes = [0; N];
        let length = text.len().min(N);
        for (to, from) in bytes.iter_mut().zip(text) {
            *to = *from;
        }
        Self { bytes, length }
    }

    pub(crate) fn print(text: Arguments<'_>) -> Self {
        let mut bytes = [0; N];
        let mut rest = bytes.as_mut_slice();
        // Full: the rest is cut off.
        let _ = rest.write_fmt(text);
        let length = N - rest.len();
        Self { bytes, length }
    }

    pub(crate) fn as_bytes(&self) -> &[u8] {
        self.bytes.get(..self.length).unwrap_or_default()
    }

    pub(crate) fn as_str(&self) -> &str {
        ascii(self.as_bytes())
    }
}

/// What is not text is left out.
pub(crate) fn ascii(bytes: &[u8]) -> &str {
    std::str::from_utf8(bytes).unwrap_or_default()
}
