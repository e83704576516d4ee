//! The JSON body of events. The comments of fields are descriptions in the OpenAPI document.

use crate::event::finished_message::FinishedMessage;
use crate::id::{InboundId, MessageId};
use crate::inbound::Keyword;
use crate::inbound_message::InboundMessage;
use crate::message::{self, Failure};
use crate::money::Amount;
use crate::phone::Recipient;
use crate::time::Timestamp;
use crate::wording::failures::failure_reason;
use serde::{Serialize, Serializer};
use std::fmt::Display;
use uuid::Uuid;

/// The maximum size of a text in JSON, in bytes, so that a body stays below 20 kB.
const MAX_TEXT_BYTES: usize = 18_000;

/// Serializes `{ "type", "timestamp", "data" }`.
pub(crate) fn json(kind: &'static str, at: Timestamp, data: &impl Serialize) -> Vec<u8> {
    let mut json = Vec::with_capacity(640);
    // Serializing into memory cannot fail.
    let _ = serde_json::to_writer(&mut json, &Body { kind, timestamp: at, data });
    json
}

/// The body of an event.
#[derive(Serialize)]
pub(crate) struct Body<'a, T> {
    #[serde(rename = "type")]
    pub(crate) kind: &'static str,
    #[serde(serialize_with = "as_string")]
    pub(crate) timestamp: Timestamp,
    pub(crate) data: &'a T,
}

/// Serializes a value as a string, by its `Display` implementation.
fn as_string<S: Serializer>(value: &impl Display, s: S) -> Result<S::Ok, S::Error> {
    s.collect_str(value)
}

fn as_string_option<S: Serializer>(value: &Option<impl Display>, s: S) -> Result<S::Ok, S::Error> {
    match value {
        Some(value) => s.collect_str(value),
        None => s.serialize_none(),
    }
}

/// The data of an event about a finished message.
#[derive(Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema), schema(as = MessageEventData))]
#[serde(rename_all = "camelCase")]
pub(crate) struct MessageData<'a> {
    /// The id of the message.
    #[serde(serialize_with = "as_string")]
    id: MessageId,
    /// The recipient.
    #[serde(serialize_with = "as_string")]
    recipient: Recipient,
    /// The sender.
    #[cfg_attr(feature = "openapi", schema(value_type = crate::originator::Originator))]
    originator: &'a str,
    /// The reference that you gave the message.
    reference: Option<&'a str>,
    /// The campaign that it belongs to.
    #[serde(serialize_with = "as_string_option")]
    campaign_id: Option<Uuid>,
    #[cfg_attr(feature = "openapi", schema(value_type = crate::account::Mode))]
    mode: &'static str,
    /// The final status: `DELIVERED` or `FAILED`.
    #[cfg_attr(feature = "openapi", schema(value_type = message::MessageStatus))]
    status: &'static str,
    /// The failure, if the message failed.
    failure: Option<FailureData<'a>>,
    /// The number of parts (segments).
    parts: u16,
    /// The amount charged.
    #[serde(serialize_with = "as_string")]
    price: Amount,
    #[cfg_attr(feature = "openapi", schema(value_type = crate::openapi::Currency))]
    currency: &'a str,
    /// When it was accepted.
    #[serde(serialize_with = "as_string")]
    created_at: Timestamp,
    /// When a carrier accepted the last part.
    #[serde(serialize_with = "as_string_option")]
    sent_at: Option<Timestamp>,
    /// When it ended.
    #[serde(serialize_with = "as_string_option")]
    done_at: Option<Timestamp>,
}

// The API has a schema of the same name: the comments must be equal.
/// The reason of a failure.
#[derive(Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema), schema(as = Failure))]
#[serde(rename_all = "camelCase")]
struct FailureData<'a> {
    #[cfg_attr(feature = "openapi", schema(value_type = message::FailureCode))]
    code: &'static str,
    /// True if sending the same message again would fail, too.
    permanent: bool,
    /// An explanation of `code` for people.
    detail: &'static str,
    /// The carrier's own error code, if it gave one.
    carrier_code: Option<&'a str>,
}

impl<'a> MessageData<'a> {
    pub(crate) fn new(ended: &'a FinishedMessage) -> Self {
        let (m, s) = (&ended.message, &ended.state);
        let failure = |f: &'a Failure| FailureData {
            code: f.code.name(),
            permanent: f.code.permanent(),
            detail: failure_reason(f.code),
            carrier_code: f.carrier_code.as_deref(),
        };
        Self {
            id: m.id,
            recipient: m.recipient,
            originator: m.originator.as_str(),
            reference: m.reference.as_deref(),
            campaign_id: m.campaign,
            mode: m.mode.name(),
            status: s.status.name(),
            failure: s.failure.as_ref().map(failure),
            parts: m.parts,
            price: message::price(m, s),
            currency: &ended.currency,
            created_at: m.accepted_at,
            sent_at: s.sent_at,
            done_at: s.done_at,
        }
    }
}

/// The data of an event about an inbound message.
#[derive(Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema), schema(as = InboundEventData))]
#[serde(rename_all = "camelCase")]
pub(crate) struct InboundData<'a> {
    /// The id of the inbound message.
    #[serde(serialize_with = "as_string")]
    id: InboundId,
    /// The sender: digits without the plus, or an alphanumeric name.
    from: &'a str,
    /// The number that the message was sent to.
    to: &'a str,
    /// The text.
    text: &'a str,
    /// When the last part arrived.
    #[serde(serialize_with = "as_string")]
    received_at: Timestamp,
    /// The last message sent from this number to this sender.
    #[serde(serialize_with = "as_string_option")]
    in_reply_to: Option<MessageId>,
    #[cfg_attr(feature = "openapi", schema(value_type = Option<Keyword>))]
    keyword: Option<&'static str>,
    #[cfg_attr(feature = "openapi", schema(value_type = crate::account::Mode))]
    mode: &'static str,
    /// True if all parts arrived.
    complete: bool,
    /// True if the text was truncated to keep the body below 20 kB. The API returns the full text.
    text_truncated: bool,
}

impl<'a> InboundData<'a> {
    pub(crate) fn new(m: &'a InboundMessage) -> Self {
        let text = truncate(&m.text);
        Self {
            id: m.id,
            from: &m.from,
            to: &m.to,
            received_at: m.received_at,
            in_reply_to: m.in_reply_to,
            keyword: m.keyword.map(Keyword::name),
            mode: m.mode.name(),
            complete: m.complete,
            text_truncated: text.len() < m.text.len(),
            text,
        }
    }
}

/// Truncates a text to at most [`MAX_TEXT_BYTES`] in JSON, where a control character takes six
/// bytes.
fn truncate(text: &str) -> &str {
    let mut room = MAX_TEXT_BYTES;
    for (at, c) in text.char_indices() {
        let size = if c.is_control() { 6 } else { c.len_utf8().max(2) };
        let Some(left) = room.checked_sub(size) else { return text.get(..at).unwrap_or(text) };
        room = left;
    }
    text
}
