//! Which address leads to which page.

use crate::app::App;
use crate::dashboard::refusal::{self, Refusal};
use crate::dashboard::visit::Visit;
use crate::dashboard::{assets, conversations, live, messages, page, phone, place, send, sign_in};
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
        .merge(place::routes())
        .merge(live::routes())
        .merge(phone::routes())
        .merge(messages::routes())
        .merge(conversations::routes())
        .merge(send::routes())
        .layer(axum::middleware::from_fn_with_state(app.clone(), refusal::render))
        .merge(assets::routes())
        .layer(CompressionLayer::new())
}

async fn home(_: Visit) -> Result<Response, Refusal> {
    Ok(page::go("/phone"))
}
