//! `/v1/messages` and `/v1/send/sms`: sending, listing, reading and cancelling messages.

mod list;
pub(crate) mod send;
mod view;

use crate::auth;
use crate::body;
use crate::error::Problem;
use crate::error::code::ProblemCode;
pub use crate::messages::view::MessageView;
use crate::openapi::document::MESSAGES;
use crate::openapi::operation::Operation;
use crate::openapi::routes::ApiRoutes;
use crate::query;
use crate::response::json;
use crate::state::ApiState;
use axum::extract::rejection::PathRejection;
use axum::extract::{Path, Request, State};
use axum::http::{HeaderMap, StatusCode, Uri};
use axum::response::Response;
use heliograph_domain::account::Scope;
use heliograph_domain::id::MessageId;
use heliograph_domain::message::MessageStatus;
use heliograph_service::messaging::messages;
use std::sync::Arc;
use utoipa::PartialSchema;

type IdPath = Result<Path<String>, PathRejection>;

pub(crate) fn routes() -> ApiRoutes {
    ApiRoutes::default()
        .add(send::operation().tag(MESSAGES).scope(Scope::Send), send::send_sms)
        .add(list::operation().tag(MESSAGES).scope(Scope::Read), list::list)
        .add(show_operation().tag(MESSAGES).scope(Scope::Read), show)
        .add(cancel_operation().tag(MESSAGES).scope(Scope::Send), cancel)
}

fn show_operation() -> Operation {
    Operation::get("/v1/messages/{id}", "getMessage", "Get a message")
        .description("Returns a message with its current status and its timeline.")
        .path_param("id", "The id of the message.", MessageId::schema())
        .response(StatusCode::OK, "The message.", &MessageView::sample(MessageStatus::Delivered))
}

async fn show(
    State(app): State<Arc<ApiState>>,
    id: IdPath,
    uri: Uri,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let caller = auth::authenticate(&app, &headers).await?;
    query::require_empty(&uri)?;
    let (message, state) = messages::get(&app.context, &caller, parse_id(id)?).await?;
    Ok(json(StatusCode::OK, &MessageView::new(&message, &state, &caller)))
}

fn cancel_operation() -> Operation {
    let path = "/v1/messages/{id}/cancel";
    Operation::post(path, "cancelMessage", "Cancel a queued message")
        .description(
            "Cancels a message of which no part was sent yet, and releases its reserved price. \
             Cancelling a message that is already cancelled succeeds and returns it. The request \
             body must be empty or an empty object.",
        )
        .path_param("id", "The id of the message.", MessageId::schema())
        .response(
            StatusCode::OK,
            "The cancelled message.",
            &MessageView::sample(MessageStatus::Cancelled),
        )
        .problems(&[ProblemCode::NotCancellable, ProblemCode::RequestTimeout])
}

async fn cancel(
    State(app): State<Arc<ApiState>>,
    id: IdPath,
    request: Request,
) -> Result<Response, Problem> {
    let (head, body) = request.into_parts();
    let caller = auth::authenticate(&app, &head.headers).await?;
    query::require_empty(&head.uri)?;
    body::require_empty(body).await?;
    let done = messages::cancel(&app.context, &app.writer, &caller, parse_id(id)?).await;
    let (message, state) = done?;
    Ok(json(StatusCode::OK, &MessageView::new(&message, &state, &caller)))
}

fn parse_id(id: IdPath) -> Result<MessageId, Problem> {
    let Path(id) = id.map_err(|_| Problem::not_found())?;
    id.parse().map_err(|_| Problem::not_found())
}
