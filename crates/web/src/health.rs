//! For those who watch: alive, ready, and the metrics.

use crate::app::App;
use crate::openapi::document::WATCHING;
use crate::openapi::operation::Operation;
use crate::openapi::routes::Routes;
use axum::extract::State;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use std::sync::Arc;

pub(crate) fn routes() -> Routes {
    let alive = Operation::get("/healthz", "isAlive", "Says that the process is alive")
        .describe("Answers as long as the process runs, also while it shuts down.")
        .answers_text(StatusCode::OK, "It is.", "ok\n");
    let ready = Operation::get("/readyz", "isReady", "Says whether requests are welcome")
        .describe(
            "They are while the database answers, its clock agrees with ours, and the node is not shutting down: \
             what a load balancer asks.",
        )
        .answers_text(StatusCode::OK, "They are.", "ready\n")
        .answers_text(StatusCode::SERVICE_UNAVAILABLE, "Not now: why.", "shutting down\n");
    let metrics = Operation::get("/metrics", "getMetrics", "Shows the metrics")
        .describe("Everything that is counted and measured, in Prometheus' text form.")
        .answers_text(StatusCode::OK, "The metrics.", "heliograph_accepted_total 4\n");
    Routes::default()
        .add(alive.tag(WATCHING).open(), healthz)
        .add(ready.tag(WATCHING).open(), readyz)
        .add(metrics.tag(WATCHING).open(), metrics_page)
}

/// The process runs.
async fn healthz() -> &'static str {
    "ok\n"
}

/// Requests are welcome: the database answers (its schema is brought up to date before the port
/// opens), its clock agrees with ours, and the node is not shutting down.
async fn readyz(State(app): State<Arc<App>>) -> Response {
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
async fn metrics_page(State(app): State<Arc<App>>) -> Response {
    let kind = "text/plain; version=0.0.4; charset=utf-8";
    ([(header::CONTENT_TYPE, kind)], (app.metrics)()).into_response()
}
