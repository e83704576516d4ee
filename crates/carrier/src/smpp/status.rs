//! Maps the command_status of a submit_sm_resp to the outcome of the submission.

use crate::smpp::command::status::{
    ESME_RDELIVERYFAILURE, ESME_RINVBNDSTS, ESME_RINVDSTADR, ESME_RINVSRCADR, ESME_RMSGQFUL,
    ESME_ROK, ESME_RPROHIBITED, ESME_RSUBMITFAIL, ESME_RSYSERR, ESME_RTHROTTLED, ESME_RUNKNOWNERR,
    ESME_RX_R_APPN, ESME_RX_T_APPN,
};
use heliograph_domain::message::{Failure, FailureCode};
use heliograph_domain::submission::SubmitOutcome;

/// Returns the outcome of a submit_sm whose response has `status` (SMPP 3.4 §5.1.3) and the
/// message_id `smsc_id`.
pub fn outcome(status: u32, smsc_id: &[u8]) -> SubmitOutcome {
    match status {
        ESME_ROK => {
            SubmitOutcome::Accepted { smsc_id: String::from_utf8_lossy(smsc_id).into_owned() }
        }
        ESME_RTHROTTLED | ESME_RMSGQFUL => SubmitOutcome::Throttled,
        ESME_RSYSERR | ESME_RX_T_APPN => SubmitOutcome::Temporary { status },
        ESME_RSUBMITFAIL | ESME_RUNKNOWNERR => SubmitOutcome::Ambiguous { status },
        ESME_RINVBNDSTS => SubmitOutcome::NotSent,
        _ => SubmitOutcome::Refused(Failure {
            code: refusal(status),
            carrier_code: Some(format!("0x{status:08X}")),
        }),
    }
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
            (0x64, SubmitOutcome::Temporary { status: 0x64 }),
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
            (0xFE, refused(FailureCode::Unreachable, "0x000000FE")),
            (0x101, refused(FailureCode::BlockedByCarrier, "0x00000101")),
            (0x401, refused(FailureCode::Unknown, "0x00000401")),
            (u32::MAX, refused(FailureCode::Unknown, "0xFFFFFFFF")),
        ] {
            assert_eq!(outcome(status, b"7"), expected, "{status:#x}");
        }
    }
}
