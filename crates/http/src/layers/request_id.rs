//! Request ids: each request and its response carry the same `X-Request-Id`.

use crate::layers::around::Around;
use axum::extract::Request;
use axum::http::{HeaderName, HeaderValue};
use axum::response::Response;

/// The header with the id of a request. Inside of [`RequestId`], every request has it.
pub const REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");

/// The longest id that is accepted from a client, in bytes.
const MAX_LENGTH: usize = 128;

/// The middleware that sets request ids. A client's own id is kept if it can be logged and
/// searched for as it is and holds no secret; otherwise `generate` makes one.
#[derive(Clone, Debug)]
pub struct RequestId<G> {
    /// Makes a fresh id.
    pub generate: G,
    /// Returns whether a text holds a secret, such as an API key that was sent by mistake.
    pub holds_secret: fn(&str) -> bool,
}

impl<G: Fn() -> HeaderValue> Around for RequestId<G> {
    type State = HeaderValue;

    fn before(&self, request: &mut Request) -> Result<HeaderValue, Box<Response>> {
        let headers = request.headers_mut();
        let id = headers.get(REQUEST_ID).filter(|id| self.is_valid(id)).cloned();
        let id = id.unwrap_or_else(&self.generate);
        headers.insert(REQUEST_ID, id.clone());
        Ok(id)
    }

    fn after(&self, id: HeaderValue, response: &mut Response) {
        response.headers_mut().insert(REQUEST_ID, id);
    }
}

impl<G> RequestId<G> {
    fn is_valid(&self, id: &HeaderValue) -> bool {
        let bytes = id.as_bytes();
        (1..=MAX_LENGTH).contains(&bytes.len())
            && bytes.iter().all(|b| b.is_ascii_alphanumeric() || b"-_.".contains(b))
            && !id.to_str().is_ok_and(self.holds_secret)
    }
}
