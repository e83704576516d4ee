//! `GET /v1/balance`.

use crate::app::App;
use crate::auth;
use crate::error::Problem;
use crate::query;
use crate::view::{json, shown};
use axum::Router;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode, Uri};
use axum::response::Response;
use axum::routing::get;
use heliograph_domain::money::Amount;
use heliograph_service::accounts;
use serde::Serialize;
use std::sync::Arc;

pub(crate) fn routes() -> Router<Arc<App>> {
    Router::new().route("/balance", get(show))
}

async fn show(
    State(app): State<Arc<App>>,
    uri: Uri,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let caller = auth::reader(&app, &headers).await?;
    query::none(&uri)?;
    let (available, reserved) = accounts::balance(&app.context, &caller).await?;
    let (currency, mode) = (&*caller.currency, caller.mode.name());
    Ok(json(StatusCode::OK, &View { available, reserved, currency, mode }))
}

/// What an account has.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct View<'a> {
    #[serde(serialize_with = "shown")]
    available: Amount,
    #[serde(serialize_with = "shown")]
    reserved: Amount,
    currency: &'a str,
    mode: &'static str,
}
