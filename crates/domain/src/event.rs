//! Events: what a client is told by webhook, and the JSON in which it is told.

mod body;
#[cfg(feature = "openapi")]
pub mod openapi;

use crate::account::Mode;
use crate::event::body::{Body, InboundData, MessageData, json};
use crate::id::{AccountId, CarrierId, EndpointId, EventId, InboundId, MessageId};
use crate::inbound_message::InboundMessage;
use crate::message::{Failure, FailureCode, Message, State, Status};
use crate::money::Amount;
use crate::originator::Originator;
use crate::phone::Recipient;
use crate::text::Encoding;
use crate::time::Timestamp;
use std::sync::Arc;
use uuid::Uuid;

/// What kind of thing happened.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Kind {
    /// A message reached its handset.
    MessageDelivered,
    /// A message never will.
    MessageFailed,
    /// A person wrote to a number of the account.
    MessageReceived,
}

impl Kind {
    /// What an endpoint can choose from.
    pub const CHOICES: [Self; 3] =
        [Self::MessageDelivered, Self::MessageFailed, Self::MessageReceived];

    /// As stored.
    pub const fn code(self) -> i16 {
        match self {
            Self::MessageDelivered => 1,
            Self::MessageFailed => 2,
            Self::MessageReceived => 3,
        }
    }

    /// From the stored form.
    pub fn from_code(code: i16) -> Option<Self> {
        Self::CHOICES.into_iter().find(|k| k.code() == code)
    }

    /// As on the wire.
    pub const fn name(self) -> &'static str {
        match self {
            Self::MessageDelivered => "message.delivered",
            Self::MessageFailed => "message.failed",
            Self::MessageReceived => "message.received",
        }
    }

    /// From the name on the wire.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::CHOICES.into_iter().find(|k| k.name() == name)
    }
}

/// The type of an event that is only a test.
pub const TEST: &str = "webhook.test";

/// An event as it is stored: what it tells is found by its subject.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Occurrence {
    /// Whose.
    pub account: AccountId,
    /// Its id.
    pub id: EventId,
    /// In which world.
    pub mode: Mode,
    /// Of what kind.
    pub kind: Kind,
    /// Whether nothing happened, and a sample of the kind is told.
    pub test: bool,
    /// The id of what it speaks of: a message, or one that came in.
    pub subject: Option<Uuid>,
    /// When it happened.
    pub at: Timestamp,
    /// The first endpoint that wanted it.
    pub endpoint: EndpointId,
}

/// Something that a client is to be told.
#[derive(Clone, Debug)]
pub struct Event {
    /// Its id, which is the `webhook-id`.
    pub id: EventId,
    /// Whose it is.
    pub account: AccountId,
    /// In which of the account's two worlds it happened.
    pub mode: Mode,
    /// When.
    pub at: Timestamp,
    /// What.
    pub content: Content,
}

/// What happened, with all that is told of it.
#[derive(Clone, Debug)]
pub enum Content {
    /// A message reached its final status.
    Message(Box<Ended>),
    /// A person wrote.
    Received(Box<InboundMessage>),
    /// Nothing: a sample of this kind, to try an endpoint out.
    Test(Kind),
}

/// A message that has ended, and what it is charged in.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Ended {
    /// The message.
    pub message: Arc<Message>,
    /// How it ended.
    pub state: State,
    /// ISO 4217.
    pub currency: Arc<str>,
}

impl Ended {
    /// What kind of event its end is; a message that was called back makes none.
    pub const fn kind(status: Status) -> Option<Kind> {
        match status {
            Status::Delivered => Some(Kind::MessageDelivered),
            Status::Failed => Some(Kind::MessageFailed),
            Status::Queued | Status::Sent | Status::Cancelled => None,
        }
    }
}

impl Event {
    /// The body of the webhook: `{ "type", "timestamp", "data" }`. The same event gives the same bytes each time.
    pub fn render(&self) -> Vec<u8> {
        match &self.content {
            Content::Message(ended) => {
                let kind = Ended::kind(ended.state.status).unwrap_or(Kind::MessageFailed);
                json(kind.name(), self.at, &MessageData::of(ended))
            }
            Content::Received(inbound) => {
                json(Kind::MessageReceived.name(), self.at, &InboundData::of(inbound))
            }
            Content::Test(kind) => self.sample(*kind),
        }
    }

    /// A whole event of the kind, inside one of the type [`TEST`]: what handles the one can be given the other.
    fn sample(&self, kind: Kind) -> Vec<u8> {
        let (kind_, timestamp) = (kind.name(), self.at);
        match kind {
            Kind::MessageDelivered | Kind::MessageFailed => {
                let ended = Ended::sample(kind, self.mode, self.at);
                let data = &MessageData::of(&ended);
                json(TEST, self.at, &Body { kind: kind_, timestamp, data })
            }
            Kind::MessageReceived => {
                let inbound = InboundMessage::sample(self.mode, self.at);
                let data = &InboundData::of(&inbound);
                json(TEST, self.at, &Body { kind: kind_, timestamp, data })
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

/// The id of something that never was.
fn sample_id(at: Timestamp) -> Uuid {
    Uuid::from_u128(at.millis().unsigned_abs().into())
}

impl Ended {
    fn sample(kind: Kind, mode: Mode, at: Timestamp) -> Self {
        let message = Message {
            id: MessageId(sample_id(at)),
            account: AccountId(0),
            mode,
            api_key: None,
            campaign: None,
            recipient: Recipient(447_700_900_123),
            country: None,
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
        let mut state = State::accepted(1, Amount::ZERO);
        (state.sent_at, state.done_at) = (Some(at), Some(at));
        state.status = match kind {
            Kind::MessageFailed => Status::Failed,
            _ => Status::Delivered,
        };
        let failure = || Failure::plain(FailureCode::Unreachable);
        state.failure = (kind == Kind::MessageFailed).then(failure);
        Self { message: Arc::new(message), state, currency: "EUR".into() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event(content: Content) -> Event {
        Event {
            id: EventId(Uuid::nil()),
            account: AccountId(1),
            mode: Mode::Test,
            at: Timestamp(0),
            content,
        }
    }

    #[test]
    fn a_sample_is_a_whole_event_of_its_kind() {
        for kind in Kind::CHOICES {
            let body: serde_json::Value =
                serde_json::from_slice(&event(Content::Test(kind)).render()).unwrap();
            assert_eq!((&body["type"], &body["data"]["type"]), (&TEST.into(), &kind.name().into()));
            assert_eq!(body["data"]["data"]["mode"], "test");
        }
    }

    #[test]
    fn a_body_stays_below_20_kb() {
        for text in
            ["x", "\u{1}", "\"", "\u{7f}", "é", "日", "🚀", "\u{85}"].map(|t| t.repeat(50_000))
        {
            let mut inbound = InboundMessage::sample(Mode::Live, Timestamp(0));
            inbound.text = text;
            let body = event(Content::Received(Box::new(inbound))).render();
            assert!((3_000..20_000).contains(&body.len()), "{}", body.len());
            let body: serde_json::Value = serde_json::from_slice(&body).unwrap();
            assert_eq!(body["data"]["textTruncated"], true);
        }
    }
}
