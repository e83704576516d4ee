//! Responses to requests that the listener refuses before any route sees them.

use axum::body::{Body, Bytes};
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::Response;
use std::fmt;
use std::net::IpAddr;
use std::sync::Arc;

/// The reason why the listener refuses a request that it cannot pass on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ProtocolError {
    /// The request is not valid HTTP.
    Malformed,
    /// The request line and the headers exceed the limits.
    HeadTooLarge,
    /// The request uses plain HTTP on the port for HTTPS.
    PlainHttp,
}

impl ProtocolError {
    /// Returns the status of the response.
    pub const fn status(self) -> StatusCode {
        match self {
            Self::Malformed | Self::PlainHttp => StatusCode::BAD_REQUEST,
            Self::HeadTooLarge => StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE,
        }
    }
}

/// The content of a response to a [`ProtocolError`].
#[derive(Clone, Debug)]
pub struct ErrorDocument {
    /// The value of `X-Request-Id`.
    pub request_id: HeaderValue,
    /// The value of `Content-Type`.
    pub content_type: HeaderValue,
    /// The body.
    pub body: Bytes,
}

/// Makes the content of the response to a client with this address.
type Render = dyn Fn(ProtocolError, IpAddr) -> ErrorDocument + Send + Sync;

/// Makes the responses to protocol errors; cheap to clone.
#[derive(Clone)]
pub struct ErrorDocuments(Arc<Render>);

impl fmt::Debug for ErrorDocuments {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ErrorDocuments")
    }
}

impl ErrorDocuments {
    /// Creates it from a function, which is called for each refused request.
    pub fn new(
        render: impl Fn(ProtocolError, IpAddr) -> ErrorDocument + Send + Sync + 'static,
    ) -> Self {
        Self(Arc::new(render))
    }

    /// Returns the response to an HTTP/2 request.
    pub(crate) fn response(&self, error: ProtocolError, client: IpAddr) -> Response {
        let document = (self.0)(error, client);
        let mut response = Response::new(Body::from(document.body));
        *response.status_mut() = error.status();
        let headers = response.headers_mut();
        headers.insert(crate::layers::request_id::REQUEST_ID, document.request_id);
        headers.insert(header::CONTENT_TYPE, document.content_type);
        headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
        headers.insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
        response
    }

    /// Returns the bytes of an HTTP/1.1 response, after which the connection is closed.
    pub(crate) fn http1(&self, error: ProtocolError, client: IpAddr) -> Vec<u8> {
        let ErrorDocument { request_id, content_type, body } = (self.0)(error, client);
        let status = error.status();
        let head = format!(
            "HTTP/1.1 {} {}\r\ncontent-length: {}\r\ncache-control: no-store\r\n\
             x-content-type-options: nosniff\r\nconnection: close\r\nx-request-id: ",
            status.as_str(),
            status.canonical_reason().unwrap_or_default(),
            body.len(),
        );
        let parts: [&[u8]; 6] = [
            head.as_bytes(),
            request_id.as_bytes(),
            b"\r\ncontent-type: ",
            content_type.as_bytes(),
            b"\r\n\r\n",
            &body,
        ];
        parts.concat()
    }
}

#[cfg(test)]
impl ErrorDocuments {
    /// Returns responses whose text is the error.
    pub(crate) fn of_tests() -> Self {
        Self::new(|error, client| ErrorDocument {
            request_id: HeaderValue::from_static("test"),
            content_type: HeaderValue::from_static("text/plain"),
            body: format!("{error:?} of {client}").into(),
        })
    }
}
