//! `GET /v1/balance`.

use crate::auth;
use crate::error::Problem;
use crate::openapi::document::BALANCE;
use crate::openapi::operation::Operation;
use crate::openapi::routes::ApiRoutes;
use crate::query;
use crate::response::{as_string, json};
use crate::state::ApiState;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode, Uri};
use axum::response::Response;
use heliograph_domain::account::{Mode, Scope};
use heliograph_domain::money::Amount;
use heliograph_domain::openapi::Currency;
use heliograph_service::identity::accounts;
use serde::Serialize;
use std::sync::Arc;
use utoipa::ToSchema;

pub(crate) fn routes() -> ApiRoutes {
    let about = Operation::get("/v1/balance", "getBalance", "Get balance")
        .description(
            "Returns the balance of the account. The price of a message is reserved when the \
             message is accepted and charged part by part as the carrier accepts it; the rest is \
             released. Test mode has no balance and needs none.",
        )
        .response(StatusCode::OK, "The balance.", &View::sample());
    ApiRoutes::default().add(about.tag(BALANCE).scope(Scope::Read), show)
}

async fn show(
    State(app): State<Arc<ApiState>>,
    uri: Uri,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let caller = auth::authenticate(&app, &headers).await?;
    query::require_empty(&uri)?;
    let (available, reserved) = accounts::balance(&app.context, &caller).await?;
    let (currency, mode) = (&*caller.currency, caller.mode.name());
    Ok(json(StatusCode::OK, &View { available, reserved, currency, mode }))
}

/// The balance of an account.
#[derive(Serialize, ToSchema)]
#[schema(as = Balance)]
#[serde(rename_all = "camelCase")]
struct View<'a> {
    /// The amount that is available for new messages.
    #[serde(serialize_with = "as_string")]
    available: Amount,
    /// The amount reserved for messages that no carrier has accepted yet.
    #[serde(serialize_with = "as_string")]
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
