//! Static responses, rendered once at startup and served with an `ETag`.

use axum::body::Bytes;
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use sha2::{Digest, Sha256};
use std::fmt::Write;

/// A static file in memory.
#[derive(Clone, Debug)]
pub struct StaticAsset {
    kind: HeaderValue,
    body: Bytes,
    etag: HeaderValue,
}

/// The Content-Security-Policy: only same-origin resources, no scripts, and no framing.
const POLICY: &str = "default-src 'self'; script-src 'none'; object-src 'none'; base-uri 'none'; \
                      form-action 'none'; frame-ancestors 'none'";
const PERMISSIONS: HeaderName = HeaderName::from_static("permissions-policy");

impl StaticAsset {
    /// Creates an asset of this media type.
    pub fn new(kind: &'static str, body: impl Into<Bytes>) -> Self {
        let body = body.into();
        let mut etag = "\"".to_owned();
        for byte in Sha256::digest(&body).iter().take(12) {
            let _ = write!(etag, "{byte:02x}");
        }
        etag.push('"');
        let etag = HeaderValue::from_str(&etag).unwrap_or(HeaderValue::from_static("\"\""));
        Self { kind: HeaderValue::from_static(kind), body, etag }
    }

    /// Returns the file, or 304 if the client has this version.
    pub fn respond(&self, request: &HeaderMap) -> Response {
        let not_modified =
            request.get_all(header::IF_NONE_MATCH).iter().any(|tags| self.matches(tags));
        let mut response = match not_modified {
            true => StatusCode::NOT_MODIFIED.into_response(),
            false => self.body.clone().into_response(),
        };
        let headers = response.headers_mut();
        headers.insert(header::CONTENT_TYPE, self.kind.clone());
        headers.insert(header::ETAG, self.etag.clone());
        for (name, value) in [
            (header::CACHE_CONTROL, "no-cache"),
            (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
            (header::CONTENT_SECURITY_POLICY, POLICY),
            (header::REFERRER_POLICY, "no-referrer"),
            (PERMISSIONS, "camera=(), geolocation=(), microphone=()"),
        ] {
            headers.insert(name, HeaderValue::from_static(value));
        }
        response
    }

    fn matches(&self, tags: &HeaderValue) -> bool {
        let ours = self.etag.to_str().unwrap_or_default();
        let tags = tags.to_str().unwrap_or_default();
        tags.split(',')
            .map(str::trim)
            .any(|t| t == "*" || t.strip_prefix("W/").unwrap_or(t) == ours)
    }
}
