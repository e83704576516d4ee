//! Bodies: what stands behind the header of binds and of short messages.

use crate::smpp::command::tag;
use bytes::{BufMut, BytesMut};

/// The longest text that short_message can hold (SMPP 3.4 §5.2.22); longer ones go as a payload.
const MAX_SHORT: usize = 254;

/// The body of bind_transmitter, bind_receiver and bind_transceiver (SMPP 3.4 §4.1).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Bind<'a> {
    /// Who binds.
    pub system_id: &'a [u8],
    /// With what secret.
    pub password: &'a [u8],
    /// As what kind of system.
    pub system_type: &'a [u8],
    /// 0x34 for SMPP 3.4.
    pub interface_version: u8,
}

impl<'a> Bind<'a> {
    /// Reads a bind's body.
    pub fn decode(body: &'a [u8]) -> Option<Self> {
        let mut r = Reader(body);
        Some(Self {
            system_id: r.text()?,
            password: r.text()?,
            system_type: r.text()?,
            interface_version: r.octet()?,
        })
    }

    /// Writes it, with an empty address range.
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
    /// The address itself.
    pub digits: &'a [u8],
}

/// The body that submit_sm (SMPP 3.4 §4.4.1) and deliver_sm (§4.6.1) share.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct ShortMessage<'a> {
    /// Empty for the default.
    pub service_type: &'a [u8],
    /// Who it is from.
    pub source: Address<'a>,
    /// Whom it is for.
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
    /// 1 asks for a receipt (§5.2.17).
    pub registered_delivery: u8,
    /// replace_if_present_flag.
    pub replace: u8,
    /// How the text is encoded (§5.2.19).
    pub data_coding: u8,
    /// sm_default_msg_id.
    pub default_message: u8,
    /// short_message, or message_payload when that is where the text stands.
    pub text: &'a [u8],
    /// The optional parameters, undecoded.
    pub optional: Tlvs<'a>,
}

impl<'a> ShortMessage<'a> {
    /// Reads the body of a submit_sm or deliver_sm.
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

    /// Writes it. `optional` is written as it is, behind the message_payload of a long text.
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

/// Optional parameters (SMPP 3.4 §5.3): tag, length, value, one after the other.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Tlvs<'a>(pub &'a [u8]);

impl<'a> Tlvs<'a> {
    /// The first value with this tag.
    pub fn get(self, tag: u16) -> Option<&'a [u8]> {
        self.into_iter().find(|(t, _)| *t == tag).map(|(_, v)| v)
    }
}

/// Ends at the first parameter that is cut short: what stands before it is still good.
impl<'a> Iterator for Tlvs<'a> {
    type Item = (u16, &'a [u8]);

    fn next(&mut self) -> Option<Self::Item> {
        let (head, rest) = self.0.split_first_chunk::<4>()?;
        let [t0, t1, l0, l1] = *head;
        let length = usize::from(u16::from_be_bytes([l0, l1]));
        let (value, rest) = rest.split_at_checked(length)?;
        self.0 = rest;
        Some((u16::from_be_bytes([t0, t1]), value))
    }
}

/// Appends one optional parameter. One that is too long for its length field is left out.
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

/// A C-octet string at the front of `body`: up to its NUL, or all of it when that is missing, as
/// some SMSCs send it; empty when there is nothing.
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
    use crate::smpp::pdu::{self, Head};
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
        fn a_short_message_reads_back(
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
            let head = Head::request(id::SUBMIT_SM, 5);
            let mut out = BytesMut::new();
            pdu::put(&mut out, head, |out| message.encode(out));
            let mut rest = out.as_ref();
            let pdu = pdu::take(&mut rest).unwrap().unwrap();
            prop_assert_eq!((pdu.head, rest.len()), (head, 0));
            prop_assert_eq!(ShortMessage::decode(pdu.body), Some(message));
            let read: Vec<_> = message.optional.map(|(tag, value)| (tag, value.to_vec())).collect();
            prop_assert_eq!(read, parameters);
        }

        #[test]
        fn a_long_text_travels_as_payload(long in vec(any::<u8>(), 255..2_000)) {
            let mut out = BytesMut::new();
            ShortMessage { text: &long, ..ShortMessage::default() }.encode(&mut out);
            prop_assert_eq!(ShortMessage::decode(&out).unwrap().text, &long);
        }

        #[test]
        fn a_bind_reads_back(texts in (text(15), text(8), text(12)), interface_version: u8) {
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
        fn any_bytes_are_read_or_refused(bytes in vec(any::<u8>(), 0..200)) {
            let mut rest = bytes.as_slice();
            while let Ok(Some(pdu)) = pdu::take(&mut rest) {
                let _ = ShortMessage::decode(pdu.body);
            }
            let _ = Bind::decode(&bytes);
            let _ = leading_text(&bytes);
            if let Some(message) = ShortMessage::decode(&bytes) {
                receipt::read(&message);
            }
        }

        #[test]
        fn any_text_is_a_receipt_or_not(text in vec(any::<u8>(), 0..100), words in "(id|stat|err|text|:|=| |é|DELIVRD){0,12}") {
            for text in [text.as_slice(), words.as_bytes()] {
                receipt::read(&ShortMessage { esm_class: 0x04, text, ..ShortMessage::default() });
            }
        }

        #[test]
        fn a_pdu_in_pieces_is_the_same_pdu(body in vec(any::<u8>(), 0..300), cut in 0usize..316) {
            let mut out = BytesMut::new();
            let head = Head { command: 1, status: 2, sequence: 3 };
            pdu::put(&mut out, head, |out| out.put_slice(&body));
            let cut = cut.min(out.len() - 1);
            prop_assert_eq!(pdu::take(&mut &out[..cut]), Ok(None));
            let pdu = pdu::take(&mut &out[..]).unwrap().unwrap();
            prop_assert_eq!((pdu.head, pdu.body), (head, body.as_slice()));
        }
    }
}
