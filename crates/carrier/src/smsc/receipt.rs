//! The delivery receipts of the simulated SMSC.

use crate::smpp::body::{ShortMessage, put_tlv};
use crate::smpp::command::{esm, id, tag};
use crate::smpp::pdu::{self, PduHeader};
use crate::smsc::address::{FixedText, StoredAddress, ascii};
use crate::smsc::behaviour::FinalState;
use bytes::BytesMut;

/// A date in the format of receipts: YYMMDDhhmm (SMPP 3.4 Appendix B).
pub(crate) type ReceiptDate = [u8; 10];

/// A receipt that is not acknowledged yet.
#[derive(Clone, Debug)]
pub(crate) struct SimulatedReceipt {
    pub(crate) id: u64,
    pub(crate) originator: StoredAddress,
    pub(crate) handset: StoredAddress,
    pub(crate) state: FinalState,
    pub(crate) submitted: ReceiptDate,
    /// The start of the message text.
    pub(crate) excerpt: FixedText<20>,
}

impl SimulatedReceipt {
    /// Appends the receipt as deliver_sm from the handset to the originator.
    pub(crate) fn put(&self, out: &mut BytesMut, sequence: u32, done: ReceiptDate) {
        let (state, stat, err) = self.state.receipt_codes();
        let id = FixedText::<20>::print(format_args!("{}", self.id));
        let text = FixedText::<160>::print(format_args!(
            "id:{id} sub:001 dlvrd:00{delivered} submit date:{submitted} done date:{done} \
             stat:{stat} err:{err} text:{excerpt}",
            id = id.as_str(),
            delivered = u8::from(self.state == FinalState::Delivered),
            submitted = ascii(&self.submitted),
            done = ascii(&done),
            excerpt = self.excerpt.as_str(),
        ));
        let message = ShortMessage {
            source: self.handset.address(),
            destination: self.originator.address(),
            esm_class: esm::RECEIPT,
            text: text.as_bytes(),
            ..ShortMessage::default()
        };
        let receipted_id = FixedText::<21>::print(format_args!("{}\0", id.as_str()));
        pdu::put(out, PduHeader::request(id::DELIVER_SM, sequence), |out| {
            message.encode(out);
            put_tlv(out, tag::RECEIPTED_MESSAGE_ID, receipted_id.as_bytes());
            put_tlv(out, tag::MESSAGE_STATE, &[state]);
        });
    }
}
