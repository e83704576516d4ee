//! The webhooks section: what is posted to endpoints, each kind of event as it is rendered.

use crate::openapi::schemas::Schemas;
use heliograph_domain::event::openapi::{self, Documented};
use utoipa::openapi::path::{
    HttpMethod, OperationBuilder, ParameterBuilder, ParameterIn, PathItem, Paths, PathsBuilder,
};
use utoipa::openapi::request_body::RequestBodyBuilder;
use utoipa::openapi::schema::{ObjectBuilder, Type};
use utoipa::openapi::{ContentBuilder, Ref, Required, ResponseBuilder};

/// The tag of all of them.
pub(crate) const TAG: &str = "Webhooks";

/// All kinds, and their schemas.
pub(crate) fn webhooks(schemas: &mut Schemas) -> Paths {
    schemas.answers(openapi::parts());
    let mut paths = PathsBuilder::new();
    for event in openapi::documented() {
        schemas.insert(event.name.to_owned(), event.schema.clone());
        paths = paths.path(event.kind, PathItem::new(HttpMethod::Post, operation(&event)));
    }
    paths.build()
}

fn operation(event: &Documented) -> OperationBuilder {
    let content = ContentBuilder::new()
        .schema(Some(Ref::from_schema_name(event.name)))
        .example(serde_json::from_slice(&event.example).ok());
    let body = RequestBodyBuilder::new()
        .description(Some("The event. New fields may come: ignore what you do not know."))
        .required(Some(Required::True))
        .content("application/json", content.build());
    let taken =
        "Taken. Any status from 200 to 299 will do; anything else is tried again over three days.";
    let operation = OperationBuilder::new()
        .operation_id(Some(id(event.kind)))
        .tag(TAG)
        .summary(Some(event.summary))
        .description(Some(
            "Posted to the endpoints that listen to it, signed by Standard Webhooks 1.0.0, at least once. \
             Verify the signature before you read the body, and answer within 15 seconds.",
        ))
        .request_body(Some(body.build()))
        .response("2XX", ResponseBuilder::new().description(taken))
        .response("410", ResponseBuilder::new().description("The endpoint is gone: it is switched off."))
        .securities(Some([]));
    headers().into_iter().fold(operation, OperationBuilder::parameter)
}

/// `message.delivered` as `messageDelivered`.
fn id(kind: &str) -> String {
    let (noun, verb) = kind.split_once('.').unwrap_or((kind, ""));
    let (first, rest) = verb.split_at_checked(1).unwrap_or_default();
    format!("{noun}{}{rest}", first.to_uppercase())
}

fn headers() -> [ParameterBuilder; 3] {
    [
        ("webhook-id", "The event's id: the same in each attempt, at each endpoint and in each replay."),
        ("webhook-timestamp", "When this attempt was made, in seconds since 1970."),
        (
            "webhook-signature",
            "`v1,` and the base64 of HMAC-SHA256 over `id.timestamp.body`; after a rotation of the secret two of \
             them, with a space between.",
        ),
    ]
    .map(|(name, description)| {
        let (kind, pattern) = match name {
            "webhook-timestamp" => (Type::Integer, None),
            "webhook-signature" => (Type::String, Some("^v1,[A-Za-z0-9+/]+=*( v1,[A-Za-z0-9+/]+=*)*$")),
            _ => (Type::String, None),
        };
        ParameterBuilder::new()
            .name(name)
            .parameter_in(ParameterIn::Header)
            .required(Required::True)
            .description(Some(description))
            .schema(Some(ObjectBuilder::new().schema_type(kind).pattern(pattern)))
    })
}
