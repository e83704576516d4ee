//! ApiRoutes together with their OpenAPI operations, so that every route is documented.

use crate::openapi::operation::Operation;
use crate::state::ApiState;
use axum::Router;
use axum::handler::Handler;
use axum::routing::on;
use std::sync::Arc;

/// A router, and the OpenAPI operations of its routes.
#[derive(Default)]
pub(crate) struct ApiRoutes {
    pub(crate) router: Router<Arc<ApiState>>,
    pub(crate) operations: Vec<Operation>,
}

impl ApiRoutes {
    /// Adds a route with its operation and handler.
    pub(crate) fn add<H, T>(mut self, operation: Operation, handler: H) -> Self
    where
        H: Handler<T, Arc<ApiState>>,
        T: 'static,
    {
        self.router = self.router.route(operation.path, on(operation.method_filter(), handler));
        self.operations.push(operation);
        self
    }

    /// Adds the operation of a route that is served elsewhere.
    pub(crate) fn document(mut self, operation: Operation) -> Self {
        self.operations.push(operation);
        self
    }

    /// Adds all routes of `other`.
    pub(crate) fn merge(mut self, other: Self) -> Self {
        self.router = self.router.merge(other.router);
        self.operations.extend(other.operations);
        self
    }
}
