//! The documentation of problems: a response for each code, with an example.

use crate::error::code::ProblemCode;
use crate::error::fault::FaultCode;
use crate::openapi::parameters::header;
use crate::openapi::schemas::Schemas;
use heliograph_domain::openapi::open_enum;
use serde_json::Value;
use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use utoipa::openapi::example::{Example, ExampleBuilder};
use utoipa::openapi::schema::Schema;
use utoipa::openapi::{ContentBuilder, Ref, RefOr, Response, ResponseBuilder, response::Responses};
use utoipa::{PartialSchema, ToSchema};

const MEDIA_TYPE: &str = "application/problem+json";
/// The request id in the examples.
const REQUEST_ID: &str = "01a1fd13fdac71b5af6aef0fb5c1bcea";

/// The codes of planned features, listed so that clients can be written for them now.
const RESERVED_PROBLEMS: [&str; 3] = ["spend_limit_reached", "not_editable", "velocity_limited"];
const RESERVED_FAULTS: [&str; 4] =
    ["double_braces", "not_in_future", "unknown_merge_field", "unknown_time_zone"];

macro_rules! names {
    ($($type:ty, $name:literal, $names:expr, $reserved:expr, $description:literal;)+) => {$(
        impl PartialSchema for $type {
            fn schema() -> RefOr<Schema> {
                let reserved = $reserved.into_iter();
                RefOr::T(Schema::from(open_enum($names.chain(reserved), $description).build()))
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
    ProblemCode, "ProblemCode", Self::ALL.iter().map(|c| c.info().name), RESERVED_PROBLEMS,
        "The machine-readable code of a problem. The codes in use are documented under \
         `/docs/errors`; the others are reserved for features that are planned. For a code that you \
         do not know, act on `status`.";
    FaultCode, "FaultCode", Self::ALL.iter().map(|c| c.name()), RESERVED_FAULTS,
        "The machine-readable code of a validation error. The codes in use are documented under \
         `/docs/errors/invalid_request`; the others are reserved for features that are planned.";
}

/// Adds the error responses of an operation that can fail with these codes.
pub(crate) fn responses(responses: &mut Responses, codes: &BTreeSet<ProblemCode>) {
    for (status, codes) in by_status(codes) {
        let response = match *codes {
            [code] => {
                let name = code.info().name;
                RefOr::Ref(Ref::new(format!("#/components/responses/{name}")))
            }
            _ => RefOr::T(response(&codes)),
        };
        responses.responses.insert(status.to_string(), response);
    }
}

fn by_status(codes: &BTreeSet<ProblemCode>) -> BTreeMap<u16, Vec<ProblemCode>> {
    let mut by_status: BTreeMap<u16, Vec<ProblemCode>> = BTreeMap::new();
    for code in codes {
        by_status.entry(code.info().status.as_u16()).or_default().push(*code);
    }
    by_status
}

/// Returns the shared responses, for codes that are the only one of their status in an operation.
pub(crate) fn shared<'a>(
    operations: impl Iterator<Item = &'a BTreeSet<ProblemCode>>,
) -> BTreeMap<String, RefOr<Response>> {
    let single = |codes: Vec<ProblemCode>| <[ProblemCode; 1]>::try_from(codes).ok();
    operations
        .flat_map(|codes| by_status(codes).into_values().filter_map(single))
        .map(|[code]| (code.info().name.to_owned(), RefOr::T(response(&[code]))))
        .collect()
}

fn response(codes: &[ProblemCode]) -> Response {
    let entries = codes.iter().map(|c| c.info());
    let summaries = entries.map(|e| format!("`{}`: {}.", e.name, e.title)).collect::<Vec<_>>();
    let content = ContentBuilder::new().schema(Some(Ref::from_schema_name("Problem")));
    let content = content.examples_from_iter(codes.iter().map(|code| {
        let name = code.info().name;
        (name, RefOr::Ref(Ref::new(format!("#/components/examples/{name}"))))
    }));
    let mut response = ResponseBuilder::new().description(summaries.join(" ")).build();
    response.content.insert(MEDIA_TYPE.to_owned(), RefOr::T(content.build()));
    let status = codes.first().map_or(0, |c| c.info().status.as_u16());
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

/// Returns an example for each of these codes.
pub(crate) fn examples(codes: &BTreeSet<ProblemCode>) -> BTreeMap<String, RefOr<Example>> {
    let example = |code: &ProblemCode| {
        let sample = crate::error::Problem::sample(*code).json(REQUEST_ID);
        let value: Option<Value> = serde_json::from_slice(&sample).ok();
        let example = ExampleBuilder::new().summary(code.info().title).value(value);
        (code.info().name.to_owned(), RefOr::T(example.build()))
    };
    codes.iter().map(example).collect()
}

/// Adds the schemas of problems.
pub(crate) fn schemas(schemas: &mut Schemas) {
    schemas.response::<crate::error::ProblemBody<'_>>();
}
