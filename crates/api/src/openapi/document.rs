//! The OpenAPI document of all operations and webhooks.

use crate::error::code::ProblemCode;
use crate::openapi::operation::{API_KEY, Operation};
use crate::openapi::schemas::Schemas;
use crate::openapi::{events, parameters, problems};
use std::collections::BTreeSet;
use utoipa::openapi::path::PathsBuilder;
use utoipa::openapi::security::{Http, HttpAuthScheme, SecurityScheme};
use utoipa::openapi::tag::TagBuilder;
use utoipa::openapi::{
    Components, Info, License, OpenApi, OpenApiBuilder, PathItem, RefOr, Server, Tag,
};

/// The tags, in the order of the documentation.
pub(crate) const MESSAGES: &str = "Messages";
pub(crate) const BALANCE: &str = "Balance";
pub(crate) const INBOUND: &str = "Inbound messages";
pub(crate) const OPTOUTS: &str = "Opt-out lists";
pub(crate) const HEALTH: &str = "Health and metrics";

const ABOUT: &str = "\
Send SMS messages, track their delivery, and receive replies.

**Authentication.** Every request carries an API key as `Authorization: Bearer <API key>`. Test \
keys (`hg_test_…`) reach only the simulated carrier and cost nothing; live keys (`hg_live_…`) send \
real messages. A key can access only data of its own mode. A key has one or more scopes: `send`, \
`read` and `manage`; by default, all of them.

**Errors** are `application/problem+json` documents (RFC 9457), with a `code` for programs and a \
`detail` for people. All validation errors of a request are returned at once. See \
[Errors](/docs/errors) for all codes.

**Unknown fields are rejected.** A request with an unknown field or query parameter fails, so that \
a mistyped name never changes what is sent. Responses can get new fields and \
enumerations new values at any time: ignore the ones that you do not know.

**Idempotency.** Requests with an `Idempotency-Key` header are safe to retry: the same key with \
the same body returns the same response, and the message is sent only once.

**Amounts** are decimal strings with a currency, never floating-point numbers. **Timestamps** are \
RFC 3339 in UTC.";

/// Builds the OpenAPI document of these operations and of the webhooks.
pub(crate) fn document(operations: &[Operation]) -> OpenApi {
    let mut schemas = Schemas::default();
    let mut codes: BTreeSet<ProblemCode> = BTreeSet::new();
    let mut paths = PathsBuilder::new();
    for operation in operations {
        let item = PathItem::new(operation.method.clone(), operation.to_openapi());
        paths = paths.path(operation.path, item);
        schemas.merge(&operation.schemas);
        codes.extend(&operation.problems);
    }
    problems::schemas(&mut schemas);
    let webhooks = events::webhooks(&mut schemas);
    let mut components = Components::new();
    components.schemas = schemas.into_inner();
    components.parameters = parameters::parameters();
    components.headers = parameters::headers();
    components.responses = problems::shared(operations.iter().map(|o| &o.problems));
    components.examples = problems::examples(&codes);
    components.security_schemes.insert(API_KEY.to_owned(), RefOr::T(bearer()));
    OpenApiBuilder::new()
        .info(info())
        .servers(Some([Server::new("/")]))
        .tags(Some(tags()))
        .paths(paths)
        .webhooks(Some(webhooks))
        .components(Some(components))
        .build()
}

fn info() -> Info {
    let mut info = Info::new("Heliograph API", env!("CARGO_PKG_VERSION"));
    let mut license = License::new(env!("CARGO_PKG_LICENSE"));
    license.identifier = Some(env!("CARGO_PKG_LICENSE").to_owned());
    info.license = Some(license);
    info.description = Some(ABOUT.to_owned());
    info
}

fn bearer() -> SecurityScheme {
    let mut bearer = Http::new(HttpAuthScheme::Bearer);
    bearer.description = Some(
        "An API key: `hg_live_` or `hg_test_`, followed by 36 letters and digits. It is shown only \
         once, when it is created.".to_owned(),
    );
    SecurityScheme::Http(bearer)
}

fn tags() -> Vec<Tag> {
    [
        (MESSAGES, "Send messages and track their delivery."),
        (BALANCE, "The prepaid balance of the account."),
        (INBOUND, "Messages that people send to your numbers."),
        (OPTOUTS, "Numbers that must not receive messages, each with the record of its opt-out."),
        (
            events::TAG,
            "Events that are sent to your server as they happen, signed according to Standard \
             Webhooks 1.0.0.",
        ),
        (HEALTH, "Monitoring endpoints, and this document. They require no API key."),
    ]
    .map(|(name, about)| TagBuilder::new().name(name).description(Some(about)).build())
    .into()
}
