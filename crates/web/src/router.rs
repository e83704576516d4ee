//! Which address leads where.

use crate::app::App;
use crate::error::Problem;
use crate::{api, health};
use axum::Router;
use axum::routing::get;
use std::sync::Arc;

/// All doors.
pub(crate) fn router(app: Arc<App>) -> Router {
    let api = api::messages::routes()
        .merge(api::balance::routes())
        .merge(api::inbound_messages::routes())
        .merge(api::optout_lists::routes());
    Router::new()
        .nest("/v1", api)
        .route("/healthz", get(health::healthz))
        .route("/readyz", get(health::readyz))
        .route("/metrics", get(health::metrics))
        .fallback(|| async { Problem::not_found() })
        .method_not_allowed_fallback(|| async { Problem::method_not_allowed() })
        .with_state(app)
}
