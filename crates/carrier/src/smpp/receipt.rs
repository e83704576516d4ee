//! Delivery receipts out of deliver_sm: optional parameters first, else tolerant text.

use crate::smpp::body::{ShortMessage, leading_text};
use crate::smpp::command::{esm, tag};
use heliograph_domain::message::{Failure, FailureCode};
use heliograph_domain::phone::Recipient;
use heliograph_domain::receipt::{Receipt, Verdict};
use std::borrow::Cow;

/// What a deliver_sm turned out to be.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Delivery {
    /// The last word on a part.
    Receipt(Receipt),
    /// Not the last word (SMPP 3.4 §5.2.28: ENROUTE, ACCEPTED, UNKNOWN), or an intermediate
    /// notification: to be acknowledged and forgotten.
    Passing,
    /// A receipt that names no message or no verdict: to be acknowledged, since it would be no
    /// better the second time, and logged.
    Unreadable,
    /// Something that a person sent.
    Message,
}

/// Reads a deliver_sm.
pub fn read(message: &ShortMessage<'_>) -> Delivery {
    match message.esm_class & esm::TYPE {
        esm::INTERMEDIATE => return Delivery::Passing,
        esm::RECEIPT => {}
        _ if message.optional.get(tag::RECEIPTED_MESSAGE_ID).is_some() => {}
        _ => return Delivery::Message,
    }
    let text = plain(message.text);
    let fields = Fields(&text);
    match state(message, &fields) {
        State::Passing => Delivery::Passing,
        State::Missing => Delivery::Unreadable,
        State::Delivered => finish(message, &fields, Verdict::Delivered),
        State::Failed(code) => {
            let failure = Failure {
                code,
                carrier_code: network_error(message)
                    .or_else(|| fields.find("err").map(str::to_owned)),
            };
            finish(message, &fields, Verdict::Failed(failure))
        }
    }
}

fn finish(message: &ShortMessage<'_>, fields: &Fields<'_>, verdict: Verdict) -> Delivery {
    let id = message.optional.get(tag::RECEIPTED_MESSAGE_ID);
    let id = id.map(leading_text).filter(|id| !id.is_empty());
    let id = match id {
        Some(id) => Some(String::from_utf8_lossy(id).into_owned()),
        None => fields.find("id").map(str::to_owned),
    };
    match (id, number(message.source.digits)) {
        (Some(smsc_id), Some(recipient)) => {
            Delivery::Receipt(Receipt { smsc_id, recipient, verdict })
        }
        _ => Delivery::Unreadable,
    }
}

fn number(digits: &[u8]) -> Option<Recipient> {
    Recipient::from_digits(std::str::from_utf8(digits).ok()?)
}

/// The text as ASCII: a receipt in UCS-2 is the same text with a zero before each letter.
fn plain(text: &[u8]) -> Cow<'_, str> {
    if text.contains(&0) {
        let letters: Vec<u8> = text.iter().copied().filter(|b| *b != 0).collect();
        return Cow::Owned(String::from_utf8_lossy(&letters).into_owned());
    }
    String::from_utf8_lossy(text)
}

/// The network's own error (§5.3.2.31): the code behind the octet of network type. Zero says nothing.
fn network_error(message: &ShortMessage<'_>) -> Option<String> {
    let value = message.optional.get(tag::NETWORK_ERROR_CODE)?;
    let [_, high, low] = *value.first_chunk::<3>()?;
    let code = u16::from_be_bytes([high, low]);
    (code != 0).then(|| code.to_string())
}

enum State {
    Delivered,
    Failed(FailureCode),
    Passing,
    Missing,
}

fn state(message: &ShortMessage<'_>, fields: &Fields<'_>) -> State {
    match message.optional.get(tag::MESSAGE_STATE) {
        Some([state, ..]) => state_of_number(*state),
        _ => fields.find("stat").map_or(State::Missing, state_of_word),
    }
}

/// message_state (§5.2.28).
fn state_of_number(state: u8) -> State {
    match state {
        2 => State::Delivered,
        3 => State::Failed(FailureCode::Expired),
        4 => State::Failed(FailureCode::Unknown),
        5 => State::Failed(FailureCode::Unreachable),
        8 => State::Failed(FailureCode::BlockedByCarrier),
        _ => State::Passing,
    }
}

/// `stat` in a receipt's text (Appendix B), by its first letters: some SMSCs write DELIVERED.
fn state_of_word(word: &str) -> State {
    let begins =
        |with: &str| word.get(..with.len()).is_some_and(|head| head.eq_ignore_ascii_case(with));
    let number =
        [("DELIV", 2), ("EXPIR", 3), ("DELET", 4), ("UNDEL", 5), ("FAIL", 5), ("REJEC", 8)];
    let found = number.into_iter().find(|(with, _)| begins(with));
    found.map_or(State::Passing, |(_, state)| state_of_number(state))
}

/// The `key:value` pairs of a receipt's text, in any order and case.
struct Fields<'a>(&'a str);

impl<'a> Fields<'a> {
    /// The value of `key`. What stands behind `text:` is a person's words, which may look like a
    /// key; it is only searched when there is nothing before it.
    fn find(&self, key: &str) -> Option<&'a str> {
        let words = after(self.0, "text").unwrap_or(self.0.len());
        let head = self.0.get(..words).unwrap_or(self.0);
        value(head, key).or_else(|| value(self.0, key))
    }
}

fn value<'a>(text: &'a str, key: &str) -> Option<&'a str> {
    let rest = text.get(after(text, key)?..)?.trim_start_matches(' ');
    let word = rest.split(|c: char| c.is_whitespace() || matches!(c, ';' | ',')).next()?;
    // When the value was left out, the next key stands in its place.
    let next_key = word
        .split_once([':', '='])
        .is_some_and(|(key, _)| KEYS.iter().any(|known| known.eq_ignore_ascii_case(key)));
    (!word.is_empty() && !next_key).then_some(word)
}

