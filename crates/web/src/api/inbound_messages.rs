//! `GET /v1/inbound-messages` and `GET /v1/inbound-messages/{id}`.

use crate::app::App;
use crate::auth;
use crate::error::Problem;
use crate::openapi::document::INBOUND;
use crate::openapi::operation::Operation;
use crate::openapi::routes::Routes;
use crate::query::{self, Page};
use crate::view::{json, shown, shown_if};
use axum::extract::rejection::PathRejection;
use axum::extract::{Path, State};
use axum::http::{HeaderMap, StatusCode, Uri};
use axum::response::Response;
use heliograph_domain::account::{Mode, Scope};
use heliograph_domain::id::{InboundId, MessageId};
use heliograph_domain::inbound::Keyword;
use heliograph_domain::inbound_message::InboundMessage;
use heliograph_domain::time::Timestamp;
use heliograph_service::inbound_messages;
use serde::Serialize;
use std::sync::Arc;
use utoipa::{PartialSchema, ToSchema};
use uuid::{Uuid, uuid};

pub(crate) fn routes() -> Routes {
    let all =
        Operation::get("/v1/inbound-messages", "listInboundMessages", "Lists what people wrote")
            .describe("The newest first. They are kept whole, however long they are.")
            .answers_page(&View::sample());
    let one = Operation::get(
        "/v1/inbound-messages/{id}",
        "getInboundMessage",
        "Shows one message that a person sent",
    )
    .part(
        "id",
        "The id of the message, as `message.received` or the list gives it.",
        InboundId::schema(),
    )
    .answers(StatusCode::OK, "The message.", &View::sample());
    Routes::default()
        .add(all.tag(INBOUND).scope(Scope::Read), list)
        .add(one.tag(INBOUND).scope(Scope::Read), show)
}

async fn list(
    State(app): State<Arc<App>>,
    uri: Uri,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let caller = auth::reader(&app, &headers).await?;
    let page: Page<InboundId> = Page::read(&uri)?;
    let before = page.after.unwrap_or(InboundId(Uuid::max()));
    let found = inbound_messages::list(&app.context, &caller, before, page.look()).await?;
    Ok(page.answer(&found, |m| m.id, View::of))
}

async fn show(
    State(app): State<Arc<App>>,
    id: Result<Path<String>, PathRejection>,
    uri: Uri,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let caller = auth::reader(&app, &headers).await?;
    query::none(&uri)?;
    let Path(id) = id.map_err(|_| Problem::not_found())?;
    let id = id.parse().map_err(|_| Problem::not_found())?;
    let found = inbound_messages::get(&app.context, &caller, id).await?;
    Ok(json(StatusCode::OK, &View::of(&found)))
}

/// A message that a person sent.
#[derive(Serialize, ToSchema)]
#[schema(as = InboundMessage)]
#[serde(rename_all = "camelCase")]
struct View {
    /// Its id.
    #[serde(serialize_with = "shown")]
    id: InboundId,
    /// Who sent it: digits without the plus, or a name.
    from: String,
    /// The number that it was written to.
    to: String,
    /// What it says.
    text: String,
    /// When its last part came.
    #[serde(serialize_with = "shown")]
    received_at: Timestamp,
    /// The last message from that number to that person.
    #[serde(serialize_with = "shown_if")]
    in_reply_to: Option<MessageId>,
    /// What it asks for, when it is one of the known words.
    #[schema(value_type = Option<Keyword>)]
    keyword: Option<&'static str>,
    #[schema(value_type = Mode)]
    mode: &'static str,
    /// Whether all of its parts came.
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
