//! Monitoring endpoints: liveness, readiness and metrics.

use crate::error::code::ProblemCode;
use crate::metrics_access::MetricsAccess;
use crate::openapi::document::HEALTH;
use crate::openapi::operation::Operation;
use crate::openapi::routes::ApiRoutes;
use crate::state::ApiState;
use axum::Router;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use heliograph_service::kernel::metrics::metrics;
use std::sync::Arc;

/// The paths of the monitoring endpoints, which are not logged.
pub const PATHS: &[&str] = &[LIVENESS, READINESS, METRICS];
/// The paths that are served also when the node is overloaded: an overloaded process is alive.
pub const ALWAYS_SERVED: &[&str] = &[LIVENESS];
/// The paths that are served also when the node shuts down.
pub const SERVED_WHILE_DRAINING: &[&str] = &[READINESS, METRICS];

const LIVENESS: &str = "/healthz";
const READINESS: &str = "/readyz";
const METRICS: &str = "/metrics";

pub(crate) fn routes() -> ApiRoutes {
    let alive = Operation::get(LIVENESS, "isAlive", "Check liveness")
        .description("Succeeds as long as the process runs, also during a graceful shutdown.")
        .text_response(StatusCode::OK, "The process is alive.", "ok\n");
    let ready = Operation::get(READINESS, "isReady", "Check readiness")
        .description(
            "Succeeds when the node can accept work: a write to the database commits, the \
             database's clock differs from the node's by at most 2 seconds, and the node is not \
             shutting down. The result is at most one second old. Use it as the health check of a \
             load balancer.",
        )
        .text_response(StatusCode::OK, "The node is ready.", "ready\n")
        .text_response(
            StatusCode::SERVICE_UNAVAILABLE,
            "The node is not ready; the body gives the \
                                                         reason.",
            "shutting down\n",
        );
    let metrics = Operation::get(METRICS, "getMetrics", "Get metrics")
        .description(
            "Returns all metrics in the Prometheus text format. They are public only on a server \
             that listens on a loopback address. Otherwise the operator sets \
             `telemetry.metrics_token`, which is sent as `Authorization: Bearer`, or \
             `telemetry.metrics_listen`, an address of their own.",
        )
        .problems(&[ProblemCode::Unauthenticated, ProblemCode::NotFound])
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

/// Reports whether the node can accept work.
async fn readyz(State(app): State<Arc<ApiState>>) -> Response {
    let not = |why: &'static str| (StatusCode::SERVICE_UNAVAILABLE, why).into_response();
    if app.gate.is_draining() {
        return not("shutting down\n");
    }
    match app.readiness.check(&app.context, &app.writer).await {
        Ok(()) => "ready\n".into_response(),
        Err(why) => not(why),
    }
}

async fn metrics_page(State(app): State<Arc<ApiState>>, headers: HeaderMap) -> Response {
    respond_metrics(&app.metrics_access, &headers)
}

/// Returns the metrics in the Prometheus text format.
fn respond_metrics(access: &MetricsAccess, headers: &HeaderMap) -> Response {
    if let Err(problem) = access.check(headers) {
        return problem.into_response();
    }
    let kind = "text/plain; version=0.0.4; charset=utf-8";
    ([(header::CONTENT_TYPE, kind)], metrics().render()).into_response()
}

/// Builds the router of a listener that serves nothing but the metrics.
pub fn metrics_router(access: MetricsAccess) -> Router {
    let page = async move |headers: HeaderMap| respond_metrics(&access, &headers);
    Router::new().route(METRICS, get(page))
}
