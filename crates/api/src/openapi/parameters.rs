//! Parameters and headers that several operations share.

use heliograph_domain::fields::IdempotencyKey;
use std::collections::BTreeMap;
use utoipa::openapi::header::HeaderBuilder;
use utoipa::openapi::path::{Parameter, ParameterBuilder, ParameterIn};
use utoipa::openapi::schema::{ObjectBuilder, Type};
use utoipa::openapi::{Header, Ref, RefOr, Required};

/// The names of the pagination parameters `limit` and `cursor`.
pub(crate) const PAGE: [&str; 2] = ["Limit", "Cursor"];
/// The name of the `Idempotency-Key` parameter.
pub(crate) const IDEMPOTENCY_KEY: &str = "IdempotencyKey";

/// Returns a reference to one of [`parameters`].
pub(crate) fn parameter(name: &str) -> RefOr<Parameter> {
    RefOr::Ref(Ref::new(format!("#/components/parameters/{name}")))
}

/// Returns a reference to one of [`headers`].
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

/// Returns the shared parameters by name.
pub(crate) fn parameters() -> BTreeMap<String, RefOr<Parameter>> {
    let limit = ObjectBuilder::new().schema_type(Type::Integer);
    let limit = limit.minimum(Some(1)).maximum(Some(100)).default(Some(50.into()));
    let cursor = text().pattern(Some("^[A-Za-z0-9_-]+$"));
    let key = text().min_length(Some(1)).max_length(Some(IdempotencyKey::MAX_LENGTH));
    let key = key.pattern(Some("^[ -~]+$"));
    let key = key.examples(["0b8f6d1e-order-7"]);
    [
        (
            "Limit",
            new("limit", ParameterIn::Query, "The maximum number of items on the page.", limit),
        ),
        (
            "Cursor",
            new(
                "cursor",
                ParameterIn::Query,
                "The `nextCursor` of the previous page, unchanged, with the same path and filters.",
                cursor,
            ),
        ),
        (
            IDEMPOTENCY_KEY,
            new(
                "Idempotency-Key",
                ParameterIn::Header,
                "Makes the request safe to retry: for 24 hours, the same key with the same body \
                 (byte for byte) returns the same response, and the request is carried out only \
                 once. Any unique string of printable ASCII characters, such as a UUID.",
                key,
            ),
        ),
    ]
    .into_iter()
    .map(|(name, parameter)| (name.to_owned(), RefOr::T(parameter)))
    .collect()
}

/// Returns the shared response headers by name.
pub(crate) fn headers() -> BTreeMap<String, RefOr<Header>> {
    let seconds = ObjectBuilder::new().schema_type(Type::Integer).minimum(Some(0));
    [
        (
            "X-Request-Id",
            "The id of the request, which also appears in the log of the service. A client can set \
             it by sending this header with 1 to 128 letters, digits and `-_.`.",
            text().pattern(Some("^[A-Za-z0-9_.-]{1,128}$")),
        ),
        ("Location", "The URL path of the created resource.", text().pattern(Some("^/v1/"))),
        (
            "Idempotent-Replayed",
            "`true` if this is the stored response of an earlier request with the same \
             `Idempotency-Key`; absent otherwise.",
            text().enum_values(Some(["true"])),
        ),
        (
            "RateLimit-Policy",
            "The rate limit of the API key: `q` requests in `w` seconds. Present on every response \
             if there is a limit.",
            text().pattern(Some("^\"key\";q=[0-9]+;w=1$")),
        ),
        (
            "RateLimit",
            "The remaining quota: `r` requests for the next `t` seconds. Present on every response \
             if there is a limit.",
            text().pattern(Some("^\"key\";r=[0-9]+;t=[0-9]+$")),
        ),
        ("Retry-After", "The number of seconds to wait before retrying.", seconds),
        (
            "WWW-Authenticate",
            "The required authentication scheme.",
            text().enum_values(Some(["Bearer"])),
        ),
        (
            "ETag",
            "The version of the document, for `If-None-Match`.",
            text().pattern(Some("^\"[^\"]+\"$")),
        ),
    ]
    .into_iter()
    .map(|(name, description, schema)| {
        let header = HeaderBuilder::new().description(Some(description)).schema(Some(schema));
        (name.to_owned(), RefOr::T(header.build()))
    })
    .collect()
}
