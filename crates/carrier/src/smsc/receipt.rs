//! A delivery receipt as the simulated SMSC keeps it and sends it.

use crate::smpp::body::{Address, ShortMessage, put_tlv};
use crate::smpp::command::{esm, id, tag};
use crate::smpp::pdu::{self, Head};
use crate::smsc::behaviour::State;
use bytes::BytesMut;
use std::fmt::Arguments;
use std::io::Write;

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

/// An address, kept.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Party {
    ton: u8,
    npi: u8,
    digits: Text<20>,
}

/// A short text without an allocation of its own; what does not fit is cut off.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Text<const N: usize> {
    bytes: [u8; N],
    length: usize,
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

impl Party {
    pub(crate) fn name(&self) -> &str {
        self.digits.as_str()
    }

    fn address(&self) -> Address<'_> {
        Address { ton: self.ton, npi: self.npi, digits: self.digits.as_bytes() }
    }
}

impl From<Address<'_>> for Party {
    fn from(address: Address<'_>) -> Self {
        Self { ton: address.ton, npi: address.npi, digits: Text::new(address.digits) }
    }
}

impl<const N: usize> Text<N> {
    pub(crate) fn new(text: &[u8]) -> Self {
        let mut bytes = [0; N];
        let length = text.len().min(N);
        for (to, from) in bytes.iter_mut().zip(text) {
            *to = *from;
        }
        Self { bytes, length }
    }

    pub(crate) fn print(text: Arguments<'_>) -> Self {
        let mut bytes = [0; N];
        let mut rest = bytes.as_mut_slice();
        // Full: the rest is cut off.
        let _ = rest.write_fmt(text);
        let length = N - rest.len();
        Self { bytes, length }
    }

    pub(crate) fn as_bytes(&self) -> &[u8] {
        self.bytes.get(..self.length).unwrap_or_default()
    }

    pub(crate) fn as_str(&self) -> &str {
        ascii(self.as_bytes())
    }
}

/// What is not text is left out.
fn ascii(bytes: &[u8]) -> &str {
    std::str::from_utf8(bytes).unwrap_or_default()
}
