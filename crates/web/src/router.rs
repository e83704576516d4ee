//! Which address leads where.

use crate::app::App;
use crate::error::Problem;
use crate::{api, health, requests};
use axum::Router;
use axum::routing::get;
use axum::serve::ListenerExt;
use std::future::Future;
use tokio::net::TcpListener;

fn router(app: App) -> Router {
    Router::new()
        .nest("/v1", api::routes())
        .route("/healthz", get(health::healthz))
        .route("/readyz", get(health::readyz))
        .route("/metrics", get(health::metrics))
        .fallback(|| async { Problem::not_found() })
        .method_not_allowed_fallback(|| async { Problem::method_not_allowed() })
        .layer(axum::middleware::from_fn_with_state(app.clone(), requests::around))
        .with_state(app)
}

/// Answers requests until `stop` is ready, then ends the connections once their requests are done.
///
/// # Errors
/// What the listener says.
pub async fn serve(
    listener: TcpListener,
    app: App,
    stop: impl Future<Output = ()> + Send + 'static,
) -> std::io::Result<()> {
    let listener = listener.tap_io(|socket| {
        // Answers are small and complete: waiting for more only costs the client time.
        if let Err(e) = socket.set_nodelay(true) {
            tracing::debug!(error = %e, "a connection kept Nagle's delay");
        }
    });
    axum::serve(listener, router(app)).with_graceful_shutdown(stop).await
}
