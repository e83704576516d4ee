//! Framing: a byte stream into PDUs and back, by command_length alone.

use crate::smpp::command::id;
use bytes::{BufMut, BytesMut};

/// The header's length: the least that a PDU can be.
pub const HEADER: usize = 16;

/// The longest PDU that is taken. Longer ones would be a fault of the framing.
pub const MAX_PDU: usize = 64 * 1024;

/// The command_length can't be right, so nothing after it can be trusted: the link must be cut.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error("impossible command_length {0}")]
pub struct BadLength(pub u32);

/// The four words before every body (SMPP 3.4 §5.1), less the length.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Head {
    /// command_id.
    pub command: u32,
    /// command_status: 0 in requests.
    pub status: u32,
    /// sequence_number: a response carries that of its request.
    pub sequence: u32,
}

impl Head {
    /// A request.
    pub const fn request(command: u32, sequence: u32) -> Self {
        Self { command, status: 0, sequence }
    }

    /// The response to `self`.
    pub const fn response(self, status: u32) -> Self {
        Self { command: self.command | id::RESPONSE, status, sequence: self.sequence }
    }

    /// generic_nack for `self` (§4.3.1).
    pub const fn nack(self, status: u32) -> Self {
        Self { command: id::GENERIC_NACK, status, sequence: self.sequence }
    }

    /// Whether it answers something.
    pub const fn is_response(self) -> bool {
        self.command & id::RESPONSE != 0
    }
}

/// One whole PDU, borrowed from the buffer that it was read into.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Pdu<'a> {
    /// Its header.
    pub head: Head,
    /// What follows the header.
    pub body: &'a [u8],
}

/// Takes one PDU off the front of `bytes`; `None` when it is not all there yet.
pub fn take<'a>(bytes: &mut &'a [u8]) -> Result<Option<Pdu<'a>>, BadLength> {
    let Some((length, _)) = word(bytes) else {
        return Ok(None);
    };
    let size = usize::try_from(length).unwrap_or(usize::MAX);
    if !(HEADER..=MAX_PDU).contains(&size) {
        return Err(BadLength(length));
    }
    let Some((pdu, rest)) = bytes.split_at_checked(size) else {
        return Ok(None);
    };
    *bytes = rest;
    Ok(parse(pdu))
}

fn parse(pdu: &[u8]) -> Option<Pdu<'_>> {
    let (_, rest) = word(pdu)?;
    let (command, rest) = word(rest)?;
    let (status, rest) = word(rest)?;
    let (sequence, body) = word(rest)?;
    let head = Head { command, status, sequence };
    Some(Pdu { head, body })
}

fn word(bytes: &[u8]) -> Option<(u32, &[u8])> {
    let (first, rest) = bytes.split_first_chunk::<4>()?;
    Some((u32::from_be_bytes(*first), rest))
}

/// Appends a PDU whose body is written by `body`.
pub fn put(out: &mut BytesMut, head: Head, body: impl FnOnce(&mut BytesMut)) {
    let start = out.len();
    out.put_u32(0);
    out.put_u32(head.command);
    out.put_u32(head.status);
    out.put_u32(head.sequence);
    body(out);
    let length = u32::try_from(out.len() - start).unwrap_or(u32::MAX);
    if let Some(place) = out.get_mut(start..).and_then(<[u8]>::first_chunk_mut) {
        *place = length.to_be_bytes();
    }
}

/// Appends a PDU without a body.
pub fn put_bare(out: &mut BytesMut, head: Head) {
    put(out, head, |_| ());
}

/// Appends a response whose body is one C-octet string: an id, or nothing.
pub fn put_id(out: &mut BytesMut, head: Head, id: &[u8]) {
    put(out, head, |out| {
        out.put_slice(id);
        out.put_u8(0);
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn impossible_lengths_are_told_apart_from_short_reads() {
        for (bytes, expected) in [
            (&[][..], Ok(None)),
            (&[0, 0, 0], Ok(None)),
            (&[0, 0, 0, 16, 1], Ok(None)),
            (&[0, 0, 0, 15], Err(BadLength(15))),
            (&[0, 1, 0, 1], Err(BadLength(65_537))),
            (&[0, 1, 0, 0], Ok(None)),
            (b"HTTP", Err(BadLength(0x4854_5450))),
        ] {
            assert_eq!(take(&mut { bytes }), expected, "{bytes:?}");
        }
    }

    #[test]
    fn a_response_carries_the_sequence_of_its_request() {
        let mut out = BytesMut::new();
        put_id(&mut out, Head::request(id::SUBMIT_SM, 7).response(0x58), b"");
        let head = Head { command: id::SUBMIT_SM_RESP, status: 0x58, sequence: 7 };
        let mut bytes = &out[..];
        let pdu = take(&mut bytes).unwrap().unwrap();
        assert_eq!((pdu.head, pdu.body, bytes), (head, &[0][..], &[][..]));
    }
}
