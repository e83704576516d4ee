//! What a command_status in a submit_sm_resp means for the message.

use crate::smpp::command::status::{
    ESME_RDELIVERYFAILURE, ESME_RINVBNDSTS, ESME_RINVDSTADR, ESME_RINVSRCADR, ESME_RMSGQFUL,
    ESME_ROK, ESME_RPROHIBITED, ESME_RSUBMITFAIL, ESME_RSYSERR, ESME_RTHROTTLED, ESME_RUNKNOWNERR,
    ESME_RX_R_APPN, ESME_RX_T_APPN,
};
use heliograph_domain::message::{Failure, FailureCode};
use heliograph_domain::submission::Outcome;

/// The outcome of a submit_sm that was answered with `status` (SMPP 3.4 §5.1.3) and `smsc_id`.
pub fn outcome(status: u32, smsc_id: &[u8]) -> Outcome {
    match status {
        ESME_ROK => Outcome::Accepted { smsc_id: String::from_utf8_lossy(smsc_id).into_owned() },
        ESME_RTHROTTLED | ESME_RMSGQFUL => Outcome::Throttled,
        ESME_RSYSERR | ESME_RX_T_APPN => Outcome::Temporary { status },
        ESME_RSUBMITFAIL | ESME_RUNKNOWNERR => Outcome::Ambiguous { status },
        ESME_RINVBNDSTS => Outcome::NotSent,
        _ => Outcome::Refused(Failure {
            code: refusal(status),
            carrier_code: Some(format!("0x{status:08X}")),
        }),
    }
}

/// Only what the message itself can be blamed for gets a name of its own. Vendors' numbers (0x400 to
/// 0x4FF and above) mean something else at every SMSC.
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
    fn each_status_has_its_outcome() {
        let refused = |code, text: &str| {
            Outcome::Refused(Failure { code, carrier_code: Some(text.to_owned()) })
        };
        let accepted = Outcome::Accepted { smsc_id: "7".to_owned() };
        for (status, expected) in [
            (0x00, accepted),
            (0x58, Outcome::Throttled),
            (0x14, Outcome::Throttled),
            (0x08, Outcome::Temporary { status: 0x08 }),
            (0x64, Outcome::Temporary { status: 0x64 }),
            (0x45, Outcome::Ambiguous { status: 0x45 }),
            (0xFF, Outcome::Ambiguous { status: 0xFF }),
            (0x04, Outcome::NotSent),
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
