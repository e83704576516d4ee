//! Maps the command_status of a submit_sm_resp to the outcome of the submission.

use crate::smpp::command::status::{
    ESME_RDELIVERYFAILURE, ESME_RINVBNDSTS, ESME_RINVDSTADR, ESME_RINVSCHED, ESME_RINVSRCADR,
    ESME_RMSGQFUL, ESME_ROK, ESME_RPROHIBITED, ESME_RSUBMITFAIL, ESME_RSYSERR, ESME_RTHROTTLED,
    ESME_RUNKNOWNERR, ESME_RX_R_APPN, ESME_RX_T_APPN,
};
use heliograph_domain::message::{Failure, FailureCode};
use heliograph_domain::submission::SubmitOutcome;
use std::collections::BTreeMap;

/// The meaning that the configuration of a carrier gives to a status.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum StatusMeaning {
    /// A later attempt may succeed.
    Temporary,
    /// The message fails.
    Permanent,
    /// The link is throttled; the message is not the cause.
    Throttled,
}

/// The statuses whose meaning the configuration of a carrier changes.
pub type StatusMap = BTreeMap<u32, StatusMeaning>;

/// Returns the outcome of a submit_sm whose response has `status` (SMPP 3.4 §5.1.3) and the
/// message_id `smsc_id`.
pub fn outcome(map: &StatusMap, status: u32, smsc_id: &[u8]) -> SubmitOutcome {
    // The protocol depends on these two, which no configuration can change.
    match status {
        ESME_ROK => {
            let smsc_id = String::from_utf8_lossy(smsc_id).into_owned();
            return SubmitOutcome::Accepted { smsc_id };
        }
        ESME_RINVBNDSTS => return SubmitOutcome::NotSent,
        _ => {}
    }
    match map.get(&status) {
        Some(StatusMeaning::Temporary) => return SubmitOutcome::Temporary { status },
        Some(StatusMeaning::Throttled) => return SubmitOutcome::Throttled,
        Some(StatusMeaning::Permanent) => return refused(status),
        None => {}
    }
    match status {
        ESME_RTHROTTLED | ESME_RMSGQFUL => SubmitOutcome::Throttled,
        ESME_RSYSERR | ESME_RX_T_APPN | ESME_RINVSCHED | ESME_RDELIVERYFAILURE => {
            SubmitOutcome::Temporary { status }
        }
        ESME_RSUBMITFAIL | ESME_RUNKNOWNERR => SubmitOutcome::Ambiguous { status },
        _ => refused(status),
    }
}

/// Returns the outcome of a submit_sm that was answered with generic_nack (SMPP 3.4 §4.3.1). The
/// SMSC did not understand the PDU, or lost track of it: unless the status is a clear refusal, it
/// may have accepted the message.
pub fn nack_outcome(map: &StatusMap, status: u32) -> SubmitOutcome {
    match outcome(map, status, b"") {
        SubmitOutcome::Accepted { .. } => SubmitOutcome::Ambiguous { status: ESME_RUNKNOWNERR },
        SubmitOutcome::Temporary { status } => SubmitOutcome::Ambiguous { status },
        other => other,
    }
}

fn refused(status: u32) -> SubmitOutcome {
    SubmitOutcome::Refused(Failure {
        code: refusal(status),
        carrier_code: Some(format!("0x{status:08X}")),
    })
}

