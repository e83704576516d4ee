//! OpenAPI schemas and examples of webhook events.

use crate::account::Mode;
use crate::event::body::{InboundData, MessageData};
use crate::event::{EventContent, EventKind, FinishedMessage, TEST, WebhookEvent};
use crate::id::{AccountId, EventId, InboundId, MessageId};
use crate::inbound_message::InboundMessage;
use crate::money::Amount;
use crate::time::Timestamp;
use std::sync::Arc;
use utoipa::openapi::schema::{ObjectBuilder, OneOfBuilder, Type};
use utoipa::openapi::{Ref, RefOr, Schema};
use utoipa::{PartialSchema, ToSchema};
use uuid::Uuid;

/// Schemas with their names.
pub type NamedSchemas = Vec<(String, RefOr<Schema>)>;

/// The documentation of one kind of event.
pub struct EventDoc {
    /// The `type` on the wire.
    pub kind: &'static str,
    /// A short summary.
    pub summary: &'static str,
    /// The name of the schema of the body.
    pub name: &'static str,
    /// The schema of the body.
    pub schema: RefOr<Schema>,
    /// An example of the body, as JSON.
    pub example: Vec<u8>,
}

/// Returns the documentation of all kinds of events.
pub fn event_docs() -> Vec<EventDoc> {
    let mut all: Vec<_> = EventKind::ALL.into_iter().map(real).collect();
    all.push(test(&all));
    all
}

/// Returns the schemas that the schemas of [`event_docs`] refer to.
pub fn components() -> NamedSchemas {
    let mut components = vec![
        (MessageData::name().into_owned(), MessageData::schema()),
        (InboundData::name().into_owned(), InboundData::schema()),
        (Timestamp::name().into_owned(), Timestamp::schema()),
    ];
    MessageData::schemas(&mut components);
    InboundData::schemas(&mut components);
    components
}

fn real(kind: EventKind) -> EventDoc {
    let (name, summary, data) = match kind {
        EventKind::MessageDelivered => (
            "MessageDeliveredEvent",
            "Message delivered",
            Ref::from_schema_name(MessageData::name()),
        ),
        EventKind::MessageFailed => {
            ("MessageFailedEvent", "Message failed", Ref::from_schema_name(MessageData::name()))
        }
        EventKind::MessageReceived => {
            ("MessageReceivedEvent", "Message received", Ref::from_schema_name(InboundData::name()))
        }
    };
    let schema = body(kind.name(), summary, RefOr::Ref(data));
    EventDoc { kind: kind.name(), summary, name, schema, example: sample(content(kind)) }
}

fn test(real: &[EventDoc]) -> EventDoc {
    let any =
        real.iter().fold(OneOfBuilder::new(), |any, r| any.item(Ref::from_schema_name(r.name)));
    let summary = "Test event";
    let about = "A test event: `data` is a complete sample event of the chosen kind";
    let schema = body(TEST, about, RefOr::T(Schema::OneOf(any.build())));
    let example = sample(EventContent::Test(EventKind::MessageReceived));
    EventDoc { kind: TEST, summary, name: "WebhookTestEvent", schema, example }
}

/// Returns the schema of an event: `{ "type", "timestamp", "data" }`.
fn body(kind: &'static str, summary: &str, data: RefOr<Schema>) -> RefOr<Schema> {
    let kind = ObjectBuilder::new().schema_type(Type::String).enum_values(Some([kind]));
    let when = utoipa::openapi::schema::RefBuilder::new()
        .ref_location_from_schema_name(Timestamp::name())
        .description(Some("The time of the event."));
    let body = ObjectBuilder::new()
        .description(Some(format!("{summary}.")))
        .property("type", kind)
        .property("timestamp", RefOr::Ref(when.build()))
        .property("data", data);
    let body = ["type", "timestamp", "data"].into_iter().fold(body, ObjectBuilder::required);
    RefOr::T(Schema::Object(body.build()))
}

const AT: Timestamp = Timestamp(1_795_247_308_204);

fn content(kind: EventKind) -> EventContent {
    match kind {
        EventKind::MessageDelivered | EventKind::MessageFailed => {
            let mut ended = FinishedMessage::sample(kind, Mode::Live, AT);
            let message = Arc::make_mut(&mut ended.message);
            message.id = MessageId(Uuid::from_u128(0x01a1_fd13_fdac_71b5_af6a_ef0f_b5c1_bcea));
            message.reference = Some("order 7".to_owned());
            message.part_price = Amount(42_000);
            ended.state.captured = Amount(42_000);
            EventContent::Message(Box::new(ended))
        }
        EventKind::MessageReceived => {
            let mut inbound = InboundMessage::sample(Mode::Live, AT);
            inbound.id = InboundId(Uuid::from_u128(0x01a1_fd14_0a04_7bdd_8caa_a6c2_7b41_2260));
            let answered = Uuid::from_u128(0x01a1_fd13_fdac_71b5_af6a_ef0f_b5c1_bcea);
            inbound.in_reply_to = Some(MessageId(answered));
            EventContent::Received(Box::new(inbound))
        }
    }
}

fn sample(content: EventContent) -> Vec<u8> {
    let (id, account) = (EventId(Uuid::nil()), AccountId(0));
    WebhookEvent { id, account, mode: Mode::Live, at: AT, content }.render()
}
