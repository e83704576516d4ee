//! Decodes the text of a short message by its data_coding, and its concatenation information.

use crate::smpp::body::ShortMessage;
use crate::smpp::command::{esm, tag};
use heliograph_domain::inbound::IncomingSms;
use heliograph_domain::text::{Concat, decode_gsm7, decode_ucs2, split_udh};

/// The maximum length of a stored address (SMPP 3.4 §4.6.1 allows 20 characters and the NUL).
const MAX_ADDRESS: usize = 21;

/// The text of one part and its position in a concatenated message.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct DecodedPart {
    pub(crate) text: String,
    pub(crate) concat: Option<Concat>,
}

impl DecodedPart {
    /// Decodes the text of a submit_sm or deliver_sm. When the user data header is malformed, all
    /// octets are treated as text: a few odd characters are better than no message.
    pub(crate) fn decode(message: &ShortMessage<'_>) -> Self {
        let (concat, octets) = match message.esm_class & esm::UDH {
            0 => (sar(message), message.text),
            _ => match split_udh(message.text) {
                Some((concat, octets)) => (concat.or_else(|| sar(message)), octets),
                None => (None, message.text),
            },
        };
        Self { text: decode(message.data_coding, octets), concat }
    }
}

/// Decodes an inbound message from a deliver_sm.
pub(crate) fn inbound_message(message: &ShortMessage<'_>, labelled: bool) -> IncomingSms {
    let part = DecodedPart::decode(message);
    IncomingSms {
        from: address(message.source.digits),
        to: address(message.destination.digits),
        text: part.text,
        concat: part.concat,
        label: label(message).filter(|_| labelled),
    }
}

