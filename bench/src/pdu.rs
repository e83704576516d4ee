//! The few SMPP 3.4 PDUs that a minimal SMSC needs, independent of Heliograph's own codec.

use bytes::{Buf, BufMut, Bytes, BytesMut};

pub(crate) const SUBMIT_SM: u32 = 0x04;
pub(crate) const DELIVER_SM: u32 = 0x05;
pub(crate) const UNBIND: u32 = 0x06;
pub(crate) const BIND_TRANSMITTER: u32 = 0x02;
pub(crate) const BIND_TRANSCEIVER: u32 = 0x09;
pub(crate) const ENQUIRE_LINK: u32 = 0x15;
pub(crate) const GENERIC_NACK: u32 = 0x8000_0000;
/// Set in the command_id of every response.
pub(crate) const RESP: u32 = 0x8000_0000;

pub(crate) const ESME_RINVCMDID: u32 = 0x03;
pub(crate) const ESME_RINVBNDSTS: u32 = 0x04;
pub(crate) const ESME_RSYSERR: u32 = 0x08;
pub(crate) const ESME_RTHROTTLED: u32 = 0x58;

const HEAD: usize = 16;
const MAX_LENGTH: usize = 65_536;

/// A received PDU.
pub(crate) struct BenchPdu {
    pub(crate) command: u32,
    pub(crate) status: u32,
    pub(crate) sequence: u32,
    pub(crate) body: Bytes,
}

/// Removes one complete PDU from the buffer; `None` if more bytes are needed.
pub(crate) fn take(inbound: &mut BytesMut) -> anyhow::Result<Option<BenchPdu>> {
    let Some(mut head) = inbound.get(..HEAD) else { return Ok(None) };
    let length = usize::try_from(head.get_u32())?;
    anyhow::ensure!((HEAD..=MAX_LENGTH).contains(&length), "command_length {length}");
    let (command, status, sequence) = (head.get_u32(), head.get_u32(), head.get_u32());
    if inbound.len() < length {
        return Ok(None);
    }
    let mut body = inbound.split_to(length).freeze();
    body.advance(HEAD);
    Ok(Some(BenchPdu { command, status, sequence, body }))
}

/// Appends a PDU with this header and a body of these slices.
pub(crate) fn put(out: &mut BytesMut, head: [u32; 3], body: &[&[u8]]) {
    let length = HEAD + body.iter().map(|piece| piece.len()).sum::<usize>();
    out.reserve(length);
    out.put_u32(u32::try_from(length).unwrap_or(u32::MAX));
    head.iter().for_each(|word| out.put_u32(*word));
    body.iter().for_each(|piece| out.put_slice(piece));
}

/// An address: type of number, numbering plan and digits.
#[derive(Clone)]
pub(crate) struct PduAddress {
    kind: [u8; 2],
    pub(crate) digits: Bytes,
}

/// The fields of a submit_sm that the SMSC uses.
pub(crate) struct Submit {
    pub(crate) source: PduAddress,
    pub(crate) destination: PduAddress,
    pub(crate) wants_receipt: bool,
}

/// Parses the body of a submit_sm; `None` if it is truncated.
pub(crate) fn submit(mut body: Bytes) -> Option<Submit> {
    c_string(&mut body)?; // service_type
    let source = address(&mut body)?;
    let destination = address(&mut body)?;
    body.get(..3)?; // esm_class, protocol_id, priority_flag
    body.advance(3);
    c_string(&mut body)?; // schedule_delivery_time
    c_string(&mut body)?; // validity_period
    let registered_delivery = *body.first()?;
    Some(Submit { source, destination, wants_receipt: registered_delivery & 1 == 1 })
}

fn address(body: &mut Bytes) -> Option<PduAddress> {
    let kind = body.get(..2)?.try_into().ok()?;
    body.advance(2);
    Some(PduAddress { kind, digits: c_string(body)? })
}

fn c_string(body: &mut Bytes) -> Option<Bytes> {
    let length = body.iter().position(|byte| *byte == 0)?;
    let text = body.split_to(length);
    body.advance(1);
    Some(text)
}

/// Appends a deliver_sm with a receipt, both in the text and as TLVs. The dates are constant, since
/// Heliograph does not read them.
pub(crate) fn put_receipt(
    out: &mut BytesMut,
    sequence: u32,
    id: &str,
    from: &PduAddress,
    to: &PduAddress,
) {
    let text = [
        b"id:".as_slice(),
        id.as_bytes(),
        b" sub:001 dlvrd:001 submit date:2611200900 done date:2611200900 stat:DELIVRD err:000 text:",
    ];
    let octets = |n: usize| u8::try_from(n).unwrap_or(u8::MAX);
    let text_length = octets(text.iter().map(|piece| piece.len()).sum());
    let body: [&[u8]; 17] = [
        b"\0", // service_type
        &from.kind,
        &from.digits,
        b"\0",
        &to.kind,
        &to.digits,
        b"\0",
        &[4, 0, 0, 0, 0, 0, 0, 0, 0], // esm_class: a receipt; eight unused fields
        &[text_length],
        text[0],
        text[1],
        text[2],
        &[0x00, 0x1E, 0, octets(id.len() + 1)], // receipted_message_id
        id.as_bytes(),
        b"\0",
        &[0x04, 0x27, 0, 1], // message_state
        &[2],                // DELIVERED
    ];
    put(out, [DELIVER_SM, 0, sequence], &body);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_complete_pdus_are_removed() {
        let mut out = BytesMut::new();
        put(&mut out, [SUBMIT_SM, 0, 7], &[b"abc", b"d"]);
        let mut part = BytesMut::from(&out[..19]);
        assert!(take(&mut part).unwrap().is_none());
        let pdu = take(&mut out).unwrap().unwrap();
        assert_eq!((pdu.command, pdu.sequence, pdu.body.as_ref()), (SUBMIT_SM, 7, &b"abcd"[..]));
        assert!(take(&mut BytesMut::from(&[0; 16][..])).is_err());
    }

    #[test]
    fn a_submit_is_parsed_up_to_registered_delivery() {
        let body = b"\0\x05\0Bench\0\x01\x01447400000001\0\0\0\0\0\0\x01\0\0\0\0";
        let submit = submit(Bytes::from_static(body)).unwrap();
        assert_eq!(submit.source.digits, "Bench");
        assert_eq!(submit.destination.digits, "447400000001");
        assert!(submit.wants_receipt);
    }
}
