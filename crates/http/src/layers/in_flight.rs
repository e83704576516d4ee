//! The limit of requests in flight, which also rejects new requests while the node drains.

use crate::drain::{RequestGate, RequestPermit};
use crate::layers::around::Around;
use axum::extract::Request;
use axum::http::{HeaderValue, Version, header};
use axum::response::Response;

/// The middleware that admits requests through the gate.
#[derive(Clone, Debug)]
pub struct InFlightLimit {
    /// The gate.
    pub gate: RequestGate,
    /// Paths that are served even without a permit, such as health checks.
    pub except: &'static [&'static str],
    /// Makes the response to a request without a permit.
    pub reject: fn() -> Response,
}

impl Around for InFlightLimit {
    type State = Option<RequestPermit>;

    fn before(&self, request: &mut Request) -> Result<Self::State, Box<Response>> {
        let permit = self.gate.try_enter();
        if permit.is_some() || self.except.contains(&request.uri().path()) {
            return Ok(permit);
        }
        let mut response = (self.reject)();
        if self.gate.is_draining() && request.version() < Version::HTTP_2 {
            // The client must send its next request to another node, or to the restarted process.
            response.headers_mut().insert(header::CONNECTION, HeaderValue::from_static("close"));
        }
        Err(Box::new(response))
    }

    fn after(&self, permit: Self::State, _: &mut Response) {
        drop(permit);
    }
}