const KEYS: [&str; 8] = ["id", "sub", "dlvrd", "submit", "done", "stat", "err", "text"];

/// Where the value of `key` begins: the key as a whole word, with `:` or `=` behind it.
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

    fn receipt_of(text: &[u8], optional: &[u8]) -> Delivery {
        read(&ShortMessage {
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

    fn delivered(id: &str) -> Delivery {
        ended(id, Verdict::Delivered)
    }

    fn failed(id: &str, code: FailureCode, carrier_code: Option<&str>) -> Delivery {
        let carrier_code = carrier_code.map(str::to_owned);
        ended(id, Verdict::Failed(Failure { code, carrier_code }))
    }

    fn ended(id: &str, verdict: Verdict) -> Delivery {
        let smsc_id = id.to_owned();
        Delivery::Receipt(Receipt { smsc_id, recipient: ANN, verdict })
    }

    #[test]
    fn texts_in_many_dialects() {
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
            // A value left out.
            (
                "id:1 sub: dlvrd: submit date: done date: stat:UNDELIV err: text:",
                failed("1", Unreachable, None),
            ),
            // Spaces behind the colon, equals signs, commas, line ends.
            ("id: 1 stat: EXPIRED err: 27", failed("1", Expired, Some("27"))),
            ("id=1,stat=DELETED,err=0A1", failed("1", Unknown, Some("0A1"))),
            ("id:1\r\nstat:REJECTD\r\nerr:005\r\n", failed("1", BlockedByCarrier, Some("005"))),
            ("id:1;stat:FAILED;err:9", failed("1", Unreachable, Some("9"))),
            // What a person wrote is not taken for a key, unless there is nothing else.
            ("id:1 stat:DELIVRD text:id:2 stat:UNDELIV", delivered("1")),
            ("text:hi id:1 stat:DELIVRD", delivered("1")),
            // A key is a whole word; an id may hold colons.
            ("msgid:9 id:urn:1 substat:X stat:DELIVRD", delivered("urn:1")),
            ("id:1 stat:DELIVRD err:\u{e9}", delivered("1")),
            // Not the last word.
            ("id:1 stat:ENROUTE", Delivery::Passing),
            ("id:1 stat:ACCEPTD err:000", Delivery::Passing),
            ("id:1 stat:UNKNOWN", Delivery::Passing),
            ("id:1 stat:BUFFERED", Delivery::Passing),
            // Nothing to go by.
            ("id:1", Delivery::Unreadable),
            ("stat:DELIVRD", Delivery::Unreadable),
            ("id: stat:DELIVRD", Delivery::Unreadable),
            ("", Delivery::Unreadable),
        ] {
            assert_eq!(receipt_of(text.as_bytes(), b""), expected, "{text}");
        }
    }

    #[test]
    fn optional_parameters_come_first() {
        use FailureCode::{BlockedByCarrier, Expired, Unknown, Unreachable};
        let text = b"id:1 stat:UNDELIV err:011";
        let id = (tag::RECEIPTED_MESSAGE_ID, &b"2\0"[..]);
        for (state, expected) in [
            (2, delivered("2")),
            (3, failed("2", Expired, Some("011"))),
            (4, failed("2", Unknown, Some("011"))),
            (5, failed("2", Unreachable, Some("011"))),
            (8, failed("2", BlockedByCarrier, Some("011"))),
            (0, Delivery::Passing),
            (1, Delivery::Passing),
            (6, Delivery::Passing),
            (7, Delivery::Passing),
            (9, Delivery::Passing),
            (255, Delivery::Passing),
        ] {
            let optional = tlvs(&[(tag::MESSAGE_STATE, &[state]), id]);
            assert_eq!(receipt_of(text, &optional), expected, "{state}");
        }
        // Each on its own; an id without its NUL; a network error.
        let only_id = tlvs(&[(tag::RECEIPTED_MESSAGE_ID, b"3")]);
        assert_eq!(receipt_of(text, &only_id), failed("3", Unreachable, Some("011")));
        let only_state = tlvs(&[(tag::MESSAGE_STATE, &[2])]);
        assert_eq!(receipt_of(text, &only_state), delivered("1"));
        for (value, code) in [(&[3, 1, 4][..], "260"), (&[3, 0, 0], "011"), (&[3], "011")] {
            let optional = tlvs(&[(tag::NETWORK_ERROR_CODE, value)]);
            assert_eq!(receipt_of(text, &optional), failed("1", Unreachable, Some(code)));
        }
        // Without any text, and with parameters that are cut short or unknown.
        let mut optional = tlvs(&[(0x1400, b"vendor"), id, (tag::MESSAGE_STATE, &[2])]);
        optional.extend_from_slice(&[0, 5, 0, 9, 1]);
        assert_eq!(receipt_of(b"", &optional), delivered("2"));
    }

    #[test]
    fn what_counts_as_a_receipt() {
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
            (0x00, b"", Delivery::Message),
            (0x08, b"", Delivery::Message),
            (0x20, b"", Delivery::Passing),
            (0x20, &id[..], Delivery::Passing),
        ] {
            assert_eq!(read(&message(esm_class, optional)), expected, "{esm_class:#x}");
        }
        let nobody = ShortMessage { source: Address::default(), ..message(0x04, b"") };
        assert_eq!(read(&nobody), Delivery::Unreadable);
    }

    #[test]
    fn ucs2_text_is_read_like_any_other() {
        let text: Vec<u8> = b"id:1 stat:DELIVRD".iter().flat_map(|b| [0, *b]).collect();
        assert_eq!(receipt_of(&text, b""), delivered("1"));
    }
}
