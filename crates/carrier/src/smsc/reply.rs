//! The replies of virtual handsets.

use crate::smpp::body::{ShortMessage, put_tlv};
use crate::smpp::command::{esm, id, tag};
use crate::smpp::pdu::{self, PduHeader};
use crate::smsc::address::StoredAddress;
use bytes::BytesMut;
use heliograph_domain::text::{Segment, segments};

/// One part of a reply.
#[derive(Clone, Debug)]
pub(crate) struct ReplyPart {
    /// The handset.
    pub(crate) from: StoredAddress,
    /// The originator that it answers.
    pub(crate) to: StoredAddress,
    segment: Segment,
    label: Option<i64>,
}

impl ReplyPart {
    /// Splits `text` into parts with the given concatenation reference. Returns no parts when there
    /// would be more than 255.
    pub(crate) fn parts(
        from: StoredAddress,
        to: StoredAddress,
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

    /// Appends the part as deliver_sm.
    pub(crate) fn put(&self, out: &mut BytesMut, sequence: u32) {
        pdu::put(out, PduHeader::request(id::DELIVER_SM, sequence), |out| {
            self.message().encode(out);
            if let Some(label) = self.label {
                put_tlv(out, tag::LABEL, &label.to_be_bytes());
            }
        });
    }
}
