//! What waits to be delivered to a client, a receipt or a reply, until it is acknowledged.

use crate::smpp::command::status;
use crate::smpp::text::Part;
use crate::smsc::journal::Entry;
use crate::smsc::receipt::{Date, Receipt};
use crate::smsc::reply::Reply;
use bytes::BytesMut;

/// One deliver_sm to be.
#[derive(Clone, Debug)]
pub(crate) enum Delivery {
    Receipt(Receipt),
    Reply(Reply),
}

impl Delivery {
    /// Appends it; `done` is the present minute.
    pub(crate) fn put(&self, out: &mut BytesMut, sequence: u32, done: Date) {
        match self {
            Self::Receipt(receipt) => receipt.put(out, sequence, done),
            Self::Reply(reply) => reply.put(out, sequence),
        }
    }

    /// What the journal says of the client's answer to it, which was `status`.
    pub(crate) fn note(&self, at: i64, status: u32, write: impl FnOnce(&Entry<'_>)) {
        match self {
            Self::Receipt(receipt) => write(&Entry {
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
                let Part { text, concat } = Part::of(&reply.message());
                write(&Entry {
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

const fn event(status: u32, taken: &'static str) -> &'static str {
    match status {
        status::ESME_ROK => taken,
        _ => "declined",
    }
}
