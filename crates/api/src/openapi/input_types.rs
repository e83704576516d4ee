//! Types of request values that no response has, and schemas of those that may be written in more
//! than one way.

use crate::error::fault::FaultCode;
use crate::request::{Faults, FromJson, JsonType};
use std::borrow::Cow;
use utoipa::openapi::RefOr;
use utoipa::openapi::schema::{ObjectBuilder, Schema, Type};
use utoipa::{PartialSchema, ToSchema};

/// The schema of a phone number in a request.
pub(crate) struct PhoneNumberInput;

/// The schema of an originator in a request.
pub(crate) struct OriginatorInput;

/// The characters that are ignored between the digits of a number: hyphens, dots, brackets and
/// spaces of all kinds. They are not escaped, since not every regex engine supports escapes for
/// them.
const SEPARATORS: &str = "[-.()\\[\\] \u{a0}\u{ad}\u{1680}\u{2000}-\u{200a}\u{2010}-\u{2015}\
                          \u{2028}\u{2029}\u{202f}\u{205f}\u{2212}\u{3000}\u{fe58}\u{fe63}\u{ff0d}]*";

fn schema(description: &str, pattern: String, example: &str) -> RefOr<Schema> {
    let text = ObjectBuilder::new().schema_type(Type::String).description(Some(description));
    RefOr::T(Schema::Object(text.pattern(Some(pattern)).examples([example]).build()))
}

impl PartialSchema for PhoneNumberInput {
    fn schema() -> RefOr<Schema> {
        let description = "A phone number in international format, with the country code. The plus \
                           is optional; spaces, dashes, dots and brackets are ignored. The number \
                           must be possible in its country, which the pattern does not check.";
        let pattern =
            format!("^{SEPARATORS}\\+?{SEPARATORS}[1-9](?:{SEPARATORS}[0-9]){{4,14}}{SEPARATORS}$");
        schema(description, pattern, "+447700900123")
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
                           spaces and `+ - _ & .` with at least one letter, or a number of 3 to 15 \
                           digits, with or without a plus.";
        let name = "(?=.{0,10}[A-Za-z])[A-Za-z0-9+_&.-](?:[A-Za-z0-9 +_&.-]{0,9}[A-Za-z0-9+_&.-])?";
        schema(description, format!(r"^(?:\+?[0-9]{{3,15}}|{name})$"), "Heliograph")
    }
}

impl ToSchema for OriginatorInput {
    fn name() -> Cow<'static, str> {
        "OriginatorInput".into()
    }
}

/// A field of short links, which are not available yet: only `false` is valid.
#[derive(Debug)]
pub(crate) struct NotYetShortened;

impl FromJson for NotYetShortened {
    const TYPE: JsonType = JsonType::Boolean;

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
