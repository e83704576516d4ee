//! Parses delivery receipts (DLR) in deliver_sm: optional parameters first, then the text, whose
//! format differs between SMSCs (SMPP 3.4 Appendix B).

use crate::smpp::body::{ShortMessage, leading_text};
use crate::smpp::command::{esm, tag};
use heliograph_domain::message::{Failure, FailureCode};
use heliograph_domain::phone::Recipient;
use heliograph_domain::receipt::{Receipt, ReceiptOutcome, normalized_id};
use std::borrow::Cow;

/// The kinds of deliver_sm.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum DeliverSm {
    /// A final delivery receipt for a part.
    Receipt(Receipt),
    /// A receipt with a state that is not final (SMPP 3.4 §5.2.28: ENROUTE, ACCEPTED, UNKNOWN), or
    /// an intermediate notification. Acknowledged and ignored.
    Intermediate,
    /// A receipt without a usable message id or without a state. Acknowledged, since it would be the same
    /// the second time, and logged.
    Unreadable,
    /// An inbound message.
    Message,
}

/// Classifies a deliver_sm by its esm_class (SMPP 3.4 §5.2.12) and parses its receipt.
pub fn classify(message: &ShortMessage<'_>) -> DeliverSm {
    match message.esm_class & esm::TYPE {
        esm::INTERMEDIATE => return DeliverSm::Intermediate,
        esm::RECEIPT => {}
        _ if message.optional.get(tag::RECEIPTED_MESSAGE_ID).is_some() => {}
        _ => return DeliverSm::Message,
    }
    let text = plain(message.text);
    let fields = Fields(&text);
    match state(message, &fields) {
        State::Intermediate => DeliverSm::Intermediate,
        State::Missing => DeliverSm::Unreadable,
        State::Delivered => finish(message, &fields, ReceiptOutcome::Delivered),
        State::Failed(code) => {
            let failure = Failure {
                code,
                carrier_code: network_error(message)
                    .or_else(|| fields.find("err").map(str::to_owned)),
            };
            finish(message, &fields, ReceiptOutcome::Failed(failure))
        }
    }
}

fn finish(message: &ShortMessage<'_>, fields: &Fields<'_>, outcome: ReceiptOutcome) -> DeliverSm {
    let id = message.optional.get(tag::RECEIPTED_MESSAGE_ID);
    let id = id.map(leading_text).filter(|id| !id.is_empty());
    let id = match id {
        Some(id) => Some(String::from_utf8_lossy(id).into_owned()),
        None => fields.find("id").map(str::to_owned),
    };
    let destination = number(message.destination.digits);
    // Some SMSCs swap the addresses. A sender's name as the source shows it; of two numbers, either
    // may be the recipient.
    let recipient = number(message.source.digits).or(destination);
    match (id.filter(|id| normalized_id(id).is_some()), recipient) {
        (Some(smsc_id), Some(recipient)) => {
            DeliverSm::Receipt(Receipt { smsc_id, recipient, destination, outcome })
        }
        _ => DeliverSm::Unreadable,
    }
}

fn number(digits: &[u8]) -> Option<Recipient> {
    Recipient::from_digits(std::str::from_utf8(digits).ok()?)
}

/// Returns the text as ASCII: a receipt in UCS-2 is the same text with a zero before each letter.
fn plain(text: &[u8]) -> Cow<'_, str> {
    if text.contains(&0) {
        let letters: Vec<u8> = text.iter().copied().filter(|b| *b != 0).collect();
        return Cow::Owned(String::from_utf8_lossy(&letters).into_owned());
    }
    String::from_utf8_lossy(text)
}

/// Returns network_error_code (SMPP 3.4 §5.3.2.31): the two octets after the network type. Zero
/// means no error.
fn network_error(message: &ShortMessage<'_>) -> Option<String> {
    let value = message.optional.get(tag::NETWORK_ERROR_CODE)?;
    let [_, high, low] = *value.first_chunk::<3>()?;
    let code = u16::from_be_bytes([high, low]);
    (code != 0).then(|| code.to_string())
}

