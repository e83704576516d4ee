//! The `webhooks` section of the OpenAPI document: the requests that are sent to webhook endpoints.

use crate::openapi::schemas::Schemas;
use heliograph_domain::event::openapi::{self, EventDoc};
use utoipa::openapi::path::{
    HttpMethod, OperationBuilder, ParameterBuilder, ParameterIn, PathItem, Paths, PathsBuilder,
};
use utoipa::openapi::request_body::RequestBodyBuilder;
use utoipa::openapi::schema::{ObjectBuilder, Type};
use utoipa::openapi::{ContentBuilder, Ref, Required, ResponseBuilder};

/// The tag of the webhooks.
pub(crate) const TAG: &str = "Webhooks";

/// Returns the webhooks of all kinds of events, and adds their schemas.
pub(crate) fn webhooks(schemas: &mut Schemas) -> Paths {
    schemas.extend_responses(openapi::components());
    let mut paths = PathsBuilder::new();
    for event in openapi::event_docs() {
        schemas.insert(event.name.to_owned(), event.schema.clone());
        paths = paths.path(event.kind, PathItem::new(HttpMethod::Post, operation(&event)));
    }
    paths.build()
}

fn operation(event: &EventDoc) -> OperationBuilder {
    let content = ContentBuilder::new()
        .schema(Some(Ref::from_schema_name(event.name)))
        .example(serde_json::from_slice(&event.example).ok());
    let body = RequestBodyBuilder::new()
        .description(Some(
            "The event. New fields can be added at any time: ignore the ones that you do not know.",
        ))
        .required(Some(Required::True))
        .content("application/json", content.build());
    let received = "The event was received. Any status from 200 to 299 counts as success; other \
                    responses are retried for three days.";
    let operation = OperationBuilder::new()
        .operation_id(Some(id(event.kind)))
        .tag(TAG)
        .summary(Some(event.summary))
        .description(Some(
            "Sent at least once to every endpoint that is subscribed to this event, signed \
             according to Standard Webhooks 1.0.0. Verify the signature before you parse the body, \
             and respond within 15 seconds.",
        ))
        .request_body(Some(body.build()))
        .response("2XX", ResponseBuilder::new().description(received))
        .response(
            "410",
            ResponseBuilder::new().description(
                "The endpoint no longer exists. \
                                                             Heliograph disables it.",
            ),
        )
        .securities(Some([]));
    headers().into_iter().fold(operation, OperationBuilder::parameter)
}

/// Returns the operation id of a kind of event: `messageDelivered` for `message.delivered`.
fn id(kind: &str) -> String {
    let (noun, verb) = kind.split_once('.').unwrap_or((kind, ""));
    let (first, rest) = verb.split_at_checked(1).unwrap_or_default();
    format!("{noun}{}{rest}", first.to_uppercase())
}

fn headers() -> [ParameterBuilder; 3] {
    [
        (
            "webhook-id",
            "The id of the event, the same in all attempts, at all endpoints and in \
                        replays. Use it to detect duplicates.",
        ),
        ("webhook-timestamp", "The time of this delivery attempt, as a Unix timestamp in seconds."),
        (
            "webhook-signature",
            "`v1,` followed by the Base64-encoded HMAC-SHA256 of `id.timestamp.body`. After a \
             rotation of the secret, two signatures separated by a space.",
        ),
    ]
    .map(|(name, description)| {
        let (kind, pattern) = match name {
            "webhook-timestamp" => (Type::Integer, None),
            "webhook-signature" => {
                (Type::String, Some("^v1,[A-Za-z0-9+/]+=*( v1,[A-Za-z0-9+/]+=*)*$"))
            }
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
