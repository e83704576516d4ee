//! For those who watch: alive, ready, and the metrics.

use crate::app::App;
use axum::extract::State;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use std::sync::Arc;

/// The process runs.
pub(crate) async fn healthz() -> &'static str {
    "ok\n"
}

/// Requests are welcome: the database answers (its schema is brought up to date before the port
/// opens), its clock agrees with ours, and the node is not shutting down.
pub(crate) async fn readyz(State(app): State<Arc<App>>) -> Response {
    let not = |why: &'static str| (StatusCode::SERVICE_UNAVAILABLE, why).into_response();
    if app.gate.is_draining() {
        return not("shutting down\n");
    }
    match heliograph_service::nodes::clock_offset(&app.context).await {
        Ok(offset) if offset.abs() > 2_000 => {
            not("the database's clock differs by more than 2 s\n")
        }
        Ok(_) => "ready\n".into_response(),
        Err(_) => not("the database can't be reached\n"),
    }
}

/// Prometheus' text form.
pub(crate) async fn metrics(State(app): State<Arc<App>>) -> Response {
    let kind = "text/plain; version=0.0.4; charset=utf-8";
    ([(header::CONTENT_TYPE, kind)], (app.metrics)()).into_response()
}