enum State {
    Delivered,
    Failed(FailureCode),
    Intermediate,
    Missing,
}

fn state(message: &ShortMessage<'_>, fields: &Fields<'_>) -> State {
    match message.optional.get(tag::MESSAGE_STATE) {
        Some([state, ..]) => state_of_number(*state),
        _ => fields.find("stat").map_or(State::Missing, state_of_word),
    }
}

/// Maps message_state (SMPP 3.4 §5.2.28).
fn state_of_number(state: u8) -> State {
    match state {
        2 => State::Delivered,
        3 => State::Failed(FailureCode::Expired),
        4 => State::Failed(FailureCode::Unknown),
        5 => State::Failed(FailureCode::Unreachable),
        8 => State::Failed(FailureCode::BlockedByCarrier),
        _ => State::Intermediate,
    }
}

/// Maps `stat` in a receipt's text (SMPP 3.4 Appendix B) by its first letters, because some SMSCs
/// write DELIVERED.
fn state_of_word(word: &str) -> State {
    let begins =
        |with: &str| word.get(..with.len()).is_some_and(|head| head.eq_ignore_ascii_case(with));
    let number =
        [("DELIV", 2), ("EXPIR", 3), ("DELET", 4), ("UNDEL", 5), ("FAIL", 5), ("REJEC", 8)];
    let found = number.into_iter().find(|(with, _)| begins(with));
    found.map_or(State::Intermediate, |(_, state)| state_of_number(state))
}

/// The `key:value` pairs of a receipt's text, in any order and case.
struct Fields<'a>(&'a str);

impl<'a> Fields<'a> {
    /// Returns the value of `key`. The part after `text:` is an excerpt of the message, which may
    /// look like a key; it is searched only when the key does not occur before it.
    fn find(&self, key: &str) -> Option<&'a str> {
        let words = after(self.0, "text").unwrap_or(self.0.len());
        let head = self.0.get(..words).unwrap_or(self.0);
        value(head, key).or_else(|| value(self.0, key))
    }
}

fn value<'a>(text: &'a str, key: &str) -> Option<&'a str> {
    let rest = text.get(after(text, key)?..)?.trim_start_matches(' ');
    let word = rest.split(|c: char| c.is_whitespace() || matches!(c, ';' | ',')).next()?;
    // When the value is missing, the next word is the next key.
    let next_key = word
        .split_once([':', '='])
        .is_some_and(|(key, _)| KEYS.iter().any(|known| known.eq_ignore_ascii_case(key)));
    (!word.is_empty() && !next_key).then_some(word)
}

const KEYS: [&str; 8] = ["id", "sub", "dlvrd", "submit", "done", "stat", "err", "text"];

