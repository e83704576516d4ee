//! A reply on its way back from a virtual handset, one part of it.

use crate::smpp::body::{ShortMessage, put_tlv};
use crate::smpp::command::{esm, id, tag};
use crate::smpp::pdu::{self, Head};
use crate::smsc::party::Party;
use bytes::BytesMut;
use heliograph_domain::text::{Segment, segments};

/// One part of what a handset's owner wrote.
#[derive(Clone, Debug)]
pub(crate) struct Reply {
    /// The handset.
    pub(crate) from: Party,
    /// The originator that it answers.
    pub(crate) to: Party,
    segment: Segment,
    label: Option<i64>,
}

impl Reply {
    /// All parts of `text`, named by `reference`; none when they would be too many.
    pub(crate) fn parts(
        from: Party,
        to: Party,
        text: &str,
        reference: u8,
        label: Option<i64>,
    ) -> Vec<Self> {
        let all = segments(text, reference).into_iter();
        all.map(|segment| Self { from, to, segment, label }).collect()
    }

    pub(crate) fn message(&self) -> ShortMessage<'_> {
        ShortMessage {
            source: self.from.address(),
            destination: self.to.address(),
            esm_class: match self.segment.udh {
                true => esm::UDH,
                false => 0,
            },
            data_coding: self.segment.encoding.data_coding(),
            text: &self.segment.octets,
            ..ShortMessage::default()
        }
    }

    /// Appends it as deliver_sm.
    pub(crate) fn put(&self, out: &mut BytesMut, sequence: u32) {
        pdu::put(out, Head::request(id::DELIVER_SM, sequence), |out| {
            self.message().encode(out);
            if let Some(label) = self.label {
                put_tlv(out, tag::LABEL, &label.to_be_bytes());
            }
        });
    }
}
