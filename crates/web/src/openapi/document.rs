//! The whole document.

use crate::error::code::Code;
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

/// The groups, in the order in which they are read.
pub(crate) const MESSAGES: &str = "Messages";
pub(crate) const MONEY: &str = "Money";
pub(crate) const INBOUND: &str = "Inbound messages";
pub(crate) const OPTOUTS: &str = "Opt-out lists";
pub(crate) const WATCHING: &str = "Watching";

const ABOUT: &str = "\
Sends SMS and tells what became of them.

**Keys.** Each request carries `Authorization: Bearer <API key>`. A test key (`hg_test_…`) reaches only the simulated \
carrier and costs nothing; a live key (`hg_live_…`) reaches people. A key sees only what is of its own mode. It has \
scopes: `send`, `read` and `manage`, all of them by default.

**Errors** are `application/problem+json` (RFC 9457), with a `code` for programs and a `detail` for people. Everything \
that is wrong with a body is said at once. All codes are explained under [/docs/errors](/docs/errors).

**Nothing is passed over in silence.** A field or parameter that an operation does not know is refused, so that a \
mistyped name never changes what is sent. In answers new fields may come: ignore those that you do not know.

**Repeating is safe** with an `Idempotency-Key`: the same key with the same body gets the same answer, and one \
message is sent.

**Money** is a decimal string with its currency, never a floating-point number. **Times** are RFC 3339 in UTC.";

/// What these operations and the webhooks are, for other people's programs.
pub(crate) fn document(operations: &[Operation]) -> OpenApi {
    let mut schemas = Schemas::default();
    let mut codes: BTreeSet<Code> = BTreeSet::new();
    let mut paths = PathsBuilder::new();
    for operation in operations {
        let item = PathItem::new(operation.method.clone(), operation.documented());
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
        "An API key: `hg_live_` or `hg_test_` and 36 letters and digits. It is shown once, when it is made.".to_owned(),
    );
    SecurityScheme::Http(bearer)
}

fn tags() -> Vec<Tag> {
    [
        (MESSAGES, "Sending messages, and seeing what became of them."),
        (MONEY, "What it costs."),
        (INBOUND, "What people write to your numbers."),
        (OPTOUTS, "Who is not written to, and how that is known."),
        (
            events::TAG,
            "What is posted to your own server as it happens, signed by Standard Webhooks 1.0.0.",
        ),
        (WATCHING, "For those who run the service. None of it needs a key."),
    ]
    .map(|(name, about)| TagBuilder::new().name(name).description(Some(about)).build())
    .into()
}
