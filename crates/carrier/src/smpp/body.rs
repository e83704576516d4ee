//! The bodies of binds and short messages, and their optional parameters (TLVs).

use crate::smpp::command::tag;
use bytes::{BufMut, BytesMut};

/// The longest text that short_message can hold (SMPP 3.4 §5.2.22). A longer text is sent as
/// message_payload (§5.3.2.32).
const MAX_SHORT: usize = 254;

/// The body of bind_transmitter, bind_receiver and bind_transceiver (SMPP 3.4 §4.1).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Bind<'a> {
    /// The client's name.
    pub system_id: &'a [u8],
    /// The client's password.
    pub password: &'a [u8],
    /// The client's type of system.
    pub system_type: &'a [u8],
    /// 0x34 for SMPP 3.4.
    pub interface_version: u8,
}

impl<'a> Bind<'a> {
    /// Decodes the body of a bind; `None` when it is malformed.
    pub fn decode(body: &'a [u8]) -> Option<Self> {
        let mut r = Reader(body);
        Some(Self {
            system_id: r.text()?,
            password: r.text()?,
            system_type: r.text()?,
            interface_version: r.octet()?,
        })
    }

    /// Appends the body, with an empty address range.
    pub fn encode(&self, out: &mut BytesMut) {
        for field in [self.system_id, self.password, self.system_type] {
            put_text(out, field);
        }
        out.put_slice(&[self.interface_version, 0, 0, 0]);
    }
}

/// An address with its type of number and numbering plan (SMPP 3.4 §5.2.5, §5.2.6).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Address<'a> {
    /// Type of number: 1 international, 3 network specific, 5 alphanumeric.
    pub ton: u8,
    /// Numbering plan: 0 unknown, 1 E.164.
    pub npi: u8,
    /// The address: digits, or an alphanumeric name.
    pub digits: &'a [u8],
}

/// The body that submit_sm (SMPP 3.4 §4.4.1) and deliver_sm (§4.6.1) share.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct ShortMessage<'a> {
    /// service_type: empty for the default (§5.2.11).
    pub service_type: &'a [u8],
    /// The source address.
    pub source: Address<'a>,
    /// The destination address.
    pub destination: Address<'a>,
    /// Message mode and type, and whether there is a user data header (§5.2.12).
    pub esm_class: u8,
    /// protocol_id.
    pub protocol_id: u8,
    /// priority_flag.
    pub priority: u8,
    /// schedule_delivery_time.
    pub schedule: &'a [u8],
    /// validity_period (§7.1.1).
    pub validity: &'a [u8],
    /// 1 requests a delivery receipt (§5.2.17).
    pub registered_delivery: u8,
    /// replace_if_present_flag.
    pub replace: u8,
    /// The encoding of the text (§5.2.19).
    pub data_coding: u8,
    /// sm_default_msg_id.
    pub default_message: u8,
    /// short_message, or message_payload when short_message is empty.
    pub text: &'a [u8],
    /// The optional parameters, undecoded.
    pub optional: Tlvs<'a>,
}

impl<'a> ShortMessage<'a> {
    /// Decodes the body of a submit_sm or deliver_sm; `None` when it is malformed.
    pub fn decode(body: &'a [u8]) -> Option<Self> {
        let mut r = Reader(body);
        let mut message = Self {
            service_type: r.text()?,
            source: r.address()?,
            destination: r.address()?,
            esm_class: r.octet()?,
            protocol_id: r.octet()?,
            priority: r.octet()?,
            schedule: r.text()?,
            validity: r.text()?,
            registered_delivery: r.octet()?,
            replace: r.octet()?,
            data_coding: r.octet()?,
            default_message: r.octet()?,
            text: r.counted()?,
            optional: Tlvs(r.0),
        };
        if message.text.is_empty()
            && let Some(payload) = message.optional.get(tag::MESSAGE_PAYLOAD)
        {
            message.text = payload;
        }
        Some(message)
    }

