//! The operator's pages: what concerns the installation as a whole. For everybody else there are no such pages.

mod accounts;
mod carriers;
mod queue;

use crate::app::App;
use crate::dashboard::refusal::Refusal;
use crate::dashboard::visit::Visit;
use axum::Router;
use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use std::sync::Arc;

pub(crate) fn routes() -> Router<Arc<App>> {
    Router::new().merge(carriers::routes()).merge(queue::routes()).merge(accounts::routes())
}

/// An operator who looks at a page.
struct Operator(Visit);

impl FromRequestParts<Arc<App>> for Operator {
    type Rejection = Refusal;

    async fn from_request_parts(parts: &mut Parts, app: &Arc<App>) -> Result<Self, Refusal> {
        let visit = Visit::from_request_parts(parts, app).await?;
        visit.visitor.operates()?;
        Ok(Self(visit))
    }
}
