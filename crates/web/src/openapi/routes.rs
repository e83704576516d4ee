//! Routes that can't be added without saying what they do.

use crate::app::App;
use crate::openapi::operation::Operation;
use axum::Router;
use axum::handler::Handler;
use axum::routing::on;
use std::sync::Arc;

/// Where requests go, and what the document says of each.
#[derive(Default)]
pub(crate) struct Routes {
    pub(crate) router: Router<Arc<App>>,
    pub(crate) operations: Vec<Operation>,
}

impl Routes {
    /// Adds a route: what it does, and who does it.
    pub(crate) fn add<H, T>(mut self, operation: Operation, handler: H) -> Self
    where
        H: Handler<T, Arc<App>>,
        T: 'static,
    {
        self.router = self.router.route(operation.path, on(operation.filter(), handler));
        self.operations.push(operation);
        self
    }

    /// Adds what is said of a route that is served elsewhere.
    pub(crate) fn tell(mut self, operation: Operation) -> Self {
        self.operations.push(operation);
        self
    }

    /// Adds those of another file.
    pub(crate) fn merge(mut self, other: Self) -> Self {
        self.router = self.router.merge(other.router);
        self.operations.extend(other.operations);
        self
    }
}
