//! A page on its way out, with the headers that keep it safe.

use axum::http::{HeaderName, HeaderValue, StatusCode, header};
use axum::response::{Html, IntoResponse, Response};

const PERMISSIONS: HeaderName = HeaderName::from_static("permissions-policy");
const OPENER: HeaderName = HeaderName::from_static("cross-origin-opener-policy");

/// A page. Only scripts with this nonce run in it, and nothing in it asks another host.
pub(crate) fn html(status: StatusCode, nonce: &str, page: askama::Result<String>) -> Response {
    let page = match page {
        Ok(page) => page,
        Err(error) => {
            tracing::error!(%error, "a page could not be rendered");
            return StatusCode::INTERNAL_SERVER_ERROR.into_response();
        }
    };
    let mut response = (status, Html(page)).into_response();
    let policy = format!(
        "default-src 'none'; script-src 'nonce-{nonce}'; style-src 'self'; img-src 'self' data:; font-src 'self'; \
         connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
    );
    let headers = response.headers_mut();
    if let Ok(policy) = HeaderValue::from_str(&policy) {
        headers.insert(header::CONTENT_SECURITY_POLICY, policy);
    }
    for (name, value) in [
        // Pages hold what is for one person, and what changes.
        (header::CACHE_CONTROL, "no-store"),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (header::REFERRER_POLICY, "same-origin"),
        (PERMISSIONS, "camera=(), geolocation=(), microphone=()"),
        (OPENER, "same-origin"),
    ] {
        headers.insert(name, HeaderValue::from_static(value));
    }
    response
}

/// Sends the browser to another page of ours, by GET.
pub(crate) fn go(path: &str) -> Response {
    let place = HeaderValue::from_str(path).unwrap_or(HeaderValue::from_static("/"));
    let headers =
        [(header::LOCATION, place), (header::CACHE_CONTROL, HeaderValue::from_static("no-store"))];
    (StatusCode::SEE_OTHER, headers).into_response()
}

/// Whether a path leads to a page of this dashboard, and nowhere else.
pub(crate) fn is_own(path: &str) -> bool {
    path.starts_with('/')
        && !path.starts_with("//")
        && path.bytes().all(|b| b.is_ascii_graphic() && b != b'\\')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nobody_is_sent_to_another_host() {
        for own in ["/", "/phone/447700900123", "/messages?status=FAILED&a=%20"] {
            assert!(is_own(own), "{own}");
        }
        for other in ["", "//evil", "https://evil", "/\\evil", "/a\tb", "javascript:x", "/a b"] {
            assert!(!is_own(other), "{other}");
        }
    }
}
