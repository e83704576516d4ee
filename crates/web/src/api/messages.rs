//! What was sent: `/v1/messages`, and sending.

mod list;
pub(crate) mod send;
mod view;

use crate::api::messages::send::send_sms;
use crate::api::messages::view::View;
use crate::app::App;
use crate::auth;
use crate::body;
use crate::error::Problem;
use crate::error::code::Code;
use crate::openapi::document::MESSAGES;
use crate::openapi::operation::Operation;
use crate::openapi::routes::Routes;
use crate::query;
use crate::view::json;
use axum::extract::rejection::PathRejection;
use axum::extract::{Path, Request, State};
use axum::http::{HeaderMap, StatusCode, Uri};
use axum::response::Response;
use heliograph_domain::account::Scope;
use heliograph_domain::id::MessageId;
use heliograph_domain::message::Status;
use heliograph_service::messages;
use std::sync::Arc;
use utoipa::PartialSchema;

type One = Result<Path<String>, PathRejection>;

pub(crate) fn routes() -> Routes {
    let send = |State(app): State<Arc<App>>, request: Request| async move {
        let (head, body) = request.into_parts();
        send_sms(&app, &head, body).await
    };
    Routes::default()
        .add(send::about().tag(MESSAGES).scope(Scope::Send), send)
        .add(list::about().tag(MESSAGES).scope(Scope::Read), list::list)
        .add(about_show().tag(MESSAGES).scope(Scope::Read), show)
        .add(about_cancel().tag(MESSAGES).scope(Scope::Send), cancel)
}

fn about_show() -> Operation {
    Operation::get(
        "/v1/messages/{id}",
        "getMessage",
        "Shows a message, where it stands and how it came there",
    )
    .part("id", "The id of the message.", MessageId::schema())
    .answers(StatusCode::OK, "The message.", &View::sample(Status::Delivered))
}

async fn show(
    State(app): State<Arc<App>>,
    id: One,
    uri: Uri,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let caller = auth::reader(&app, &headers).await?;
    query::none(&uri)?;
    let (message, state) = messages::get(&app.context, &caller, which(id)?).await?;
    Ok(json(StatusCode::OK, &View::new(&message, &state, &caller)))
}

fn about_cancel() -> Operation {
    let path = "/v1/messages/{id}/cancel";
    Operation::post(path, "cancelMessage", "Calls back a message that has not begun to go out")
        .describe(
            "What was set aside for it is available again. A message that was called back before stays so, and is \
             shown again. There is nothing to say about it: a body is refused, unless it is an empty object.",
        )
        .part("id", "The id of the message.", MessageId::schema())
        .answers(StatusCode::OK, "It will not be sent.", &View::sample(Status::Cancelled))
        .problems(&[Code::NotCancellable, Code::RequestTimeout])
}

async fn cancel(
    State(app): State<Arc<App>>,
    id: One,
    request: Request,
) -> Result<Response, Problem> {
    let (head, body) = request.into_parts();
    let caller = auth::reader(&app, &head.headers).await?;
    query::none(&head.uri)?;
    body::none(body).await?;
    let done = messages::cancel(&app.context, &app.writer, &caller, which(id)?).await;
    let (message, state) = done?;
    Ok(json(StatusCode::OK, &View::new(&message, &state, &caller)))
}

fn which(id: One) -> Result<MessageId, Problem> {
    let Path(id) = id.map_err(|_| Problem::not_found())?;
    id.parse().map_err(|_| Problem::not_found())
}
