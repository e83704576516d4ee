//! The rate limit of pages, by client address: no client may keep the node busy with pages.

use crate::error_page::PageError;
use crate::state::DashboardState;
use axum::extract::{Request, State};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use heliograph_http::ClientAddress;
use std::sync::Arc;

/// Middleware that counts the pages and forms of each client address.
pub(crate) async fn enforce(
    State(app): State<Arc<DashboardState>>,
    request: Request,
    next: Next,
) -> Response {
    let client = request.extensions().get::<ClientAddress>().and_then(ClientAddress::limited);
    match client.map_or(Ok(()), |address| app.page_rate.check(address)) {
        Ok(()) => next.run(request).await,
        Err(wait) => PageError::from(wait).into_response(),
    }
}
