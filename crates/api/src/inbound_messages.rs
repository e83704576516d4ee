//! `GET /v1/inbound-messages` and `GET /v1/inbound-messages/{id}`.

use crate::auth;
use crate::error::Problem;
use crate::openapi::document::INBOUND;
use crate::openapi::operation::Operation;
use crate::openapi::routes::ApiRoutes;
use crate::query::{self, PageParams};
use crate::response::{as_string, as_string_opt, json};
use crate::state::ApiState;
use axum::extract::rejection::PathRejection;
use axum::extract::{Path, State};
use axum::http::{HeaderMap, StatusCode, Uri};
use axum::response::Response;
use heliograph_domain::account::{Mode, Scope};
use heliograph_domain::id::{InboundId, MessageId};
use heliograph_domain::inbound::Keyword;
use heliograph_domain::inbound_message::InboundMessage;
use heliograph_domain::time::Timestamp;
use heliograph_service::messaging::inbound_messages;
use serde::Serialize;
use std::sync::Arc;
use utoipa::{PartialSchema, ToSchema};
use uuid::{Uuid, uuid};

pub(crate) fn routes() -> ApiRoutes {
    let all =
        Operation::get("/v1/inbound-messages", "listInboundMessages", "List inbound messages")
            .description(
                "Returns the messages that people sent to your numbers, newest first. \
                          Long messages are reassembled from their parts.",
            )
            .page_response(&View::sample());
    let one =
        Operation::get("/v1/inbound-messages/{id}", "getInboundMessage", "Get an inbound message")
            .path_param(
                "id",
                "The id of the inbound message, from the list or a `message.received` event.",
                InboundId::schema(),
            )
            .response(StatusCode::OK, "The inbound message.", &View::sample());
    ApiRoutes::default()
        .add(all.tag(INBOUND).scope(Scope::Read), list)
        .add(one.tag(INBOUND).scope(Scope::Read), show)
}

async fn list(
    State(app): State<Arc<ApiState>>,
    uri: Uri,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let caller = auth::authenticate(&app, &headers).await?;
    let page: PageParams<InboundId> = PageParams::parse(&uri)?;
    let before = page.after.unwrap_or(InboundId(Uuid::max()));
    let found = inbound_messages::list(&app.context, &caller, before, page.fetch_limit()).await?;
    Ok(page.respond(&found, |m| m.id, View::of))
}

async fn show(
    State(app): State<Arc<ApiState>>,
    id: Result<Path<String>, PathRejection>,
    uri: Uri,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let caller = auth::authenticate(&app, &headers).await?;
    query::require_empty(&uri)?;
    let Path(id) = id.map_err(|_| Problem::not_found())?;
    let id = id.parse().map_err(|_| Problem::not_found())?;
    let found = inbound_messages::get(&app.context, &caller, id).await?;
    Ok(json(StatusCode::OK, &View::of(&found)))
}

/// A message that a person sent to one of your numbers.
#[derive(Serialize, ToSchema)]
#[schema(as = InboundMessage)]
#[serde(rename_all = "camelCase")]
struct View {
    /// The id of the inbound message.
    #[serde(serialize_with = "as_string")]
    id: InboundId,
    /// The sender: a number as digits without the plus, or a name.
    from: String,
    /// The number that received the message.
    to: String,
    /// The text of the message.
    text: String,
    /// The time at which the last part arrived.
    #[serde(serialize_with = "as_string")]
    received_at: Timestamp,
    /// The id of the latest message from that number to the sender, if there is one.
    #[serde(serialize_with = "as_string_opt")]
    in_reply_to: Option<MessageId>,
    /// The keyword, if the text is one.
    #[schema(value_type = Option<Keyword>)]
    keyword: Option<&'static str>,
    #[schema(value_type = Mode)]
    mode: &'static str,
    /// True if all parts arrived.
    complete: bool,
}

impl View {
    fn sample() -> Self {
        Self {
            id: InboundId(uuid!("01a1fd14-0a04-7bdd-8caa-a6c27b412260")),
            from: "447700900123".to_owned(),
            to: "447700900000".to_owned(),
            text: "Stop!".to_owned(),
            received_at: Timestamp(1_795_247_311_364),
            in_reply_to: Some(MessageId(uuid!("01a1fd13-fdac-71b5-af6a-ef0fb5c1bcea"))),
            keyword: Some(Keyword::Stop.name()),
            mode: Mode::Live.name(),
            complete: true,
        }
    }

    fn of(m: &InboundMessage) -> Self {
        Self {
            id: m.id,
            from: m.from.clone(),
            to: m.to.clone(),
            text: m.text.clone(),
            received_at: m.received_at,
            in_reply_to: m.in_reply_to,
            keyword: m.keyword.map(Keyword::name),
            mode: m.mode.name(),
            complete: m.complete,
        }
    }
}
