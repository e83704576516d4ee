//! How problems are documented: one response for each code, with an example.

use crate::error::code::Code;
use crate::error::fault::FaultCode;
use crate::openapi::parameters::header;
use crate::openapi::schemas::Schemas;
use serde_json::Value;
use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use utoipa::openapi::example::{Example, ExampleBuilder};
use utoipa::openapi::schema::{ObjectBuilder, Schema, Type};
use utoipa::openapi::{ContentBuilder, Ref, RefOr, Response, ResponseBuilder, response::Responses};
use utoipa::{PartialSchema, ToSchema};

const MEDIA_TYPE: &str = "application/problem+json";
/// The id of the request in the examples.
const REQUEST_ID: &str = "01a1fd13fdac71b5af6aef0fb5c1bcea";

macro_rules! names {
    ($($type:ty, $name:literal, $names:expr, $description:literal;)+) => {$(
        impl PartialSchema for $type {
            fn schema() -> RefOr<Schema> {
                let schema = ObjectBuilder::new().schema_type(Type::String);
                let schema = schema.description(Some($description)).enum_values(Some($names));
                RefOr::T(Schema::Object(schema.build()))
            }
        }

        impl ToSchema for $type {
            fn name() -> Cow<'static, str> {
                $name.into()
            }
        }
    )+};
}

names! {
    Code, "ProblemCode", Self::ALL.iter().map(|c| c.entry().name),
        "What kind of problem it is, for programs. Each is explained under `/docs/errors`.";
    FaultCode, "FaultCode", Self::ALL.iter().map(|c| c.name()),
        "What kind of thing is wrong with a value. Each is explained under `/docs/errors/invalid_request`.";
}

/// The responses of an operation that can fail in these ways.
pub(crate) fn responses(responses: &mut Responses, codes: &BTreeSet<Code>) {
    for (status, codes) in by_status(codes) {
        let response = match *codes {
            [code] => {
                let name = code.entry().name;
                RefOr::Ref(Ref::new(format!("#/components/responses/{name}")))
            }
            _ => RefOr::T(response(&codes)),
        };
        responses.responses.insert(status.to_string(), response);
    }
}

fn by_status(codes: &BTreeSet<Code>) -> BTreeMap<u16, Vec<Code>> {
    let mut by_status: BTreeMap<u16, Vec<Code>> = BTreeMap::new();
    for code in codes {
        by_status.entry(code.entry().status.as_u16()).or_default().push(*code);
    }
    by_status
}

/// The responses that several operations share: those with a code that is alone with its status.
pub(crate) fn shared<'a>(
    operations: impl Iterator<Item = &'a BTreeSet<Code>>,
) -> BTreeMap<String, RefOr<Response>> {
    let alone = |codes: Vec<Code>| <[Code; 1]>::try_from(codes).ok();
    operations
        .flat_map(|codes| by_status(codes).into_values().filter_map(alone))
        .map(|[code]| (code.entry().name.to_owned(), RefOr::T(response(&[code]))))
        .collect()
}

fn response(codes: &[Code]) -> Response {
    let entries = codes.iter().map(|c| c.entry());
    let codes_say = entries.map(|e| format!("`{}`: {}.", e.name, e.title)).collect::<Vec<_>>();
    let content = ContentBuilder::new().schema(Some(Ref::from_schema_name("Problem")));
    let content = content.examples_from_iter(codes.iter().map(|code| {
        let name = code.entry().name;
        (name, RefOr::Ref(Ref::new(format!("#/components/examples/{name}"))))
    }));
    let mut response = ResponseBuilder::new().description(codes_say.join(" ")).build();
    response.content.insert(MEDIA_TYPE.to_owned(), RefOr::T(content.build()));
    let status = codes.first().map_or(0, |c| c.entry().status.as_u16());
    let mut headers = vec!["X-Request-Id"];
    match status {
        401 => headers.push("WWW-Authenticate"),
        429 => headers.extend(["RateLimit", "RateLimit-Policy", "Retry-After"]),
        503 => headers.push("Retry-After"),
        _ => {}
    }
    response.headers.extend(headers.into_iter().map(|name| (name.to_owned(), header(name))));
    response
}

/// One example for each of these codes.
pub(crate) fn examples(codes: &BTreeSet<Code>) -> BTreeMap<String, RefOr<Example>> {
    let example = |code: &Code| {
        let sample = crate::error::Problem::sample(*code).json(REQUEST_ID);
        let value: Option<Value> = serde_json::from_slice(&sample).ok();
        let example = ExampleBuilder::new().summary(code.entry().title).value(value);
        (code.entry().name.to_owned(), RefOr::T(example.build()))
    };
    codes.iter().map(example).collect()
}

/// The schemas of problems.
pub(crate) fn schemas(schemas: &mut Schemas) {
    schemas.answer::<crate::error::Body<'_>>();
}
