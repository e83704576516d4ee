//! What the API's document says of events: the schema of each kind's body, with an example.

use crate::account::Mode;
use crate::event::body::{InboundData, MessageData};
use crate::event::{Content, Ended, Event, Kind, TEST};
use crate::id::{AccountId, EventId, InboundId, MessageId};
use crate::inbound_message::InboundMessage;
use crate::money::Amount;
use crate::time::Timestamp;
use std::sync::Arc;
use utoipa::openapi::schema::{ObjectBuilder, OneOfBuilder, Type};
use utoipa::openapi::{Ref, RefOr, Schema};
use utoipa::{PartialSchema, ToSchema};
use uuid::Uuid;

/// Schemas by their names.
pub type Schemas = Vec<(String, RefOr<Schema>)>;

/// One kind of event, as it is documented.
#[derive(Debug)]
pub struct Documented {
    /// Its name on the wire.
    pub kind: &'static str,
    /// When it happens, in a few words.
    pub summary: &'static str,
    /// The name of its body's schema.
    pub name: &'static str,
    /// That schema.
    pub schema: RefOr<Schema>,
    /// A body.
    pub example: Vec<u8>,
}

/// All kinds of events.
pub fn documented() -> Vec<Documented> {
    let mut all: Vec<_> = Kind::CHOICES.into_iter().map(real).collect();
    all.push(test(&all));
    all
}

/// What the schemas of [`documented`] refer to.
pub fn parts() -> Schemas {
    let mut parts = vec![
        (MessageData::name().into_owned(), MessageData::schema()),
        (InboundData::name().into_owned(), InboundData::schema()),
        (Timestamp::name().into_owned(), Timestamp::schema()),
    ];
    MessageData::schemas(&mut parts);
    InboundData::schemas(&mut parts);
    parts
}

fn real(kind: Kind) -> Documented {
    let (name, summary, data) = match kind {
        Kind::MessageDelivered => (
            "MessageDeliveredEvent",
            "A message reached its handset",
            Ref::from_schema_name(MessageData::name()),
        ),
        Kind::MessageFailed => (
            "MessageFailedEvent",
            "A message never will reach its handset",
            Ref::from_schema_name(MessageData::name()),
        ),
        Kind::MessageReceived => (
            "MessageReceivedEvent",
            "A person wrote to one of your numbers",
            Ref::from_schema_name(InboundData::name()),
        ),
    };
    let schema = body(kind.name(), summary, RefOr::Ref(data));
    Documented { kind: kind.name(), summary, name, schema, example: sample(content(kind)) }
}

fn test(real: &[Documented]) -> Documented {
    let any =
        real.iter().fold(OneOfBuilder::new(), |any, r| any.item(Ref::from_schema_name(r.name)));
    let summary = "Somebody asked for a test";
    let about = "Somebody asked for a test: `data` is a whole sample event of the chosen kind";
    let schema = body(TEST, about, RefOr::T(Schema::OneOf(any.build())));
    let example = sample(Content::Test(Kind::MessageReceived));
    Documented { kind: TEST, summary, name: "WebhookTestEvent", schema, example }
}

/// `{ "type", "timestamp", "data" }`.
fn body(kind: &'static str, summary: &str, data: RefOr<Schema>) -> RefOr<Schema> {
    let kind = ObjectBuilder::new().schema_type(Type::String).enum_values(Some([kind]));
    let when = utoipa::openapi::schema::RefBuilder::new()
        .ref_location_from_schema_name(Timestamp::name())
        .description(Some("When it happened."));
    let body = ObjectBuilder::new()
        .description(Some(format!("{summary}.")))
        .property("type", kind)
        .property("timestamp", RefOr::Ref(when.build()))
        .property("data", data);
    let body = ["type", "timestamp", "data"].into_iter().fold(body, ObjectBuilder::required);
    RefOr::T(Schema::Object(body.build()))
}

const AT: Timestamp = Timestamp(1_795_247_308_204);

fn content(kind: Kind) -> Content {
    match kind {
        Kind::MessageDelivered | Kind::MessageFailed => {
            let mut ended = Ended::sample(kind, Mode::Live, AT);
            let message = Arc::make_mut(&mut ended.message);
            message.id = MessageId(Uuid::from_u128(0x01a1_fd13_fdac_71b5_af6a_ef0f_b5c1_bcea));
            message.reference = Some("order 7".to_owned());
            message.part_price = Amount(42_000);
            ended.state.captured = Amount(42_000);
            Content::Message(Box::new(ended))
        }
        Kind::MessageReceived => {
            let mut inbound = InboundMessage::sample(Mode::Live, AT);
            inbound.id = InboundId(Uuid::from_u128(0x01a1_fd14_0a04_7bdd_8caa_a6c2_7b41_2260));
            let answered = Uuid::from_u128(0x01a1_fd13_fdac_71b5_af6a_ef0f_b5c1_bcea);
            inbound.in_reply_to = Some(MessageId(answered));
            Content::Received(Box::new(inbound))
        }
    }
}

fn sample(content: Content) -> Vec<u8> {
    let (id, account) = (EventId(Uuid::nil()), AccountId(0));
    Event { id, account, mode: Mode::Live, at: AT, content }.render()
}
