//! A submission as submit_sm.

use crate::smpp::body::{Address, ShortMessage, put_tlv};
use crate::smpp::command::{esm, id, tag};
use crate::smpp::pdu::{self, Head};
use bytes::BytesMut;
use heliograph_domain::originator::OriginatorKind;
use heliograph_domain::submission::Submission;
use std::io::Write;
use std::time::Duration;

/// Appends `submission` to `out`. Every part asks for a receipt of its final outcome.
pub(crate) fn put(out: &mut BytesMut, sequence: u32, submission: &Submission, labelled: bool) {
    let mut digits = [0; 20];
    let digits = print(&mut digits, format_args!("{}", submission.recipient));
    let mut period = [0; 16];
    let (ton, npi) = kind(submission.originator.kind());
    let message = ShortMessage {
        source: Address { ton, npi, digits: submission.originator.as_str().as_bytes() },
        destination: Address { ton: 1, npi: 1, digits },
        esm_class: match submission.segment.udh {
            true => esm::UDH,
            false => 0,
        },
        validity: validity(&mut period, submission.validity),
        registered_delivery: 1,
        data_coding: submission.segment.encoding.data_coding(),
        text: &submission.segment.octets,
        ..ShortMessage::default()
    };
    pdu::put(out, Head::request(id::SUBMIT_SM, sequence), |out| {
        message.encode(out);
        if labelled {
            put_tlv(out, tag::LABEL, &submission.label.to_be_bytes());
        }
    });
}

/// Type of number and numbering plan (SMPP 3.4 §5.2.5, §5.2.6).
pub(crate) const fn kind(originator: OriginatorKind) -> (u8, u8) {
    match originator {
        OriginatorKind::Alphanumeric => (5, 0),
        OriginatorKind::ShortCode => (3, 0),
        OriginatorKind::International => (1, 1),
    }
}

/// validity_period as a span (§7.1.1.2): `YYMMDDhhmmsstnnR`, in whole seconds, at least one. Spans
/// of more than 31 days can't be written without guessing how long a month is: they are left to the
/// SMSC.
fn validity(place: &mut [u8; 16], span: Duration) -> &[u8] {
    let seconds = span.as_secs().max(1);
    let (days, rest) = (seconds / 86_400, seconds % 86_400);
    if days > 31 {
        return &[];
    }
    let (h, m, s) = (rest / 3_600, rest / 60 % 60, rest % 60);
    print(place, format_args!("0000{days:02}{h:02}{m:02}{s:02}000R"))
}

/// Prints into `place` without allocating; what does not fit is cut off.
fn print<'a>(place: &'a mut [u8], text: std::fmt::Arguments<'_>) -> &'a [u8] {
    let room = place.len();
    let mut rest = &mut *place;
    let cut = rest.write_fmt(text).is_err();
    let used = match cut {
        true => room,
        false => room - rest.len(),
    };
    place.get(..used).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_span_is_written_as_smpp_wants_it() {
        for (seconds, expected) in [
            (172_800, "000002000000000R"),
            (259_199, "000002235959000R"),
            (60, "000000000100000R"),
            (0, "000000000001000R"),
            (31 * 86_400, "000031000000000R"),
            (32 * 86_400, ""),
            (u64::MAX, ""),
        ] {
            let mut place = [0; 16];
            let span = validity(&mut place, Duration::from_secs(seconds));
            assert_eq!(span, expected.as_bytes(), "{seconds}");
        }
    }
}
