//! Encodes a submission as submit_sm (SMPP 3.4 §4.4.1).

use crate::smpp::body::{Address, ShortMessage, put_tlv};
use crate::smpp::command::{esm, id, tag};
use crate::smpp::options::SmppOptions;
use crate::smpp::pdu::{self, PduHeader};
use bytes::BytesMut;
use heliograph_domain::carrier::ReceiptPolicy;
use heliograph_domain::originator::OriginatorKind;
use heliograph_domain::submission::Submission;
use std::io::Write;
use std::time::Duration;

/// Appends `submission` to `out`. Every part requests a receipt for its final state (§5.2.17), if the
/// SMSC sends any.
pub(crate) fn put(
    out: &mut BytesMut,
    sequence: u32,
    submission: &Submission,
    options: &SmppOptions,
) {
    let mut digits = [0; 20];
    let digits = print(&mut digits, format_args!("{}", submission.recipient));
    let mut period = [0; 16];
    let (ton, npi) = ton_npi(submission.originator.kind());
    let message = ShortMessage {
        source: Address { ton, npi, digits: submission.originator.as_str().as_bytes() },
        destination: Address { ton: 1, npi: 1, digits },
        esm_class: match submission.segment.udh {
            true => esm::UDH,
            false => 0,
        },
        validity: validity(&mut period, submission.validity),
        registered_delivery: u8::from(options.receipts != ReceiptPolicy::None),
        data_coding: submission.segment.encoding.data_coding(),
        text: &submission.segment.octets,
        ..ShortMessage::default()
    };
    pdu::put(out, PduHeader::request(id::SUBMIT_SM, sequence), |out| {
        message.encode(out);
        if options.labelled {
            put_tlv(out, tag::LABEL, &submission.label.to_be_bytes());
        }
    });
}

/// Returns the type of number and the numbering plan (SMPP 3.4 §5.2.5, §5.2.6).
pub(crate) const fn ton_npi(originator: OriginatorKind) -> (u8, u8) {
    match originator {
        OriginatorKind::Alphanumeric => (5, 0),
        OriginatorKind::ShortCode => (3, 0),
        OriginatorKind::International => (1, 1),
    }
}

/// Encodes validity_period in the relative format (SMPP 3.4 §7.1.1.2): `YYMMDDhhmmsstnnR`, in whole
/// seconds, at least one. A period of more than 31 days depends on the length of a month; the field
/// is left empty then, so that the SMSC applies its default.
fn validity(buffer: &mut [u8; 16], period: Duration) -> &[u8] {
    let seconds = period.as_secs().max(1);
    let (days, rest) = (seconds / 86_400, seconds % 86_400);
    if days > 31 {
        return &[];
    }
    let (h, m, s) = (rest / 3_600, rest / 60 % 60, rest % 60);
    print(buffer, format_args!("0000{days:02}{h:02}{m:02}{s:02}000R"))
}

/// Formats into `buffer` without allocating; truncates what does not fit.
fn print<'a>(buffer: &'a mut [u8], text: std::fmt::Arguments<'_>) -> &'a [u8] {
    let room = buffer.len();
    let mut rest = &mut *buffer;
    let cut = rest.write_fmt(text).is_err();
    let used = match cut {
        true => room,
        false => room - rest.len(),
    };
    buffer.get(..used).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn validity_period_uses_the_relative_format() {
        for (seconds, expected) in [
            (172_800, "000002000000000R"),
            (259_199, "000002235959000R"),
            (60, "000000000100000R"),
            (0, "000000000001000R"),
            (31 * 86_400, "000031000000000R"),
            (32 * 86_400, ""),
            (u64::MAX, ""),
        ] {
            let mut buffer = [0; 16];
            let encoded = validity(&mut buffer, Duration::from_secs(seconds));
            assert_eq!(encoded, expected.as_bytes(), "{seconds}");
        }
    }
}
