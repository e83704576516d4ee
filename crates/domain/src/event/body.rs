//! The JSON of an event's body.

use crate::event::Ended;
use crate::id::{InboundId, MessageId};
use crate::inbound::Keyword;
use crate::inbound_message::InboundMessage;
use crate::message::{self, Failure};
use crate::money::Amount;
use crate::phone::Recipient;
use crate::time::Timestamp;
use serde::{Serialize, Serializer};
use std::fmt::Display;
use uuid::Uuid;

/// The most bytes of a text in an event's JSON: a body stays below 20 kB.
const MOST_TEXT: usize = 18_000;

/// `{ "type", "timestamp", "data" }`.
pub(in crate::event) fn json(kind: &'static str, at: Timestamp, data: &impl Serialize) -> Vec<u8> {
    let mut json = Vec::with_capacity(640);
    // Nothing in here can fail to be written into memory.
    let _ = serde_json::to_writer(&mut json, &Body { kind, timestamp: at, data });
    json
}

/// A whole event.
#[derive(Serialize)]
pub(in crate::event) struct Body<'a, T> {
    #[serde(rename = "type")]
    pub(in crate::event) kind: &'static str,
    #[serde(serialize_with = "shown")]
    pub(in crate::event) timestamp: Timestamp,
    pub(in crate::event) data: &'a T,
}

/// As a string, in the form that it prints itself.
fn shown<S: Serializer>(value: &impl Display, s: S) -> Result<S::Ok, S::Error> {
    s.collect_str(value)
}

fn shown_if<S: Serializer>(value: &Option<impl Display>, s: S) -> Result<S::Ok, S::Error> {
    match value {
        Some(value) => s.collect_str(value),
        None => s.serialize_none(),
    }
}

/// A message that ended, as it is told.
#[derive(Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema), schema(as = MessageEventData))]
#[serde(rename_all = "camelCase")]
pub(in crate::event) struct MessageData<'a> {
    /// The message's id.
    #[serde(serialize_with = "shown")]
    id: MessageId,
    /// Whom it was for.
    #[serde(serialize_with = "shown")]
    recipient: Recipient,
    /// Who it was from.
    #[cfg_attr(feature = "openapi", schema(value_type = crate::originator::Originator))]
    originator: &'a str,
    /// What you gave the message.
    reference: Option<&'a str>,
    /// The campaign that it belongs to.
    #[serde(serialize_with = "shown_if")]
    campaign_id: Option<Uuid>,
    #[cfg_attr(feature = "openapi", schema(value_type = crate::account::Mode))]
    mode: &'static str,
    /// How it ended: `DELIVERED` or `FAILED`.
    #[cfg_attr(feature = "openapi", schema(value_type = message::Status))]
    status: &'static str,
    /// Why it failed, if it did.
    failure: Option<FailureData<'a>>,
    /// Of how many parts it is.
    parts: u16,
    /// What was charged.
    #[serde(serialize_with = "shown")]
    price: Amount,
    #[cfg_attr(feature = "openapi", schema(value_type = crate::openapi::Currency))]
    currency: &'a str,
    /// When it was accepted.
    #[serde(serialize_with = "shown")]
    created_at: Timestamp,
    /// When a carrier had taken its last part.
    #[serde(serialize_with = "shown_if")]
    sent_at: Option<Timestamp>,
    /// When it ended.
    #[serde(serialize_with = "shown_if")]
    done_at: Option<Timestamp>,
}

/// Why a message failed.
#[derive(Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema), schema(as = Failure))]
#[serde(rename_all = "camelCase")]
struct FailureData<'a> {
    #[cfg_attr(feature = "openapi", schema(value_type = message::FailureCode))]
    code: &'static str,
    /// Whether the same message would fail again.
    permanent: bool,
    /// The same as `code` in one sentence, for people.
    detail: &'static str,
    /// The carrier's own word for it, if there was one.
    carrier_code: Option<&'a str>,
}

impl<'a> MessageData<'a> {
    pub(in crate::event) fn of(ended: &'a Ended) -> Self {
        let (m, s) = (&ended.message, &ended.state);
        let failure = |f: &'a Failure| FailureData {
            code: f.code.name(),
            permanent: f.code.permanent(),
            detail: f.code.detail(),
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

/// What a person sent, as it is told.
#[derive(Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema), schema(as = InboundEventData))]
#[serde(rename_all = "camelCase")]
pub(in crate::event) struct InboundData<'a> {
    /// Its id.
    #[serde(serialize_with = "shown")]
    id: InboundId,
    /// Who sent it: digits without the plus, or a name.
    from: &'a str,
    /// The number that it was written to.
    to: &'a str,
    /// What it says.
    text: &'a str,
    /// When its last part came.
    #[serde(serialize_with = "shown")]
    received_at: Timestamp,
    /// The last message from that number to that person.
    #[serde(serialize_with = "shown_if")]
    in_reply_to: Option<MessageId>,
    #[cfg_attr(feature = "openapi", schema(value_type = Option<Keyword>))]
    keyword: Option<&'static str>,
    #[cfg_attr(feature = "openapi", schema(value_type = crate::account::Mode))]
    mode: &'static str,
    /// Whether all of its parts came.
    complete: bool,
    /// Whether the text was cut to keep the body below 20 kB; the API shows the whole.
    text_truncated: bool,
}

impl<'a> InboundData<'a> {
    pub(in crate::event) fn of(m: &'a InboundMessage) -> Self {
        let text = cut(&m.text);
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

/// The beginning of a text that is at most [`MOST_TEXT`] bytes long in JSON, where control characters take six.
fn cut(text: &str) -> &str {
    let mut room = MOST_TEXT;
    for (at, c) in text.char_indices() {
        let size = if c.is_control() { 6 } else { c.len_utf8().max(2) };
        let Some(left) = room.checked_sub(size) else { return text.get(..at).unwrap_or(text) };
        room = left;
    }
    text
}
