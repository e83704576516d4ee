//! What becomes of a message: chosen by the last digits of the number that it is for.

use crate::smpp::command::status;
use std::time::Duration;

/// How long the receipt of a slow handset takes.
const SLOW: Duration = Duration::from_secs(30);

/// What a destination does with a message.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Behaviour {
    /// The submit is answered with this status.
    pub(crate) refusal: Option<u32>,
    /// The first submit to it is throttled.
    pub(crate) throttles: bool,
    /// What its receipt says.
    pub(crate) state: State,
    /// How many receipts there are.
    pub(crate) receipts: u8,
    /// When they come.
    pub(crate) timing: Timing,
    /// What its owner answers to each message.
    pub(crate) answer: Option<&'static str>,
}

/// When a receipt comes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Timing {
    /// After the usual delay.
    Usual,
    /// After this one.
    After(Duration),
    /// Before the submit is answered.
    Early,
}

/// How a message ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum State {
    Delivered,
    Expired,
    Undeliverable,
}

impl State {
    /// message_state (SMPP 3.4 §5.2.28), `stat` and `err` (Appendix B).
    pub(crate) const fn words(self) -> (u8, &'static str, &'static str) {
        match self {
            Self::Delivered => (2, "DELIVRD", "000"),
            Self::Expired => (3, "EXPIRED", "027"),
            Self::Undeliverable => (5, "UNDELIV", "011"),
        }
    }
}

impl Behaviour {
    const DELIVERS: Self = Self {
        refusal: None,
        throttles: false,
        state: State::Delivered,
        receipts: 1,
        timing: Timing::Usual,
        answer: None,
    };

    /// Of the handset with this number.
    pub(crate) fn of(number: &[u8]) -> Self {
        let usual = Self::DELIVERS;
        match number.last_chunk::<4>() {
            Some(b"0001") => Self { state: State::Undeliverable, ..usual },
            Some(b"0002") => Self { state: State::Expired, ..usual },
            Some(b"0003") => Self { refusal: Some(status::ESME_RINVDSTADR), ..usual },
            Some(b"0004") => Self { throttles: true, ..usual },
            Some(b"0005") => Self { timing: Timing::After(SLOW), ..usual },
            Some(b"0006") => Self { receipts: 0, ..usual },
            Some(b"0007") => Self { timing: Timing::Early, ..usual },
            Some(b"0008") => Self { receipts: 2, ..usual },
            Some(b"0009") => Self { answer: Some("STOP"), ..usual },
            _ => usual,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_whole_endings_count() {
        for number in ["15550000000", "1001", "15550000021", "15550000010001x", "", "1"] {
            assert_eq!(Behaviour::of(number.as_bytes()), Behaviour::DELIVERS, "{number}");
        }
        assert_eq!(Behaviour::of(b"15550000009").answer, Some("STOP"));
        let slow = Behaviour::of(b"447700900005");
        assert_eq!(slow.timing, Timing::After(Duration::from_secs(30)));
        assert_eq!(Behaviour::of(b"0003").refusal, Some(0x0B));
    }
}
