//! Security headers of every response.

use crate::client::ClientAddress;
use crate::layers::around::Around;
use axum::extract::Request;
use axum::http::{HeaderValue, header};
use axum::response::Response;

/// HTTP Strict Transport Security (RFC 6797) for one year.
const STRICT_TRANSPORT: HeaderValue =
    HeaderValue::from_static("max-age=31536000; includeSubDomains");
const NO_SNIFF: HeaderValue = HeaderValue::from_static("nosniff");
const NO_STORE: HeaderValue = HeaderValue::from_static("no-store");

/// The middleware that sets security headers: browsers use nothing but HTTPS from now on
/// (responses over HTTPS), never guess a type, and nobody stores a response that does not say
/// otherwise.
#[derive(Clone, Copy, Debug)]
pub struct SecurityHeaders;

impl Around for SecurityHeaders {
    type State = bool;

    fn before(&self, request: &mut Request) -> Result<bool, Box<Response>> {
        Ok(request.extensions().get::<ClientAddress>().is_some_and(|client| client.https))
    }

    fn after(&self, https: bool, response: &mut Response) {
        let headers = response.headers_mut();
        if https {
            headers.insert(header::STRICT_TRANSPORT_SECURITY, STRICT_TRANSPORT);
        }
        headers.insert(header::X_CONTENT_TYPE_OPTIONS, NO_SNIFF);
        headers.entry(header::CACHE_CONTROL).or_insert(NO_STORE);
    }
}