/// Returns the label of the owner of a message or reply.
pub(crate) fn label(message: &ShortMessage<'_>) -> Option<i64> {
    let value = message.optional.get(tag::LABEL)?;
    value.try_into().ok().map(i64::from_be_bytes)
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Alphabet {
    Gsm7,
    Latin1,
    Ucs2,
}

/// Returns the alphabet of a data_coding: by SMPP 3.4 §5.2.19 below 0x10, otherwise by the coding
/// groups of 3GPP 23.038 §4. 8-bit data and unknown values are decoded as Latin-1, which accepts
/// any octet.
const fn alphabet(data_coding: u8) -> Alphabet {
    match (data_coding, data_coding & 0x0C) {
        (0x00, _) => Alphabet::Gsm7,
        (0x08, _) => Alphabet::Ucs2,
        (0x10..=0x3F, 0x00) => Alphabet::Gsm7,
        (0x10..=0x3F, 0x08) => Alphabet::Ucs2,
        // In this group only bit 2 selects the alphabet; bit 3 is reserved.
        (0xF0..=0xFF, 0x00 | 0x08) => Alphabet::Gsm7,
        _ => Alphabet::Latin1,
    }
}

fn decode(data_coding: u8, octets: &[u8]) -> String {
    let text: String = match alphabet(data_coding) {
        Alphabet::Gsm7 => decode_gsm7(octets),
        Alphabet::Ucs2 => decode_ucs2(octets),
        Alphabet::Latin1 => octets.iter().map(|octet| char::from(*octet)).collect(),
    };
    match text.contains('\0') {
        true => text.replace('\0', ""),
        false => text,
    }
}

/// Returns the position of a part from the optional parameters (SMPP 3.4 §5.3.2.22 to §5.3.2.24).
fn sar(message: &ShortMessage<'_>) -> Option<Concat> {
    let reference = message.optional.get(tag::SAR_MSG_REF_NUM)?.try_into().ok()?;
    let [total] = *message.optional.get(tag::SAR_TOTAL_SEGMENTS)? else { return None };
    let [sequence] = *message.optional.get(tag::SAR_SEGMENT_SEQNUM)? else { return None };
    Concat::new(u16::from_be_bytes(reference), total, sequence)
}

/// Returns an address as it is stored: a number without its plus, or a name unchanged.
fn address(digits: &[u8]) -> String {
    let text = String::from_utf8_lossy(digits);
    let text = text.strip_prefix('+').unwrap_or(&text);
    text.chars().filter(|c| !c.is_control()).take(MAX_ADDRESS).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::smpp::body::{Address, Tlvs, put_tlv};
    use bytes::BytesMut;
    use proptest::collection::vec;
    use proptest::prelude::*;

    fn read(data_coding: u8, esm_class: u8, text: &[u8], optional: &[(u16, &[u8])]) -> DecodedPart {
        let mut tlvs = BytesMut::new();
        for (tag, value) in optional {
            put_tlv(&mut tlvs, *tag, value);
        }
        let optional = Tlvs(&tlvs);
        DecodedPart::decode(&ShortMessage {
            data_coding,
            esm_class,
            text,
            optional,
            ..ShortMessage::default()
        })
    }

    fn place(reference: u16, total: u8, sequence: u8) -> Option<Concat> {
        Some(Concat { reference, total, sequence })
    }

    #[test]
    fn data_coding_selects_the_alphabet() {
        // The octets decoded as GSM 7-bit, as Latin-1, and as UCS-2.
        let octets = [0x04, 0x1F];
        let (gsm, latin, ucs) = ("èÉ", "\u{4}\u{1f}", "П");
        for (codings, expected) in [
            (&[0x00, 0x10, 0x11, 0x13, 0x20, 0x30, 0x33, 0xF0, 0xF3, 0xF8][..], gsm),
            (&[0x01, 0x02, 0x03, 0x04, 0x05, 0x0F, 0x14, 0x1C, 0x34, 0x40, 0xC0, 0xE0], latin),
            (&[0xF4, 0xF7, 0xFC, 0xFF], latin),
            (&[0x08, 0x18, 0x19, 0x1B, 0x28, 0x38], ucs),
        ] {
            for coding in codings {
                assert_eq!(read(*coding, 0, &octets, &[]).text, expected, "{coding:#04x}");
            }
        }
        assert_eq!(read(3, 0, b"Gr\xFC\xDFe", &[]).text, "Grüße");
    }

    #[test]
    fn nul_is_removed_and_lone_surrogates_are_replaced() {
        assert_eq!(read(8, 0, &[0, b'a', 0, 0, 0xD8, 0x3D, 0, b'b'], &[]).text, "a\u{fffd}b");
        assert_eq!(read(3, 0, b"a\0b", &[]).text, "ab");
        // In GSM 7-bit, zero is the at sign.
        assert_eq!(read(0, 0, b"a\0b", &[]).text, "a@b");
    }

    #[test]
    fn concatenation_is_read_from_the_user_data_header_or_sar_parameters() {
        let sar = |total: &'static [u8], sequence: &'static [u8]| {
            [
                (tag::SAR_MSG_REF_NUM, &[1, 2][..]),
                (tag::SAR_TOTAL_SEGMENTS, total),
                (tag::SAR_SEGMENT_SEQNUM, sequence),
            ]
        };
        let header = [5, 0, 3, 7, 3, 2, b'h', b'i'];
        let ports = [6, 5, 4, 1, 2, 3, 4, b'h', b'i'];
        for (esm_class, text, optional, concat) in [
            (esm::UDH, &header[..], &[][..], place(7, 3, 2)),
            (esm::UDH, &header, &sar(&[2], &[1]), place(7, 3, 2)),
            (esm::UDH, &ports, &sar(&[2], &[1]), place(0x0102, 2, 1)),
            (esm::UDH, &ports, &[], None),
            (0, b"hi", &sar(&[2], &[1]), place(0x0102, 2, 1)),
            (0, b"hi", &sar(&[2], &[3]), None),
            (0, b"hi", &sar(&[2], &[0]), None),
            (0, b"hi", &sar(&[2], &[]), None),
            (0, b"hi", &sar(&[2], &[1])[..2], None),
        ] {
            let part = read(0, esm_class, text, optional);
            assert_eq!(
                part,
                DecodedPart { text: "hi".to_owned(), concat },
                "{text:?} {optional:?}"
            );
        }
        // A header that is longer than the whole text.
        let part = read(3, esm::UDH, b"9hi", &sar(&[2], &[1]));
        assert_eq!(part, DecodedPart { text: "9hi".to_owned(), concat: None });
    }

    #[test]
    fn addresses_are_stored_without_plus() {
        for (digits, expected) in [
            (&b"447700900123"[..], "447700900123"),
            (b"+447700900123", "447700900123"),
            (b"007", "007"),
            (b"Shop 24", "Shop 24"),
            (b"a\x01b\x7f\n", "ab"),
            (b"", ""),
            (b"\xFF", "\u{fffd}"),
            (b"1234567890123456789012345", "123456789012345678901"),
        ] {
            assert_eq!(address(digits), expected, "{digits:?}");
        }
    }

    #[test]
    fn label_is_read_only_when_enabled_and_well_formed() {
        for (value, labelled, expected) in [
            (&(-5i64).to_be_bytes()[..], true, Some(-5)),
            (&5i64.to_be_bytes(), false, None),
            (&[0; 7], true, None),
            (&[0; 9], true, None),
        ] {
            let mut tlvs = BytesMut::new();
            put_tlv(&mut tlvs, tag::LABEL, value);
            let optional = Tlvs(&tlvs);
            let message = ShortMessage { optional, ..ShortMessage::default() };
            assert_eq!(inbound_message(&message, labelled).label, expected, "{value:?}");
        }
    }

    proptest! {
        #[test]
        fn any_message_is_decoded(
            codes: (u8, u8),
            text in vec(any::<u8>(), 0..300),
            digits in vec(1u8.., 0..30),
            tlvs in vec(any::<u8>(), 0..40),
        ) {
            let address = Address { ton: 0, npi: 0, digits: &digits };
            let incoming = inbound_message(&ShortMessage {
                source: address,
                destination: address,
                data_coding: codes.0,
                esm_class: codes.1,
                text: &text,
                optional: Tlvs(&tlvs),
                ..ShortMessage::default()
            }, true);
            prop_assert!(!incoming.text.contains('\0'));
            prop_assert!(incoming.from.chars().count() <= MAX_ADDRESS);
        }
    }
}
