//! Events: what a client is told by webhook, and the JSON in which it is told.

use crate::account::Mode;
use crate::id::{AccountId, CarrierId, EndpointId, EventId, MessageId};
use crate::message::{self, Failure, FailureCode, Message, State, Status};
use crate::money::Amount;
use crate::originator::Originator;
use crate::phone::Recipient;
use crate::text::Encoding;
use crate::time::Timestamp;
use serde::Serialize;
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
            Kind::MessageReceived => json(TEST, self.at, &()),
        }
    }
}

impl Ended {
    fn sample(kind: Kind, mode: Mode, at: Timestamp) -> Self {
        let message = Message {
            id: MessageId(Uuid::from_u128(at.millis().unsigned_abs().into())),
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

fn json(kind: &'static str, at: Timestamp, data: &impl Serialize) -> Vec<u8> {
    let mut json = Vec::with_capacity(640);
    // Nothing in here can fail to be written into memory.
    let _ = serde_json::to_writer(&mut json, &Body { kind, timestamp: at, data });
    json
}

#[derive(Serialize)]
struct Body<'a, T> {
    #[serde(rename = "type")]
    kind: &'static str,
    #[serde(serialize_with = "shown")]
    timestamp: Timestamp,
    data: &'a T,
}

/// As a string, in the form that it prints itself.
fn shown<S: serde::Serializer>(value: &impl std::fmt::Display, s: S) -> Result<S::Ok, S::Error> {
    s.collect_str(value)
}

fn shown_if<S: serde::Serializer>(
    value: &Option<impl std::fmt::Display>,
    s: S,
) -> Result<S::Ok, S::Error> {
    match value {
        Some(value) => s.collect_str(value),
        None => s.serialize_none(),
    }
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct MessageData<'a> {
    #[serde(serialize_with = "shown")]
    id: MessageId,
    #[serde(serialize_with = "shown")]
    recipient: Recipient,
    originator: &'a str,
    reference: Option<&'a str>,
    #[serde(serialize_with = "shown_if")]
    campaign_id: Option<Uuid>,
    mode: &'static str,
    status: &'static str,
    failure: Option<FailureData<'a>>,
    parts: u16,
    #[serde(serialize_with = "shown")]
    price: Amount,
    currency: &'a str,
    #[serde(serialize_with = "shown")]
    created_at: Timestamp,
    #[serde(serialize_with = "shown_if")]
    sent_at: Option<Timestamp>,
    #[serde(serialize_with = "shown_if")]
    done_at: Option<Timestamp>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct FailureData<'a> {
    code: &'static str,
    permanent: bool,
    detail: &'static str,
    carrier_code: Option<&'a str>,
}

impl<'a> MessageData<'a> {
    fn of(ended: &'a Ended) -> Self {
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
