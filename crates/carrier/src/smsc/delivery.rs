//! A deliver_sm to a client, a receipt or a reply, that is kept until it is acknowledged.

use crate::smpp::command::status;
use crate::smpp::text::DecodedPart;
use crate::smsc::journal::JournalEntry;
use crate::smsc::receipt::{ReceiptDate, SimulatedReceipt};
use crate::smsc::reply::ReplyPart;
use bytes::BytesMut;

/// One deliver_sm that is not acknowledged yet.
#[derive(Clone, Debug)]
pub(crate) enum PendingDelivery {
    Receipt(SimulatedReceipt),
    Reply(ReplyPart),
}

impl PendingDelivery {
    /// Appends the deliver_sm. `done` is the `done date` of a receipt.
    pub(crate) fn put(&self, out: &mut BytesMut, sequence: u32, done: ReceiptDate) {
        match self {
            Self::Receipt(receipt) => receipt.put(out, sequence, done),
            Self::Reply(reply) => reply.put(out, sequence),
        }
    }

    /// Writes the journal entry for the client's response, whose command_status is `status`.
    pub(crate) fn record(&self, at: i64, status: u32, write: impl FnOnce(&JournalEntry<'_>)) {
        match self {
            Self::Receipt(receipt) => write(&JournalEntry {
                at,
                event: event(status, "acknowledged"),
                destination: receipt.handset.name(),
                source: receipt.originator.name(),
                text: None,
                part: None,
                parts: None,
                id: Some(receipt.id.to_string()),
                status,
            }),
            Self::Reply(reply) => {
                let DecodedPart { text, concat } = DecodedPart::decode(&reply.message());
                write(&JournalEntry {
                    at,
                    event: event(status, "replied"),
                    destination: reply.to.name(),
                    source: reply.from.name(),
                    text: Some(&text),
                    part: Some(concat.map_or(1, |concat| concat.sequence)),
                    parts: Some(concat.map_or(1, |concat| concat.total)),
                    id: None,
                    status,
                });
            }
        }
    }
}

const fn event(status: u32, accepted: &'static str) -> &'static str {
    match status {
        status::ESME_ROK => accepted,
        _ => "declined",
    }
}
