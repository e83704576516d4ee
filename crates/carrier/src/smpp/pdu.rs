//! Framing of PDUs in a byte stream by their command_length (SMPP 3.4 §3.2).

use crate::smpp::command::id;
use bytes::{BufMut, BytesMut};

/// The length of the header, which is the minimum length of a PDU.
pub const HEADER_LEN: usize = 16;

/// The longest accepted PDU. A longer command_length is treated as a framing error.
pub const MAX_PDU: usize = 64 * 1024;

/// An invalid command_length: the stream has lost its framing and the link must be closed.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error("invalid command_length {0}")]
pub struct BadLength(pub u32);

/// The header of a PDU (SMPP 3.4 §3.2) without its command_length.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PduHeader {
    /// command_id (SMPP 3.4 §5.1.2).
    pub command: u32,
    /// command_status (SMPP 3.4 §5.1.3): 0 in requests.
    pub status: u32,
    /// sequence_number (SMPP 3.4 §5.1.4): a response repeats that of its request.
    pub sequence: u32,
}

impl PduHeader {
    /// Returns the header of a request.
    pub const fn request(command: u32, sequence: u32) -> Self {
        Self { command, status: 0, sequence }
    }

    /// Returns the header of the response to `self`.
    pub const fn response(self, status: u32) -> Self {
        Self { command: self.command | id::RESPONSE, status, sequence: self.sequence }
    }

    /// Returns the header of a generic_nack for `self` (SMPP 3.4 §4.3.1).
    pub const fn nack(self, status: u32) -> Self {
        Self { command: id::GENERIC_NACK, status, sequence: self.sequence }
    }

    /// Returns whether the PDU is a response.
    pub const fn is_response(self) -> bool {
        self.command & id::RESPONSE != 0
    }
}

/// One complete PDU, borrowed from the buffer that it was read into.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Pdu<'a> {
    /// The header.
    pub header: PduHeader,
    /// The bytes after the header.
    pub body: &'a [u8],
}

/// Takes one PDU off the front of `bytes`; `None` while it is incomplete.
pub fn take<'a>(bytes: &mut &'a [u8]) -> Result<Option<Pdu<'a>>, BadLength> {
    let Some((length, _)) = word(bytes) else {
        return Ok(None);
    };
    let size = usize::try_from(length).unwrap_or(usize::MAX);
    if !(HEADER_LEN..=MAX_PDU).contains(&size) {
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
    let header = PduHeader { command, status, sequence };
    Some(Pdu { header, body })
}

fn word(bytes: &[u8]) -> Option<(u32, &[u8])> {
    let (first, rest) = bytes.split_first_chunk::<4>()?;
    Some((u32::from_be_bytes(*first), rest))
}

/// Appends a PDU. `body` writes its body.
pub fn put(out: &mut BytesMut, header: PduHeader, body: impl FnOnce(&mut BytesMut)) {
    let start = out.len();
    out.put_u32(0);
    out.put_u32(header.command);
    out.put_u32(header.status);
    out.put_u32(header.sequence);
    body(out);
    let length = u32::try_from(out.len() - start).unwrap_or(u32::MAX);
    if let Some(field) = out.get_mut(start..).and_then(<[u8]>::first_chunk_mut) {
        *field = length.to_be_bytes();
    }
}

/// Appends a PDU without a body.
pub fn put_header(out: &mut BytesMut, header: PduHeader) {
    put(out, header, |_| ());
}

/// Appends a response whose body is one C-octet string: a message_id, or an empty one.
pub fn put_message_id(out: &mut BytesMut, header: PduHeader, id: &[u8]) {
    put(out, header, |out| {
        out.put_slice(id);
        out.put_u8(0);
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn invalid_lengths_are_distinguished_from_incomplete_pdus() {
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
    fn response_repeats_the_sequence_of_its_request() {
        let mut out = BytesMut::new();
        put_message_id(&mut out, PduHeader::request(id::SUBMIT_SM, 7).response(0x58), b"");
        let header = PduHeader { command: id::SUBMIT_SM_RESP, status: 0x58, sequence: 7 };
        let mut bytes = &out[..];
        let pdu = take(&mut bytes).unwrap().unwrap();
        assert_eq!((pdu.header, pdu.body, bytes), (header, &[0][..], &[][..]));
    }
}