    /// Appends the body. `optional` is copied unchanged after the message_payload of a long text.
    pub fn encode(&self, out: &mut BytesMut) {
        put_text(out, self.service_type);
        for address in [self.source, self.destination] {
            out.put_slice(&[address.ton, address.npi]);
            put_text(out, address.digits);
        }
        out.put_slice(&[self.esm_class, self.protocol_id, self.priority]);
        put_text(out, self.schedule);
        put_text(out, self.validity);
        out.put_slice(&[
            self.registered_delivery,
            self.replace,
            self.data_coding,
            self.default_message,
        ]);
        match u8::try_from(self.text.len()) {
            Ok(length) if self.text.len() <= MAX_SHORT => {
                out.put_u8(length);
                out.put_slice(self.text);
            }
            _ => {
                out.put_u8(0);
                put_tlv(out, tag::MESSAGE_PAYLOAD, self.text);
            }
        }
        out.put_slice(self.optional.0);
    }
}

/// A sequence of optional parameters (SMPP 3.4 §5.3): tag, length and value.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Tlvs<'a>(pub &'a [u8]);

impl<'a> Tlvs<'a> {
    /// Returns the first value with this tag.
    pub fn get(self, tag: u16) -> Option<&'a [u8]> {
        self.into_iter().find(|(t, _)| *t == tag).map(|(_, v)| v)
    }
}

/// Iterates over the parameters and ends at the first truncated one.
impl<'a> Iterator for Tlvs<'a> {
    type Item = (u16, &'a [u8]);

    fn next(&mut self) -> Option<Self::Item> {
        let (header, rest) = self.0.split_first_chunk::<4>()?;
        let [t0, t1, l0, l1] = *header;
        let length = usize::from(u16::from_be_bytes([l0, l1]));
        let (value, rest) = rest.split_at_checked(length)?;
        self.0 = rest;
        Some((u16::from_be_bytes([t0, t1]), value))
    }
}

/// Appends one optional parameter; leaves out a value that is too long for the length field.
pub fn put_tlv(out: &mut BytesMut, tag: u16, value: &[u8]) {
    if let Ok(length) = u16::try_from(value.len()) {
        out.put_u16(tag);
        out.put_u16(length);
        out.put_slice(value);
    }
}

fn put_text(out: &mut BytesMut, text: &[u8]) {
    out.put_slice(text);
    out.put_u8(0);
}

/// Returns the C-octet string at the start of `body`: up to its NUL, or all of `body` when the NUL
/// is missing, as some SMSCs send it.
pub fn leading_text(body: &[u8]) -> &[u8] {
    let mut r = Reader(body);
    r.text().unwrap_or(body)
}

struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    fn octet(&mut self) -> Option<u8> {
        let (first, rest) = self.0.split_first()?;
        self.0 = rest;
        Some(*first)
    }

