//! Parameters and headers that several operations share.

use std::collections::BTreeMap;
use utoipa::openapi::header::HeaderBuilder;
use utoipa::openapi::path::{Parameter, ParameterBuilder, ParameterIn};
use utoipa::openapi::schema::{ObjectBuilder, Type};
use utoipa::openapi::{Header, Ref, RefOr, Required};

/// `limit` and `cursor`.
pub(crate) const PAGE: [&str; 2] = ["Limit", "Cursor"];
/// On what creates something.
pub(crate) const IDEMPOTENCY_KEY: &str = "IdempotencyKey";

/// A reference to one of [`parameters`].
pub(crate) fn parameter(name: &str) -> RefOr<Parameter> {
    RefOr::Ref(Ref::new(format!("#/components/parameters/{name}")))
}

/// A reference to one of [`headers`].
pub(crate) fn header(name: &str) -> RefOr<Header> {
    RefOr::Ref(Ref::new(format!("#/components/headers/{name}")))
}

fn text() -> ObjectBuilder {
    ObjectBuilder::new().schema_type(Type::String)
}

fn new(name: &str, place: ParameterIn, description: &str, schema: ObjectBuilder) -> Parameter {
    ParameterBuilder::new()
        .name(name)
        .parameter_in(place)
        .required(Required::False)
        .description(Some(description))
        .schema(Some(schema))
        .build()
}

/// All of them, by the names of their references.
pub(crate) fn parameters() -> BTreeMap<String, RefOr<Parameter>> {
    let limit = ObjectBuilder::new().schema_type(Type::Integer);
    let limit = limit.minimum(Some(1)).maximum(Some(100)).default(Some(50.into()));
    let cursor = text().pattern(Some("^[A-Za-z0-9_-]+$"));
    let key = text().min_length(Some(1)).max_length(Some(255)).pattern(Some("^[ -~]+$"));
    let key = key.examples(["0b8f6d1e-order-7"]);
    [
        ("Limit", new("limit", ParameterIn::Query, "At most so many in one page.", limit)),
        (
            "Cursor",
            new(
                "cursor",
                ParameterIn::Query,
                "Where to go on: `nextCursor` of the page before, as it is.",
                cursor,
            ),
        ),
        (
            IDEMPOTENCY_KEY,
            new(
                "Idempotency-Key",
                ParameterIn::Header,
                "Makes the request safe to repeat: for 24 hours the same key with the same body, byte for byte, gets \
                 the same answer, and nothing is done twice. Printable ASCII characters, of your own choice.",
                key,
            ),
        ),
    ]
    .into_iter()
    .map(|(name, parameter)| (name.to_owned(), RefOr::T(parameter)))
    .collect()
}

/// The headers of answers, by their names.
pub(crate) fn headers() -> BTreeMap<String, RefOr<Header>> {
    let seconds = ObjectBuilder::new().schema_type(Type::Integer).minimum(Some(0));
    [
        (
            "X-Request-Id",
            "The id of the request, for the log of the service and for questions about it. A client that sends one \
             gets it back, if it is 1 to 128 letters, digits and `-_.`.",
            text().pattern(Some("^[A-Za-z0-9_.-]{1,128}$")),
        ),
        ("Location", "The address of what was made.", text().pattern(Some("^/v1/"))),
        (
            "Idempotent-Replayed",
            "`true` when this is the answer to an earlier request with the same `Idempotency-Key`; left out otherwise.",
            text().enum_values(Some(["true"])),
        ),
        (
            "RateLimit-Policy",
            "How many requests a key may make: `q` of them in `w` seconds. On every answer, if there is a limit.",
            text().pattern(Some("^\"key\";q=[0-9]+;w=1$")),
        ),
        (
            "RateLimit",
            "What is left of it: `r` requests for the next `t` seconds. On every answer, if there is a limit.",
            text().pattern(Some("^\"key\";r=[0-9]+;t=[0-9]+$")),
        ),
        ("Retry-After", "Seconds after which the request may be repeated.", seconds),
        ("WWW-Authenticate", "How to authenticate.", text().enum_values(Some(["Bearer"]))),
        ("ETag", "Stands for this version of the document.", text().pattern(Some("^\"[^\"]+\"$"))),
    ]
    .into_iter()
    .map(|(name, description, schema)| {
        let header = HeaderBuilder::new().description(Some(description)).schema(Some(schema));
        (name.to_owned(), RefOr::T(header.build()))
    })
    .collect()
}
