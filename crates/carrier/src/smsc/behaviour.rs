//! The behaviour of virtual handsets, selected by the last four digits of the destination.

use crate::smpp::command::status;
use std::time::Duration;

/// The receipt delay of a slow handset.
const SLOW: Duration = Duration::from_secs(30);

/// The treatment of messages to one destination.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Behaviour {
    /// The command_status that refuses the submit_sm, if any.
    pub(crate) refusal: Option<u32>,
    /// True when the first submit_sm is throttled.
    pub(crate) throttles: bool,
    /// The state in the receipt.
    pub(crate) state: FinalState,
    /// The number of receipts.
    pub(crate) receipts: u8,
    /// The time of the receipts.
    pub(crate) timing: ReceiptTiming,
    /// The text of the automatic reply to each message, if any.
    pub(crate) auto_reply: Option<&'static str>,
}

/// The time when a receipt is sent.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum ReceiptTiming {
    /// After the configured delay.
    Usual,
    /// After this delay.
    After(Duration),
    /// Before the submit_sm_resp.
    Early,
}

/// The final state of a message.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum FinalState {
    Delivered,
    Expired,
    Undeliverable,
}

impl FinalState {
    /// Returns message_state (SMPP 3.4 §5.2.28), `stat` and `err` (Appendix B).
    pub(crate) const fn receipt_codes(self) -> (u8, &'static str, &'static str) {
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
        state: FinalState::Delivered,
        receipts: 1,
        timing: ReceiptTiming::Usual,
        auto_reply: None,
    };

    /// Returns the behaviour of the handset with this number.
    pub(crate) fn for_number(number: &[u8]) -> Self {
        let usual = Self::DELIVERS;
        match number.last_chunk::<4>() {
            Some(b"0001") => Self { state: FinalState::Undeliverable, ..usual },
            Some(b"0002") => Self { state: FinalState::Expired, ..usual },
            Some(b"0003") => Self { refusal: Some(status::ESME_RINVDSTADR), ..usual },
            Some(b"0004") => Self { throttles: true, ..usual },
            Some(b"0005") => Self { timing: ReceiptTiming::After(SLOW), ..usual },
            Some(b"0006") => Self { receipts: 0, ..usual },
            Some(b"0007") => Self { timing: ReceiptTiming::Early, ..usual },
            Some(b"0008") => Self { receipts: 2, ..usual },
            Some(b"0009") => Self { auto_reply: Some("STOP"), ..usual },
            _ => usual,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// README.md, docs/commands.md and `heliograph smsc --help` list these suffixes.
    #[test]
    fn nine_suffixes_select_a_behaviour() {
        for suffix in 0..10_000 {
            let behaviour = Behaviour::for_number(format!("44770090{suffix:04}").as_bytes());
            assert_eq!(behaviour != Behaviour::DELIVERS, (1..=9).contains(&suffix), "{suffix}");
        }
    }

    #[test]
    fn only_complete_suffixes_select_a_behaviour() {
        for number in ["15550000000", "1001", "15550000021", "15550000010001x", "", "1"] {
            assert_eq!(Behaviour::for_number(number.as_bytes()), Behaviour::DELIVERS, "{number}");
        }
        assert_eq!(Behaviour::for_number(b"15550000009").auto_reply, Some("STOP"));
        let slow = Behaviour::for_number(b"447700900005");
        assert_eq!(slow.timing, ReceiptTiming::After(Duration::from_secs(30)));
        assert_eq!(Behaviour::for_number(b"0003").refusal, Some(0x0B));
    }
}