/// Returns the offset of the value of `key`: the key must be a whole word, followed by `:` or `=`.
fn after(text: &str, key: &str) -> Option<usize> {
    let bytes = text.as_bytes();
    let is_key = |at: &usize| {
        let end = at + key.len();
        let word = bytes.get(*at..end).is_some_and(|w| w.eq_ignore_ascii_case(key.as_bytes()));
        let alone = at
            .checked_sub(1)
            .and_then(|before| bytes.get(before))
            .is_none_or(|b| !b.is_ascii_alphanumeric() && *b != b'_');
        word && alone && matches!(bytes.get(end), Some(b':' | b'='))
    };
    (0..bytes.len()).find(is_key).map(|at| at + key.len() + 1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::smpp::body::{Address, Tlvs, put_tlv};
    use bytes::BytesMut;

    const ANN: Recipient = Recipient(447_700_900_123);

    fn receipt_of(text: &[u8], optional: &[u8]) -> DeliverSm {
        classify(&ShortMessage {
            source: Address { ton: 1, npi: 1, digits: b"+447700900123" },
            esm_class: esm::RECEIPT,
            text,
            optional: Tlvs(optional),
            ..ShortMessage::default()
        })
    }

    fn tlvs(all: &[(u16, &[u8])]) -> BytesMut {
        let mut out = BytesMut::new();
        for (tag, value) in all {
            put_tlv(&mut out, *tag, value);
        }
        out
    }

    fn delivered(id: &str) -> DeliverSm {
        ended(id, ReceiptOutcome::Delivered)
    }

    fn failed(id: &str, code: FailureCode, carrier_code: Option<&str>) -> DeliverSm {
        let carrier_code = carrier_code.map(str::to_owned);
        ended(id, ReceiptOutcome::Failed(Failure { code, carrier_code }))
    }

    fn ended(id: &str, outcome: ReceiptOutcome) -> DeliverSm {
        let smsc_id = id.to_owned();
        DeliverSm::Receipt(Receipt { smsc_id, recipient: ANN, destination: None, outcome })
    }

    #[test]
    fn swapped_addresses_are_recognized() {
        let swapped = |source: &'static str, destination: &'static str| {
            let address =
                |digits: &'static str| Address { ton: 1, npi: 1, digits: digits.as_bytes() };
            let message = ShortMessage {
                source: address(source),
                destination: address(destination),
                esm_class: esm::RECEIPT,
                text: b"id:1 stat:DELIVRD",
                ..ShortMessage::default()
            };
            match classify(&message) {
                DeliverSm::Receipt(r) => Some((r.recipient, r.destination)),
                _ => None,
            }
        };
        let other = Recipient(447_700_900_999);
        assert_eq!(swapped("Shop", "447700900123"), Some((ANN, Some(ANN))));
        assert_eq!(swapped("447700900999", "447700900123"), Some((other, Some(ANN))));
        assert_eq!(swapped("447700900123", "Shop"), Some((ANN, None)));
        assert_eq!(swapped("Shop", "Shop"), None);
    }

    #[test]
    fn receipt_texts_of_many_smscs_are_parsed() {
        use FailureCode::{BlockedByCarrier, Expired, Unknown, Unreachable};
        for (text, expected) in [
            (
                "id:0123456789 sub:001 dlvrd:001 submit date:2611200900 done date:2611200901 stat:DELIVRD err:000 text:Hello",
                delivered("0123456789"),
            ),
            // Order and case.
            ("STAT:DELIVRD ERR:000 ID:aB-3", delivered("aB-3")),
            ("Stat:delivrd Id:7f", delivered("7f")),
            // Long words, dates of 12 and 14 digits, everything else missing.
            (
                "id:1 submit date:261120090000 done date:20261120090000 stat:DELIVERED",
                delivered("1"),
            ),
            // Missing values.
            (
                "id:1 sub: dlvrd: submit date: done date: stat:UNDELIV err: text:",
                failed("1", Unreachable, None),
            ),
            // Spaces after the colon, equals signs, commas, line ends.
            ("id: 1 stat: EXPIRED err: 27", failed("1", Expired, Some("27"))),
            ("id=1,stat=DELETED,err=0A1", failed("1", Unknown, Some("0A1"))),
            ("id:1\r\nstat:REJECTD\r\nerr:005\r\n", failed("1", BlockedByCarrier, Some("005"))),
            ("id:1;stat:FAILED;err:9", failed("1", Unreachable, Some("9"))),
            // The excerpt of the message is not parsed, unless there is nothing else.
            ("id:1 stat:DELIVRD text:id:2 stat:UNDELIV", delivered("1")),
            ("text:hi id:1 stat:DELIVRD", delivered("1")),
            // A key is a whole word; an id may hold colons.
            ("msgid:9 id:urn:1 substat:X stat:DELIVRD", delivered("urn:1")),
            ("id:1 stat:DELIVRD err:\u{e9}", delivered("1")),
            // States that are not final.
            ("id:1 stat:ENROUTE", DeliverSm::Intermediate),
            ("id:1 stat:ACCEPTD err:000", DeliverSm::Intermediate),
            ("id:1 stat:UNKNOWN", DeliverSm::Intermediate),
            ("id:1 stat:BUFFERED", DeliverSm::Intermediate),
            // No id or no state.
            ("id:1", DeliverSm::Unreadable),
            ("stat:DELIVRD", DeliverSm::Unreadable),
            ("id: stat:DELIVRD", DeliverSm::Unreadable),
            ("", DeliverSm::Unreadable),
        ] {
            assert_eq!(receipt_of(text.as_bytes(), b""), expected, "{text}");
        }
    }

    #[test]
    fn optional_parameters_take_precedence() {
        use FailureCode::{BlockedByCarrier, Expired, Unknown, Unreachable};
        let text = b"id:1 stat:UNDELIV err:011";
        let id = (tag::RECEIPTED_MESSAGE_ID, &b"2\0"[..]);
        for (state, expected) in [
            (2, delivered("2")),
            (3, failed("2", Expired, Some("011"))),
            (4, failed("2", Unknown, Some("011"))),
            (5, failed("2", Unreachable, Some("011"))),
            (8, failed("2", BlockedByCarrier, Some("011"))),
            (0, DeliverSm::Intermediate),
            (1, DeliverSm::Intermediate),
            (6, DeliverSm::Intermediate),
            (7, DeliverSm::Intermediate),
            (9, DeliverSm::Intermediate),
            (255, DeliverSm::Intermediate),
        ] {
            let optional = tlvs(&[(tag::MESSAGE_STATE, &[state]), id]);
            assert_eq!(receipt_of(text, &optional), expected, "{state}");
        }
        // One of the parameters; an id without its NUL; a network error.
        let only_id = tlvs(&[(tag::RECEIPTED_MESSAGE_ID, b"3")]);
        assert_eq!(receipt_of(text, &only_id), failed("3", Unreachable, Some("011")));
        let only_state = tlvs(&[(tag::MESSAGE_STATE, &[2])]);
        assert_eq!(receipt_of(text, &only_state), delivered("1"));
        for (value, code) in [(&[3, 1, 4][..], "260"), (&[3, 0, 0], "011"), (&[3], "011")] {
            let optional = tlvs(&[(tag::NETWORK_ERROR_CODE, value)]);
            assert_eq!(receipt_of(text, &optional), failed("1", Unreachable, Some(code)));
        }
        // No text, and truncated or unknown parameters.
        let mut optional = tlvs(&[(0x1400, b"vendor"), id, (tag::MESSAGE_STATE, &[2])]);
        optional.extend_from_slice(&[0, 5, 0, 9, 1]);
        assert_eq!(receipt_of(b"", &optional), delivered("2"));
    }

    #[test]
    fn receipts_are_recognised_by_esm_class_or_message_id() {
        let text = b"id:1 stat:DELIVRD";
        let id = tlvs(&[(tag::RECEIPTED_MESSAGE_ID, b"1\0")]);
        let message = |esm_class, optional| ShortMessage {
            source: Address { ton: 1, npi: 1, digits: b"447700900123" },
            esm_class,
            text,
            optional: Tlvs(optional),
            ..ShortMessage::default()
        };
        for (esm_class, optional, expected) in [
            (0x04, &b""[..], delivered("1")),
            (0x44, b"", delivered("1")),
            (0x07, b"", delivered("1")),
            (0x00, &id[..], delivered("1")),
            (0x00, b"", DeliverSm::Message),
            (0x08, b"", DeliverSm::Message),
            (0x20, b"", DeliverSm::Intermediate),
            (0x20, &id[..], DeliverSm::Intermediate),
        ] {
            assert_eq!(classify(&message(esm_class, optional)), expected, "{esm_class:#x}");
        }
        let nobody = ShortMessage { source: Address::default(), ..message(0x04, b"") };
        assert_eq!(classify(&nobody), DeliverSm::Unreadable);
    }

    #[test]
    fn ucs2_receipts_are_parsed() {
        let text: Vec<u8> = b"id:1 stat:DELIVRD".iter().flat_map(|b| [0, *b]).collect();
        assert_eq!(receipt_of(&text, b""), delivered("1"));
    }
}
