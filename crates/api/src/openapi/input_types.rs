//! Types of request values that no response has, and schemas of those that may be written in more
//! than one way.

use crate::error::fault::FaultCode;
use crate::request::{Faults, FromJson, JsonType};
use heliograph_domain::fields::Reference;
use std::borrow::Cow;
use utoipa::openapi::RefOr;
use utoipa::openapi::schema::{ObjectBuilder, Schema, SchemaType, Type};
use utoipa::{PartialSchema, ToSchema};

/// The schema of a phone number in a request.
pub(crate) struct PhoneNumberInput;

/// The schema of an originator in a request.
pub(crate) struct OriginatorInput;

/// The characters that are ignored between the digits of a number: hyphens, dots, brackets, spaces
/// of all kinds, and invisible format characters. They are not escaped, since not every regex engine
/// supports escapes for them.
const SEPARATORS: &str = "[-.()\\[\\] \u{a0}\u{ad}\u{61c}\u{1680}\u{180e}\u{2000}-\u{200f}\
                          \u{2010}-\u{2015}\u{2028}-\u{202f}\u{205f}-\u{206f}\u{2212}\u{3000}\
                          \u{fe58}\u{fe63}\u{feff}\u{ff08}\u{ff09}\u{ff0d}\u{ff0e}]*";

/// Returns the pattern of a number with this many digits after the first one.
fn number(digits: &str) -> String {
    let next = format!("{SEPARATORS}[0-9\u{ff10}-\u{ff19}]");
    let (plus, first) = ("[+\u{ff0b}]?", "[1-9\u{ff11}-\u{ff19}]");
    format!("{SEPARATORS}{plus}{SEPARATORS}{first}(?:{next}){{{digits}}}{SEPARATORS}")
}

fn schema(description: &str, pattern: String, example: &str) -> RefOr<Schema> {
    let text = ObjectBuilder::new().schema_type(Type::String).description(Some(description));
    RefOr::T(Schema::Object(text.pattern(Some(pattern)).examples([example]).build()))
}

impl PartialSchema for PhoneNumberInput {
    fn schema() -> RefOr<Schema> {
        let description = "A phone number in international format, with the country code. The plus \
                           is optional; spaces, dashes, dots, brackets and invisible characters \
                           are ignored. The number must be possible in its country, which the \
                           pattern does not check.";
        schema(description, format!("^{}$", number("4,14")), "+447700900123")
    }
}

impl ToSchema for PhoneNumberInput {
    fn name() -> Cow<'static, str> {
        "PhoneNumberInput".into()
    }
}

impl PartialSchema for OriginatorInput {
    fn schema() -> RefOr<Schema> {
        let description = "The sender of the message: a name of 1 to 11 letters, digits, inner \
                           spaces and `+ - _ & .` with at least one letter, or a number, written \
                           like a recipient: a short code of 3 to 8 digits, or an international \
                           number. A number cannot begin with 0. An international number must be \
                           possible in its country, which the pattern does not check.";
        let name = "(?=.{0,10}[A-Za-z])[A-Za-z0-9+_&.-](?:[A-Za-z0-9 +_&.-]{0,9}[A-Za-z0-9+_&.-])?";
        schema(description, format!("^(?:{}|{name})$", number("2,14")), "Heliograph")
    }
}

impl ToSchema for OriginatorInput {
    fn name() -> Cow<'static, str> {
        "OriginatorInput".into()
    }
}

/// The schema of a reference in a request.
pub(crate) struct ReferenceInput;

impl PartialSchema for ReferenceInput {
    fn schema() -> RefOr<Schema> {
        let mut schema = Reference::schema();
        if let RefOr::T(Schema::Object(text)) = &mut schema {
            text.schema_type = SchemaType::from_iter([Type::String, Type::Integer]);
            text.minimum = Some(i64::MIN.into());
            text.maximum = Some(i64::MAX.into());
            let description = text.description.get_or_insert_default();
            description.push_str(" An integer is converted to its digits.");
        }
        schema
    }
}

impl ToSchema for ReferenceInput {
    fn name() -> Cow<'static, str> {
        "ReferenceInput".into()
    }
}

/// A boolean of the original specification, whose clients may send it as one of the strings `true`
/// and `false`. The schema has only the boolean, which new clients should send.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Flag(pub(crate) bool);

impl FromJson for Flag {
    const TYPE: JsonType = JsonType::Boolean;

    fn from_boolean(value: bool, _: &mut Faults) -> Option<Self> {
        Some(Self(value))
    }

    fn from_text(text: &str, faults: &mut Faults) -> Option<Self> {
        match text {
            "true" => Some(Self(true)),
            "false" => Some(Self(false)),
            _ => {
                let detail = "Expected a boolean, or one of the strings \"true\" and \"false\".";
                faults.add(FaultCode::WrongType, detail);
                None
            }
        }
    }
}

/// A field of short links, which are not available yet: only `false` is valid.
#[derive(Debug)]
pub(crate) struct NotYetShortened;

impl FromJson for NotYetShortened {
    const TYPE: JsonType = JsonType::Boolean;

    fn from_text(text: &str, faults: &mut Faults) -> Option<Self> {
        Flag::from_text(text, faults).and_then(|Flag(value)| Self::from_boolean(value, faults))
    }

    fn from_boolean(value: bool, faults: &mut Faults) -> Option<Self> {
        if value {
            let detail = "Short links are not available yet. Omit this field or set it to false.";
            faults.add(FaultCode::NotAvailable, detail);
            return None;
        }
        Some(Self)
    }
}

impl PartialSchema for NotYetShortened {
    fn schema() -> RefOr<Schema> {
        let schema = ObjectBuilder::new().schema_type(Type::Boolean).enum_values(Some([false]));
        RefOr::T(Schema::Object(schema.build()))
    }
}

impl ToSchema for NotYetShortened {
    fn name() -> Cow<'static, str> {
        "NotYetShortened".into()
    }
}

/// A field of scheduled sending, which is not available yet: only `null` is valid.
#[derive(Debug)]
pub(crate) enum NotYetScheduled {}

impl FromJson for NotYetScheduled {
    const TYPE: JsonType = JsonType::String;

    fn wrong_type(_: JsonType, faults: &mut Faults) -> Option<Self> {
        let detail = "Scheduled sending is not available yet. Omit this field to send at once.";
        faults.add(FaultCode::NotAvailable, detail);
        None
    }
}

impl PartialSchema for NotYetScheduled {
    fn schema() -> RefOr<Schema> {
        let description = "Reserved for scheduled sending, which is not available yet: must be \
                           `null` if present.";
        let schema = ObjectBuilder::new().schema_type(Type::Null).description(Some(description));
        RefOr::T(Schema::Object(schema.build()))
    }
}

impl ToSchema for NotYetScheduled {
    fn name() -> Cow<'static, str> {
        "NotYetScheduled".into()
    }
}

#[cfg(test)]
mod tests {
    use heliograph_domain::phone::Recipient;

    /// Numbers with fewer than five digits are invalid, so that the pattern may require five.
    #[test]
    fn numbers_have_at_least_five_digits() {
        let short = (0..10_000).filter_map(|n: u32| n.to_string().parse::<Recipient>().ok());
        assert_eq!(short.count(), 0);
    }
}
