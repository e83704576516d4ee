//! `GET /v1/inbound-messages` and `GET /v1/inbound-messages/{id}`.

use crate::app::App;
use crate::auth;
use crate::error::Problem;
use crate::query::{self, Page};
use crate::view::{json, shown, shown_if};
use axum::Router;
use axum::extract::rejection::PathRejection;
use axum::extract::{Path, State};
use axum::http::{HeaderMap, StatusCode, Uri};
use axum::response::Response;
use axum::routing::get;
use heliograph_domain::id::{InboundId, MessageId};
use heliograph_domain::inbound::Keyword;
use heliograph_domain::inbound_message::InboundMessage;
use heliograph_domain::time::Timestamp;
use heliograph_service::inbound_messages;
use serde::Serialize;
use std::sync::Arc;
use uuid::Uuid;

pub(crate) fn routes() -> Router<Arc<App>> {
    Router::new().route("/inbound-messages", get(list)).route("/inbound-messages/{id}", get(show))
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

/// A message as the API shows it.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct View {
    #[serde(serialize_with = "shown")]
    id: InboundId,
    from: String,
    to: String,
    text: String,
    #[serde(serialize_with = "shown")]
    received_at: Timestamp,
    #[serde(serialize_with = "shown_if")]
    in_reply_to: Option<MessageId>,
    keyword: Option<&'static str>,
    mode: &'static str,
    complete: bool,
}

impl View {
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