/// Returns the failure code of a refused submission. Only errors of the message itself have a
/// specific code. Vendor-specific statuses (0x400 to 0x4FF and above) differ between SMSCs.
fn refusal(status: u32) -> FailureCode {
    match status {
        ESME_RINVSRCADR | 0x48 | 0x49 => FailureCode::RejectedSender,
        ESME_RINVDSTADR | 0x50 | 0x51 => FailureCode::InvalidRecipient,
        ESME_RX_R_APPN | ESME_RPROHIBITED => FailureCode::BlockedByCarrier,
        ESME_RDELIVERYFAILURE => FailureCode::Unreachable,
        0..=0x3FF => FailureCode::CarrierError,
        _ => FailureCode::Unknown,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statuses_map_to_outcomes() {
        let refused = |code, text: &str| {
            SubmitOutcome::Refused(Failure { code, carrier_code: Some(text.to_owned()) })
        };
        let accepted = SubmitOutcome::Accepted { smsc_id: "7".to_owned() };
        for (status, expected) in [
            (0x00, accepted),
            (0x58, SubmitOutcome::Throttled),
            (0x14, SubmitOutcome::Throttled),
            (0x08, SubmitOutcome::Temporary { status: 0x08 }),
            (0x61, SubmitOutcome::Temporary { status: 0x61 }),
            (0x64, SubmitOutcome::Temporary { status: 0x64 }),
            (0xFE, SubmitOutcome::Temporary { status: 0xFE }),
            (0x45, SubmitOutcome::Ambiguous { status: 0x45 }),
            (0xFF, SubmitOutcome::Ambiguous { status: 0xFF }),
            (0x04, SubmitOutcome::NotSent),
            (0x01, refused(FailureCode::CarrierError, "0x00000001")),
            (0x0A, refused(FailureCode::RejectedSender, "0x0000000A")),
            (0x0B, refused(FailureCode::InvalidRecipient, "0x0000000B")),
            (0x3D, refused(FailureCode::CarrierError, "0x0000003D")),
            (0x48, refused(FailureCode::RejectedSender, "0x00000048")),
            (0x51, refused(FailureCode::InvalidRecipient, "0x00000051")),
            (0x65, refused(FailureCode::CarrierError, "0x00000065")),
            (0x66, refused(FailureCode::BlockedByCarrier, "0x00000066")),
            (0x101, refused(FailureCode::BlockedByCarrier, "0x00000101")),
            (0x401, refused(FailureCode::Unknown, "0x00000401")),
            (u32::MAX, refused(FailureCode::Unknown, "0xFFFFFFFF")),
        ] {
            assert_eq!(outcome(&StatusMap::new(), status, b"7"), expected, "{status:#x}");
        }
    }
    #[test]
    fn a_map_changes_the_meaning_of_a_status() {
        let map = StatusMap::from([
            (0x401, StatusMeaning::Temporary),
            (0x402, StatusMeaning::Throttled),
            (0xFE, StatusMeaning::Permanent),
            (0x45, StatusMeaning::Permanent),
            (0x00, StatusMeaning::Permanent),
            (0x04, StatusMeaning::Permanent),
        ]);
        let refused = |code, text: &str| {
            SubmitOutcome::Refused(Failure { code, carrier_code: Some(text.to_owned()) })
        };
        for (status, expected) in [
            (0x401, SubmitOutcome::Temporary { status: 0x401 }),
            (0x402, SubmitOutcome::Throttled),
            (0xFE, refused(FailureCode::Unreachable, "0x000000FE")),
            (0x45, refused(FailureCode::CarrierError, "0x00000045")),
            (0x08, SubmitOutcome::Temporary { status: 0x08 }),
            (0x00, SubmitOutcome::Accepted { smsc_id: "7".to_owned() }),
            (0x04, SubmitOutcome::NotSent),
        ] {
            assert_eq!(outcome(&map, status, b"7"), expected, "{status:#x}");
        }
    }

    #[test]
    fn generic_nack_is_ambiguous_unless_it_refuses() {
        for (status, expected) in [
            (0x00, SubmitOutcome::Ambiguous { status: 0xFF }),
            (0x08, SubmitOutcome::Ambiguous { status: 0x08 }),
            (0x45, SubmitOutcome::Ambiguous { status: 0x45 }),
            (0x58, SubmitOutcome::Throttled),
            (0x02, refused(0x02)),
        ] {
            assert_eq!(nack_outcome(&StatusMap::new(), status), expected, "{status:#x}");
        }
    }
}
