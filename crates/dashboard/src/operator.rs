//! Pages for operators about the whole installation. For other users these pages do not exist
//! (404).

mod accounts;
mod carriers;
mod queue;

use crate::error_page::PageError;
use crate::session::SessionRequest;
use crate::state::DashboardState;
use axum::Router;
use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use std::sync::Arc;

pub(crate) fn routes() -> Router<Arc<DashboardState>> {
    Router::new().merge(carriers::routes()).merge(queue::routes()).merge(accounts::routes())
}

/// A request of an operator; other users get 404.
struct OperatorRequest(SessionRequest);

impl FromRequestParts<Arc<DashboardState>> for OperatorRequest {
    type Rejection = PageError;

    async fn from_request_parts(
        parts: &mut Parts,
        app: &Arc<DashboardState>,
    ) -> Result<Self, PageError> {
        let request = SessionRequest::from_request_parts(parts, app).await?;
        request.visitor.require_operator()?;
        Ok(Self(request))
    }
}
