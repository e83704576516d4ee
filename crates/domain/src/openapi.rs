//! OpenAPI schemas of the types of this crate.

use crate::account::Mode;
use crate::fields::{ListName, MaxParts, MessageText, Note, Reference, Validity};
use crate::id::{InboundId, MessageId, OptoutListId};
use crate::inbound::Keyword;
use crate::message::{FailureCode, MessageStatus, TimelineEvent};
use crate::money::Amount;
use crate::optout::OptoutSource;
use crate::originator::Originator;
use crate::phone::Recipient;
use crate::text::Encoding;
use crate::time::Timestamp;
use crate::wording::failures::failure_reason;
use std::borrow::Cow;
use utoipa::openapi::RefOr;
use utoipa::openapi::schema::{
    AnyOfBuilder, KnownFormat, ObjectBuilder, Schema, SchemaFormat, Type,
};
use utoipa::{PartialSchema, ToSchema};

/// The schema of the currency of an account.
#[derive(Clone, Copy, Debug)]
pub struct Currency;

macro_rules! schemas {
    ($($type:ty, $name:literal, $schema:expr;)+) => {$(
        impl PartialSchema for $type {
            fn schema() -> RefOr<Schema> {
                RefOr::T(Schema::from($schema.build()))
            }
        }

        impl ToSchema for $type {
            fn name() -> Cow<'static, str> {
                $name.into()
            }
        }
    )+};
}

fn text(description: &str, example: &str) -> ObjectBuilder {
    ObjectBuilder::new()
        .schema_type(Type::String)
        .description(Some(description))
        .examples([example])
}

fn id(description: &str) -> ObjectBuilder {
    let uuid = SchemaFormat::Custom("uuid".to_owned());
    text(description, "01a1fd13-fdac-71b5-af6a-ef0fb5c1bcea").format(Some(uuid))
}

/// A text without the character NUL.
fn field(description: &str, max_length: usize) -> ObjectBuilder {
    let builder = ObjectBuilder::new().schema_type(Type::String).description(Some(description));
    builder.max_length(Some(max_length)).pattern(Some(r"^[^\x00]*$"))
}

fn integer(description: &str, min: i64, max: i64) -> ObjectBuilder {
    let builder = ObjectBuilder::new().schema_type(Type::Integer).description(Some(description));
    let builder = builder.format(Some(SchemaFormat::KnownFormat(KnownFormat::Int32)));
    builder.minimum(Some(min)).maximum(Some(max))
}

/// The schema of a text that is one of these values.
pub fn closed_enum(
    names: impl Iterator<Item = &'static str>,
    description: Option<&str>,
) -> ObjectBuilder {
    let builder = ObjectBuilder::new().schema_type(Type::String);
    builder.description(description).enum_values(Some(names))
}

/// The schema of a text in a response that is one of these values, or one that a later version
/// adds: generated clients accept unknown values instead of failing for the whole response.
pub fn open_enum(names: impl Iterator<Item = &'static str>, description: &str) -> AnyOfBuilder {
    AnyOfBuilder::new()
        .description(Some(description))
        .item(closed_enum(names, None))
        .item(ObjectBuilder::new().schema_type(Type::String))
}

