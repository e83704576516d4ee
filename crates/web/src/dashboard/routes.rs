//! Which address leads to which page.

use crate::app::App;
use crate::dashboard::refusal::{self, Refusal};
use crate::dashboard::visit::Visit;
use crate::dashboard::{
    assets, audit, conversations, join, keys, live, messages, operator, optouts, overview, page,
    people, phone, place, reset, security, send, sign_in, sign_up, webhooks,
};
use axum::Router;
use axum::response::Response;
use axum::routing::get;
use std::sync::Arc;
use tower_http::compression::CompressionLayer;

/// All pages.
pub(crate) fn routes(app: &Arc<App>) -> Router<Arc<App>> {
    Router::new()
        .route("/", get(home))
        .merge(sign_in::routes())
        .merge(sign_up::routes())
        .merge(reset::routes())
        .merge(join::routes())
        .merge(people::routes())
        .merge(security::routes())
        .merge(audit::routes())
        .merge(place::routes())
        .merge(live::routes())
        .merge(phone::routes())
        .merge(overview::routes())
        .merge(optouts::routes())
        .merge(operator::routes())
        .merge(messages::routes())
        .merge(conversations::routes())
        .merge(send::routes())
        .merge(keys::routes())
        .merge(webhooks::routes())
        .layer(axum::middleware::from_fn_with_state(app.clone(), refusal::render))
        .merge(assets::routes())
        .layer(CompressionLayer::new())
}

async fn home(_: Visit) -> Result<Response, Refusal> {
    Ok(page::go("/overview"))
}
