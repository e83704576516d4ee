//! The routes of all dashboard pages.

use crate::error_page::PageError;
use crate::session::SessionRequest;
use crate::state::DashboardState;
use crate::{
    api_keys, assets, audit, confirm, conversations, error_response, join, limits, live, members,
    messages, mode, operator, optouts, overview, page, page_limit, password_reset, phone, security,
    send, sign_in, sign_up, webhooks,
};
use axum::Router;
use axum::response::Response;
use axum::routing::get;
use std::sync::Arc;
use tower_http::compression::CompressionLayer;

/// Builds the router of all pages.
pub fn router(app: Arc<DashboardState>) -> Router {
    Router::new()
        .route("/", get(home))
        .merge(sign_in::routes())
        .merge(sign_up::routes())
        .merge(password_reset::routes())
        .merge(join::routes())
        .merge(confirm::routes())
        .merge(members::routes())
        .merge(security::routes())
        .merge(audit::routes())
        .merge(mode::routes())
        .merge(live::routes())
        .merge(phone::routes())
        .merge(overview::routes())
        .merge(optouts::routes())
        .merge(operator::routes())
        .merge(messages::routes())
        .merge(conversations::routes())
        .merge(send::routes())
        .merge(api_keys::routes())
        .merge(webhooks::routes())
        .merge(limits::routes())
        .layer(axum::middleware::from_fn_with_state(app.clone(), page_limit::enforce))
        .layer(axum::middleware::from_fn_with_state(app.clone(), error_response::render))
        .merge(assets::routes())
        .layer(CompressionLayer::new())
        .with_state(app)
}

/// Removes the token from the path of a magic link, for the access log.
pub fn redact_path(path: &str) -> &str {
    let links = ["/sign-in/", "/reset/", "/join/", "/confirm/"];
    links.into_iter().find(|link| path.starts_with(link)).unwrap_or(path)
}

async fn home(_: SessionRequest) -> Result<Response, PageError> {
    Ok(page::redirect("/overview"))
}
