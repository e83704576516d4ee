//! `GET /v1/balance`.

use crate::app::App;
use crate::auth;
use crate::error::Problem;
use crate::openapi::document::MONEY;
use crate::openapi::operation::Operation;
use crate::openapi::routes::Routes;
use crate::query;
use crate::view::{json, shown};
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode, Uri};
use axum::response::Response;
use heliograph_domain::account::{Mode, Scope};
use heliograph_domain::money::Amount;
use heliograph_domain::openapi::Currency;
use heliograph_service::accounts;
use serde::Serialize;
use std::sync::Arc;
use utoipa::ToSchema;

pub(crate) fn routes() -> Routes {
    let about = Operation::get("/v1/balance", "getBalance", "Shows what the account has")
        .describe(
            "Money is reserved when a message is accepted, and spent part by part as a carrier takes them; what is not \
             spent is available again. A test key has no money and needs none.",
        )
        .answers(StatusCode::OK, "The balance.", &View::sample());
    Routes::default().add(about.tag(MONEY).scope(Scope::Read), show)
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
#[derive(Serialize, ToSchema)]
#[schema(as = Balance)]
#[serde(rename_all = "camelCase")]
struct View<'a> {
    /// What new messages may cost.
    #[serde(serialize_with = "shown")]
    available: Amount,
    /// Set aside for messages that no carrier took yet.
    #[serde(serialize_with = "shown")]
    reserved: Amount,
    #[schema(value_type = Currency)]
    currency: &'a str,
    #[schema(value_type = Mode)]
    mode: &'static str,
}

impl View<'static> {
    fn sample() -> Self {
        let (available, reserved) = (Amount(12_340_000), Amount(42_000));
        Self { available, reserved, currency: "EUR", mode: Mode::Live.name() }
    }
}
