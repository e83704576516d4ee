//! Addresses and short texts of the simulated SMSC, stored without heap allocations.

use crate::smpp::body::Address;
use heliograph_domain::phone::Recipient;
use std::fmt::Arguments;
use std::io::Write;

/// An owned address with its type of number and numbering plan.
#[derive(Clone, Copy, Debug)]
pub(crate) struct StoredAddress {
    ton: u8,
    npi: u8,
    digits: FixedText<20>,
}

/// A text of at most `N` bytes in an inline buffer; longer ones are truncated.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FixedText<const N: usize> {
    bytes: [u8; N],
    length: usize,
}

impl StoredAddress {
    pub(crate) fn new(ton: u8, npi: u8, digits: &str) -> Self {
        Self { ton, npi, digits: FixedText::new(digits.as_bytes()) }
    }

    /// Returns the address of a handset.
    pub(crate) fn handset(number: Recipient) -> Self {
        Self { ton: 1, npi: 1, digits: FixedText::print(format_args!("{number}")) }
    }

    pub(crate) fn name(&self) -> &str {
        self.digits.as_str()
    }

    pub(crate) fn address(&self) -> Address<'_> {
        Address { ton: self.ton, npi: self.npi, digits: self.digits.as_bytes() }
    }
}

impl From<Address<'_>> for StoredAddress {
    fn from(address: Address<'_>) -> Self {
        Self { ton: address.ton, npi: address.npi, digits: FixedText::new(address.digits) }
    }
}

impl<const N: usize> FixedText<N> {
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
        // An error means that the buffer is full and the text is truncated.
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

/// Returns the bytes as text, or an empty text when they are not UTF-8.
pub(crate) fn ascii(bytes: &[u8]) -> &str {
    std::str::from_utf8(bytes).unwrap_or_default()
}
