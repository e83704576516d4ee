//! Webhook events, and their JSON bodies.

mod body;
mod finished_message;
mod kind;
#[cfg(feature = "openapi")]
pub mod openapi;

pub use finished_message::FinishedMessage;
pub use kind::EventKind;

use crate::account::Mode;
use crate::event::body::{Body, InboundData, MessageData, json};
use crate::id::{AccountId, CarrierId, EndpointId, EventId, InboundId, MessageId};
use crate::inbound_message::InboundMessage;
use crate::message::{Failure, FailureCode, Message, MessageState, MessageStatus};
use crate::money::Amount;
use crate::originator::Originator;
use crate::phone::Recipient;
use crate::text::Encoding;
use crate::time::Timestamp;
use std::sync::Arc;
use uuid::Uuid;

/// The type of test events.
pub const TEST: &str = "webhook.test";

/// An event as it is stored. Its content is not stored, but read through its subject.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct StoredEvent {
    /// The account.
    pub account: AccountId,
    /// The id.
    pub id: EventId,
    /// The mode in which it happened.
    pub mode: Mode,
    /// The kind.
    pub kind: EventKind,
    /// True if this is a test event, with a sample of the kind as its content.
    pub test: bool,
    /// The id of the message or inbound message that it is about.
    pub subject: Option<Uuid>,
    /// When it happened.
    pub at: Timestamp,
    /// The first endpoint that subscribes to it.
    pub endpoint: EndpointId,
}

/// An event with its content, ready to deliver.
#[derive(Clone, Debug)]
pub struct WebhookEvent {
    /// The id, sent as the `webhook-id` header.
    pub id: EventId,
    /// The account.
    pub account: AccountId,
    /// The mode in which it happened.
    pub mode: Mode,
    /// When it happened.
    pub at: Timestamp,
    /// The content.
    pub content: EventContent,
}

/// The content of an event.
#[derive(Clone, Debug)]
pub enum EventContent {
    /// A message reached its final status.
    Message(Box<FinishedMessage>),
    /// An inbound message arrived.
    Received(Box<InboundMessage>),
    /// A test: a sample event of this kind.
    Test(EventKind),
}

impl WebhookEvent {
    /// Returns the body of the webhook request: `{ "type", "timestamp", "data" }`. The same event
    /// always gives the same bytes.
    pub fn render(&self) -> Vec<u8> {
        match &self.content {
            EventContent::Message(ended) => {
                let kind = FinishedMessage::event_kind(ended.state.status)
                    .unwrap_or(EventKind::MessageFailed);
                json(kind.name(), self.at, &MessageData::new(ended))
            }
            EventContent::Received(inbound) => {
                json(EventKind::MessageReceived.name(), self.at, &InboundData::new(inbound))
            }
            EventContent::Test(kind) => self.sample(*kind),
        }
    }

    /// Returns the body of a test event, whose `data` is a complete sample event of the kind, so
    /// that a handler of real events can process it.
    fn sample(&self, kind: EventKind) -> Vec<u8> {
        let timestamp = self.at;
        match kind {
            EventKind::MessageDelivered | EventKind::MessageFailed => {
                let ended = FinishedMessage::sample(kind, self.mode, self.at);
                let data = &MessageData::new(&ended);
                json(TEST, self.at, &Body { kind: kind.name(), timestamp, data })
            }
            EventKind::MessageReceived => {
                let inbound = InboundMessage::sample(self.mode, self.at);
                let data = &InboundData::new(&inbound);
                json(TEST, self.at, &Body { kind: kind.name(), timestamp, data })
            }
        }
    }
}

impl InboundMessage {
    fn sample(mode: Mode, at: Timestamp) -> Self {
        Self {
            id: InboundId(sample_id(at)),
            account: AccountId(0),
            mode,
            carrier: CarrierId(0),
            from: "447700900123".to_owned(),
            to: "447700900000".to_owned(),
            text: "Yes, please".to_owned(),
            received_at: at,
            in_reply_to: Some(MessageId(sample_id(at))),
            keyword: None,
            complete: true,
        }
    }
}

/// Returns a made-up id.
fn sample_id(at: Timestamp) -> Uuid {
    Uuid::from_u128(at.millis().unsigned_abs().into())
}

impl FinishedMessage {
    fn sample(kind: EventKind, mode: Mode, at: Timestamp) -> Self {
        let message = Message {
            id: MessageId(sample_id(at)),
            account: AccountId(0),
            mode,
            api_key: None,
            sent_by: None,
            campaign: None,
            recipient: Recipient(447_700_900_123),
            originator: Originator::from_stored("Heliograph".to_owned()),
            text: String::new(),
            reference: Some("sample".to_owned()),
            encoding: Encoding::Gsm7,
            parts: 1,
            part_price: Amount::ZERO,
            carrier: CarrierId(0),
            optout_list: None,
            accepted_at: at,
            scheduled_for: None,
            expires_at: at,
        };
        let mut state = MessageState::accepted(1, Amount::ZERO);
        (state.sent_at, state.done_at) = (Some(at), Some(at));
        state.status = match kind {
            EventKind::MessageFailed => MessageStatus::Failed,
            _ => MessageStatus::Delivered,
        };
        let failure = || Failure::new(FailureCode::Unreachable);
        state.failure = (kind == EventKind::MessageFailed).then(failure);
        Self { message: Arc::new(message), state, currency: "EUR".into() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event(content: EventContent) -> WebhookEvent {
        WebhookEvent {
            id: EventId(Uuid::nil()),
            account: AccountId(1),
            mode: Mode::Test,
            at: Timestamp(0),
            content,
        }
    }

    #[test]
    fn samples_are_complete_events() {
        for kind in EventKind::ALL {
            let body: serde_json::Value =
                serde_json::from_slice(&event(EventContent::Test(kind)).render()).unwrap();
            assert_eq!((&body["type"], &body["data"]["type"]), (&TEST.into(), &kind.name().into()));
            assert_eq!(body["data"]["data"]["mode"], "test");
        }
    }

    #[test]
    fn bodies_stay_below_20_kb() {
        for text in
            ["x", "\u{1}", "\"", "\u{7f}", "é", "日", "🚀", "\u{85}"].map(|t| t.repeat(50_000))
        {
            let mut inbound = InboundMessage::sample(Mode::Live, Timestamp(0));
            inbound.text = text;
            let body = event(EventContent::Received(Box::new(inbound))).render();
            assert!((3_000..20_000).contains(&body.len()), "{}", body.len());
            let body: serde_json::Value = serde_json::from_slice(&body).unwrap();
            assert_eq!(body["data"]["textTruncated"], true);
        }
    }
}
