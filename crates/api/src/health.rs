//! Monitoring endpoints: liveness, readiness and metrics.

use crate::openapi::document::HEALTH;
use crate::openapi::operation::Operation;
use crate::openapi::routes::ApiRoutes;
use crate::state::ApiState;
use axum::extract::State;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use heliograph_service::kernel::metrics::metrics;
use std::sync::Arc;

/// The paths of the monitoring endpoints: they are served also when the node is overloaded or shuts
/// down, and are not logged.
pub const PATHS: &[&str] = &[LIVENESS, READINESS, METRICS];

const LIVENESS: &str = "/healthz";
const READINESS: &str = "/readyz";
const METRICS: &str = "/metrics";

pub(crate) fn routes() -> ApiRoutes {
    let alive = Operation::get(LIVENESS, "isAlive", "Check liveness")
        .description("Succeeds as long as the process runs, also during a graceful shutdown.")
        .text_response(StatusCode::OK, "The process is alive.", "ok\n");
    let ready = Operation::get(READINESS, "isReady", "Check readiness")
        .description(
            "Succeeds when the node can serve requests: the database is reachable, its clock \
             differs from the node's by at most 2 seconds, and the node is not shutting down. Use \
             it as the health check of a load balancer.",
        )
        .text_response(StatusCode::OK, "The node is ready.", "ready\n")
        .text_response(
            StatusCode::SERVICE_UNAVAILABLE,
            "The node is not ready; the body gives the \
                                                         reason.",
            "shutting down\n",
        );
    let metrics = Operation::get(METRICS, "getMetrics", "Get metrics")
        .description("Returns all metrics in the Prometheus text format.")
        .text_response(StatusCode::OK, "The metrics.", "heliograph_accepted_total 4\n");
    ApiRoutes::default()
        .add(alive.tag(HEALTH).public(), healthz)
        .add(ready.tag(HEALTH).public(), readyz)
        .add(metrics.tag(HEALTH).public(), metrics_page)
}

/// Reports that the process runs.
async fn healthz() -> &'static str {
    "ok\n"
}

/// Reports whether the node can serve requests: the database answers (its schema is migrated before
/// the port opens), its clock agrees with the node's, and the node is not shutting down.
async fn readyz(State(app): State<Arc<ApiState>>) -> Response {
    let not = |why: &'static str| (StatusCode::SERVICE_UNAVAILABLE, why).into_response();
    if app.gate.is_draining() {
        return not("shutting down\n");
    }
    match heliograph_service::operations::nodes::clock_offset(&app.context).await {
        Ok(offset) if offset.abs() > 2_000 => {
            not("clock skew between node and database exceeds 2 s\n")
        }
        Ok(_) => "ready\n".into_response(),
        Err(_) => not("database unavailable\n"),
    }
}

/// Returns the metrics in the Prometheus text format.
async fn metrics_page() -> Response {
    let kind = "text/plain; version=0.0.4; charset=utf-8";
    ([(header::CONTENT_TYPE, kind)], metrics().render()).into_response()
}
