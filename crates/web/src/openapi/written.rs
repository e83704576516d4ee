//! Values as clients write them, which is more freely than we do.

use std::borrow::Cow;
use utoipa::openapi::RefOr;
use utoipa::openapi::schema::{ObjectBuilder, Schema, Type};
use utoipa::{PartialSchema, ToSchema};

/// A phone number as it is read.
pub(crate) struct WrittenNumber;

/// An originator as it is read.
pub(crate) struct WrittenOriginator;

/// What counts for nothing among the digits of a number: hyphens, dots, brackets and spaces of all kinds.
/// They stand there as they are: not every engine that reads patterns knows an escape for them.
const FILLER: &str = "[-.()\\[\\] \u{a0}\u{ad}\u{1680}\u{2000}-\u{200a}\u{2010}-\u{2015}\u{2028}\u{2029}\u{202f}\u{205f}\
                      \u{2212}\u{3000}\u{fe58}\u{fe63}\u{ff0d}]*";

fn schema(description: &str, pattern: String, example: &str) -> RefOr<Schema> {
    let text = ObjectBuilder::new().schema_type(Type::String).description(Some(description));
    RefOr::T(Schema::Object(text.pattern(Some(pattern)).examples([example]).build()))
}

impl PartialSchema for WrittenNumber {
    fn schema() -> RefOr<Schema> {
        let description = "An international number: country code and number. The plus may be left out, and spaces, \
             dashes, dots and brackets count for nothing. It must be a possible number of its country, which a \
             pattern can't tell.";
        let pattern = format!("^{FILLER}\\+?{FILLER}[1-9](?:{FILLER}[0-9]){{4,14}}{FILLER}$");
        schema(description, pattern, "+447700900123")
    }
}

impl ToSchema for WrittenNumber {
    fn name() -> Cow<'static, str> {
        "WrittenPhoneNumber".into()
    }
}

impl PartialSchema for WrittenOriginator {
    fn schema() -> RefOr<Schema> {
        let description = "Who the message is from: a name of 1 to 11 letters, digits, inner spaces and `+ - _ & .` with \
             at least one letter, or a number of 3 to 15 digits, with or without a plus.";
        let name = "(?=.{0,10}[A-Za-z])[A-Za-z0-9+_&.-](?:[A-Za-z0-9 +_&.-]{0,9}[A-Za-z0-9+_&.-])?";
        schema(description, format!(r"^(?:\+?[0-9]{{3,15}}|{name})$"), "Heliograph")
    }
}

impl ToSchema for WrittenOriginator {
    fn name() -> Cow<'static, str> {
        "WrittenOriginator".into()
    }
}

/// A field that only `false` may stand in.
pub(crate) struct OnlyFalse;

impl PartialSchema for OnlyFalse {
    fn schema() -> RefOr<Schema> {
        let schema = ObjectBuilder::new().schema_type(Type::Boolean).enum_values(Some([false]));
        RefOr::T(Schema::Object(schema.build()))
    }
}

impl ToSchema for OnlyFalse {
    fn name() -> Cow<'static, str> {
        "OnlyFalse".into()
    }
}

/// A field of scheduled sending, which is to come.
pub(crate) struct NotYetScheduled;

impl PartialSchema for NotYetScheduled {
    fn schema() -> RefOr<Schema> {
        let description = "Scheduled sending is to come: only `null` is taken yet.";
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

    /// The pattern asks for at least five digits: no shorter number is taken.
    #[test]
    fn no_number_has_fewer_than_five_digits() {
        let short = (0..10_000).filter_map(|n: u32| n.to_string().parse::<Recipient>().ok());
        assert_eq!(short.count(), 0);
    }
}