schemas! {
    MessageId, "MessageId", id("The id of a message (UUID version 7).");
    InboundId, "InboundMessageId", id("The id of an inbound message (UUID version 7).");
    OptoutListId, "OptoutListId", id("The id of an opt-out list (UUID version 7).");
    Timestamp, "Timestamp", text("A timestamp in UTC, with milliseconds (RFC 3339).", "2026-11-21T07:48:28.204Z")
        .format(Some(SchemaFormat::KnownFormat(KnownFormat::DateTime)))
        .pattern(Some(r"^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}\.[0-9]{3}Z$"));
    Recipient, "PhoneNumber",
        text("A phone number in international format: digits with the country code, without the \
              plus.", "447700900123")
            .pattern(Some("^[1-9][0-9]{0,14}$"));
    Originator, "Originator",
        text("The sender of a message: a short name, or a number as digits without the plus.", "Heliograph")
            .min_length(Some(1)).max_length(Some(15));
    Amount, "Amount",
        text("An amount of money in `currency`: a string with a decimal number of four or six \
              decimal places.", "0.0420")
            .pattern(Some(r"^-?[0-9]+\.[0-9]{4}([0-9]{2})?$"));
    Currency, "Currency",
        text("The currency of the account (ISO 4217).", "EUR").pattern(Some("^[A-Z]{3}$"));
    Mode, "Mode", closed_enum([Self::Live, Self::Test].iter().map(|m| m.name()), Some(
        "Live or test mode. A key can access only data of its own mode; test messages reach only \
         the simulated carrier and cost nothing."));
    MessageStatus, "MessageStatus", open_enum(Self::ALL.iter().map(|s| s.name()),
        "The status of a message. `QUEUED`: accepted and durably stored, not completely sent yet. \
         `SENT`: the carrier accepted all parts. `DELIVERED`: delivered to the handset. `FAILED`: \
         not delivered, see `failure`. `CANCELLED`: cancelled before any part was sent. The last \
         three are final.");
    TimelineEvent, "TimelineEvent", open_enum(Self::ALL.iter().map(|s| s.name()),
        "An event of the timeline of a message. `sentAgain`: the response of the carrier was lost \
         and the message was sent again. `lateReceipt`: a delivery receipt arrived after the \
         message had been marked as failed.");
    FailureCode, "FailureCode", open_enum(Self::ALL.iter().map(|c| c.name()), &failures());
    Encoding, "Encoding", open_enum([Self::Gsm7, Self::Ucs2].iter().map(|e| e.name()),
        "The encoding of a text. With `GSM_7`, a single part has 160 characters, and each of \
         several parts has 153. With `UCS_2`, for characters outside the GSM alphabet, they have \
         70 and 67.");
    Keyword, "Keyword", open_enum([Self::Stop, Self::Start, Self::Help].iter().map(|k| k.name()),
        "The keyword of an inbound message, regardless of spelling.");
    OptoutSource, "OptoutSource", open_enum([Self::Reply, Self::Api, Self::Import].iter().map(|s| s.name()),
        "The source of an opt-out: a reply of STOP, the API, or an imported file.");
    MessageText, "MessageText",
        field("The text of the message. A message has at most 10 parts: 1,530 characters of the \
               GSM alphabet, or 670 characters if other characters are used. Braces have no \
               special meaning.", Self::LONGEST)
            .min_length(Some(1));
    Reference, "Reference",
        field("Your own reference, returned in responses and webhooks. It does not have to be \
               unique.", Self::MAX_LENGTH);
    Validity, "ValiditySeconds",
        integer("The validity period in seconds. A message that is not delivered in time fails \
                 with `expired`. The default is 172800 (two days).",
            Self::MIN_SECONDS, Self::MAX_SECONDS);
    MaxParts, "MaxParts",
        integer("Rejects the message if it needs more parts than this.", Self::MIN, Self::MAX);
    ListName, "OptoutListName",
        text("The name of the list. It must not be blank.", "Newsletter")
            .min_length(Some(1)).max_length(Some(Self::MAX_LENGTH))
            .pattern(Some(r"^[^\x00-\x1f\x7f-\x9f]*[^\x00-\x1f\x7f-\x9f\s][^\x00-\x1f\x7f-\x9f]*$"));
    Note, "OptoutNote", field("An optional note.", Self::MAX_LENGTH);
}

fn failures() -> String {
    let rows = FailureCode::ALL.iter().map(|c| format!("- `{}`: {}", c.name(), failure_reason(*c)));
    format!("The reason of a failure.\n\n{}", rows.collect::<Vec<_>>().join("\n"))
}