    fn text(&mut self) -> Option<&'a [u8]> {
        let end = self.0.iter().position(|b| *b == 0)?;
        let (text, rest) = self.0.split_at_checked(end)?;
        self.0 = rest.get(1..)?;
        Some(text)
    }

    fn counted(&mut self) -> Option<&'a [u8]> {
        let length = usize::from(self.octet()?);
        let (bytes, rest) = self.0.split_at_checked(length)?;
        self.0 = rest;
        Some(bytes)
    }

    fn address(&mut self) -> Option<Address<'a>> {
        Some(Address { ton: self.octet()?, npi: self.octet()?, digits: self.text()? })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::smpp::command::id;
    use crate::smpp::pdu::{self, PduHeader};
    use crate::smpp::receipt;
    use proptest::collection::vec;
    use proptest::prelude::*;

    prop_compose! {
        fn text(longest: usize)(text in vec(1u8.., 0..=longest)) -> Vec<u8> {
            text
        }
    }

    proptest! {
        #[test]
        fn short_message_round_trips(
            texts in (text(5), text(20), text(20), text(16), text(16)),
            numbers: ((u8, u8), (u8, u8), [u8; 3], [u8; 4]),
            short in vec(any::<u8>(), 1..=254),
            parameters in vec((any::<u16>(), vec(any::<u8>(), 0..9)), 0..4),
        ) {
            let mut optional = BytesMut::new();
            for (tag, value) in &parameters {
                put_tlv(&mut optional, *tag, value);
            }
            let ((source_ton, source_npi), (ton, npi), modes, flags) = numbers;
            let message = ShortMessage {
                service_type: &texts.0,
                source: Address { ton: source_ton, npi: source_npi, digits: &texts.1 },
                destination: Address { ton, npi, digits: &texts.2 },
                esm_class: modes[0],
                protocol_id: modes[1],
                priority: modes[2],
                schedule: &texts.3,
                validity: &texts.4,
                registered_delivery: flags[0],
                replace: flags[1],
                data_coding: flags[2],
                default_message: flags[3],
                text: &short,
                optional: Tlvs(&optional),
            };
            let header = PduHeader::request(id::SUBMIT_SM, 5);
            let mut out = BytesMut::new();
            pdu::put(&mut out, header, |out| message.encode(out));
            let mut rest = out.as_ref();
            let pdu = pdu::take(&mut rest).unwrap().unwrap();
            prop_assert_eq!((pdu.header, rest.len()), (header, 0));
            prop_assert_eq!(ShortMessage::decode(pdu.body), Some(message));
            let read: Vec<_> = message.optional.map(|(tag, value)| (tag, value.to_vec())).collect();
            prop_assert_eq!(read, parameters);
        }

        #[test]
        fn long_text_is_sent_as_message_payload(long in vec(any::<u8>(), 255..2_000)) {
            let mut out = BytesMut::new();
            ShortMessage { text: &long, ..ShortMessage::default() }.encode(&mut out);
            prop_assert_eq!(ShortMessage::decode(&out).unwrap().text, &long);
        }

        #[test]
        fn bind_round_trips(texts in (text(15), text(8), text(12)), interface_version: u8) {
            let bind = Bind {
                system_id: &texts.0,
                password: &texts.1,
                system_type: &texts.2,
                interface_version,
            };
            let mut out = BytesMut::new();
            bind.encode(&mut out);
            prop_assert_eq!(Bind::decode(&out), Some(bind));
        }

        #[test]
        fn decoders_never_panic_on_any_bytes(bytes in vec(any::<u8>(), 0..200)) {
            let mut rest = bytes.as_slice();
            while let Ok(Some(pdu)) = pdu::take(&mut rest) {
                let _ = ShortMessage::decode(pdu.body);
            }
            let _ = Bind::decode(&bytes);
            let _ = leading_text(&bytes);
            if let Some(message) = ShortMessage::decode(&bytes) {
                receipt::classify(&message);
            }
        }

        #[test]
        fn receipt_parser_never_panics_on_any_text(text in vec(any::<u8>(), 0..100), words in "(id|stat|err|text|:|=| |é|DELIVRD){0,12}") {
            for text in [text.as_slice(), words.as_bytes()] {
                receipt::classify(&ShortMessage { esm_class: 0x04, text, ..ShortMessage::default() });
            }
        }

        #[test]
        fn incomplete_pdu_is_not_taken(body in vec(any::<u8>(), 0..300), cut in 0usize..316) {
            let mut out = BytesMut::new();
            let header = PduHeader { command: 1, status: 2, sequence: 3 };
            pdu::put(&mut out, header, |out| out.put_slice(&body));
            let cut = cut.min(out.len() - 1);
            prop_assert_eq!(pdu::take(&mut &out[..cut]), Ok(None));
            let pdu = pdu::take(&mut &out[..]).unwrap().unwrap();
            prop_assert_eq!((pdu.header, pdu.body), (header, body.as_slice()));
        }
    }
}
