//! Message text: encodings and parts.

/// One part's encoded text.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Segment {
    /// Encoding.
    pub encoding: Encoding,
    /// UDH.
    pub udh: bool,
    /// Octets.
    pub octets: Vec<u8>,
}

/// Encoding.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Encoding {
    /// GSM.
    Gsm7,
    /// UCS-2.
    Ucs2,
}
