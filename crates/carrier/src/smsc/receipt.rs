//! A delivery receipt as the simulated SMSC keeps it and sends it.

use crate::smpp::body::{ShortMessage, put_tlv};
use crate::smpp::command::{esm, id, tag};
use crate::smpp::pdu::{self, Head};
use crate::smsc::behaviour::State;
use crate::smsc::party::{Party, Text, ascii};
use bytes::BytesMut;

/// YYMMDDhhmm, as dates stand in receipts (SMPP 3.4 Appendix B).
pub(crate) type Date = [u8; 10];

/// A receipt that has not arrived yet.
#[derive(Clone, Debug)]
pub(crate) struct Receipt {
    pub(crate) id: u64,
    pub(crate) originator: Party,
    pub(crate) handset: Party,
    pub(crate) state: State,
    pub(crate) submitted: Date,
    /// How the message began.
    pub(crate) excerpt: Text<20>,
}

impl Receipt {
    /// Appends it as deliver_sm: from the handset, to the originator.
    pub(crate) fn put(&self, out: &mut BytesMut, sequence: u32, done: Date) {
        let (state, stat, err) = self.state.words();
        let id = Text::<20>::print(format_args!("{}", self.id));
        let text = Text::<160>::print(format_args!(
            "id:{id} sub:001 dlvrd:00{delivered} submit date:{submitted} done date:{done} \
             stat:{stat} err:{err} text:{excerpt}",
            id = id.as_str(),
            delivered = u8::from(self.state == State::Delivered),
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
        let named = Text::<21>::print(format_args!("{}\0", id.as_str()));
        pdu::put(out, Head::request(id::DELIVER_SM, sequence), |out| {
            message.encode(out);
            put_tlv(out, tag::RECEIPTED_MESSAGE_ID, named.as_bytes());
            put_tlv(out, tag::MESSAGE_STATE, &[state]);
        });
    }
}
