//! HTTP Strict Transport Security (RFC 6797).

use crate::client::ClientAddress;
use crate::layers::around::Around;
use axum::extract::Request;
use axum::http::{HeaderValue, header};
use axum::response::Response;

/// One year.
const MAX_AGE: HeaderValue = HeaderValue::from_static("max-age=31536000");

/// The middleware that tells clients over HTTPS to use nothing else from now on.
#[derive(Clone, Copy, Debug)]
pub struct StrictTransport;

impl Around for StrictTransport {
    type State = bool;

    fn before(&self, request: &mut Request) -> Result<bool, Box<Response>> {
        Ok(request.extensions().get::<ClientAddress>().is_some_and(|client| client.https))
    }

    fn after(&self, https: bool, response: &mut Response) {
        if https {
            response.headers_mut().insert(header::STRICT_TRANSPORT_SECURITY, MAX_AGE);
        }
    }
}
