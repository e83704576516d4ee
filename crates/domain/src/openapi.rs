//! How the values of this crate look on the wire, as schemas for the API's document.

use crate::account::Mode;
use crate::id::{InboundId, MessageId, OptoutListId};
use crate::inbound::Keyword;
use crate::message::{FailureCode, Status, Step};
use crate::money::Amount;
use crate::optout::Source;
use crate::originator::Originator;
use crate::phone::Recipient;
use crate::text::Encoding;
use crate::time::Timestamp;
use std::borrow::Cow;
use utoipa::openapi::schema::{KnownFormat, ObjectBuilder, Schema, SchemaFormat, Type};
use utoipa::openapi::{RefOr, Schema as AnySchema};
use utoipa::{PartialSchema, ToSchema};

/// An account's currency.
#[derive(Clone, Copy, Debug)]
pub struct Currency;

macro_rules! schemas {
    ($($type:ty, $name:literal, $schema:expr;)+) => {$(
        impl PartialSchema for $type {
            fn schema() -> RefOr<AnySchema> {
                RefOr::T(Schema::Object($schema.build()))
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

fn one_of(names: impl Iterator<Item = &'static str>, description: &str) -> ObjectBuilder {
    let builder = ObjectBuilder::new().schema_type(Type::String);
    builder.description(Some(description)).enum_values(Some(names))
}

schemas! {
    MessageId, "MessageId", id("The id of a message, a UUID of version 7.");
    InboundId, "InboundMessageId", id("The id of a message that a person sent, a UUID of version 7.");
    OptoutListId, "OptoutListId", id("The id of an opt-out list, a UUID of version 7.");
    Timestamp, "Timestamp", text("An instant in UTC, with milliseconds.", "2026-11-21T07:48:28.204Z")
        .format(Some(SchemaFormat::KnownFormat(KnownFormat::DateTime)))
        .pattern(Some(r"^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}\.[0-9]{3}Z$"));
    Recipient, "PhoneNumber",
        text("An international number: country code and number as digits, without the plus.", "447700900123")
            .pattern(Some("^[1-9][0-9]{0,14}$"));
    Originator, "Originator",
        text("Who a message is from: a short name, or a number as digits without the plus.", "Heliograph")
            .min_length(Some(1)).max_length(Some(15));
    Amount, "Amount",
        text("An amount of money in `currency`: a decimal number with four or six decimals, as a string.", "0.0420")
            .pattern(Some(r"^-?[0-9]+\.[0-9]{4}([0-9]{2})?$"));
    Currency, "Currency",
        text("The currency of the account, by its code in ISO 4217.", "EUR").pattern(Some("^[A-Z]{3}$"));
    Mode, "Mode", one_of([Self::Live, Self::Test].iter().map(|m| m.name()),
        "Whether a thing is real. A key sees only what is of its own mode; test messages reach no real carrier and \
         cost nothing.");
    Status, "MessageStatus", one_of(Self::ALL.iter().map(|s| s.name()),
        "Where a message stands. `QUEUED`: accepted and durable, not wholly sent. `SENT`: a carrier took all its parts. \
         `DELIVERED`: it is on the handset. `FAILED`: it never will be, see `failure`. `CANCELLED`: called back before \
         any part went out. The last three are final.");
    Step, "TimelineEvent", one_of(Self::ALL.iter().map(|s| s.name()),
        "What happened to a message. `sentAgain`: a response was lost, and it went out once more. `lateReceipt`: it arrived \
         after it had counted as failed.");
    FailureCode, "FailureCode", one_of(Self::ALL.iter().map(|c| c.name()), &failures());
    Encoding, "Encoding", one_of([Self::Gsm7, Self::Ucs2].iter().map(|e| e.name()),
        "How a text is encoded. `GSM_7` has room for 160 characters in a single part and 153 in each of several; \
         `UCS_2`, for everything beyond the GSM alphabet, for 70 and 67.");
    Keyword, "Keyword", one_of([Self::Stop, Self::Start, Self::Help].iter().map(|k| k.name()),
        "What a reply of one known word asks for, in whatever spelling it came.");
    Source, "OptoutSource", one_of([Self::Reply, Self::Api, Self::Import].iter().map(|s| s.name()),
        "How an opt-out came about: the person wrote STOP, or it was added by the API or from a file.");
}

fn failures() -> String {
    let rows = FailureCode::ALL.iter().map(|c| format!("- `{}`: {}", c.name(), c.detail()));
    format!("Why a message failed.\n\n{}", rows.collect::<Vec<_>>().join("\n"))
}
