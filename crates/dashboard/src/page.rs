//! HTML responses and redirects, with security headers.

use axum::http::{HeaderName, HeaderValue, StatusCode, header};
use axum::response::{Html, IntoResponse, Response};

const PERMISSIONS: HeaderName = HeaderName::from_static("permissions-policy");
const OPENER: HeaderName = HeaderName::from_static("cross-origin-opener-policy");

/// Returns an HTML response. Its Content Security Policy allows only scripts with this nonce, and
/// no other host.
pub(crate) fn html(status: StatusCode, nonce: &str, page: askama::Result<String>) -> Response {
    let page = match page {
        Ok(page) => page,
        Err(error) => {
            tracing::error!(%error, "failed to render page");
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
        (header::CACHE_CONTROL, cache_control(status)),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (header::REFERRER_POLICY, "same-origin"),
        (PERMISSIONS, "camera=(), geolocation=(), microphone=()"),
        (OPENER, "same-origin"),
    ] {
        headers.insert(name, HeaderValue::from_static(value));
    }
    response
}

/// Returns the cache policy of a page. Pages hold personal and changing data, so that they are not
/// stored. A rejected form is: the browser could not go back to it otherwise, because it does not
/// submit a form again unasked.
fn cache_control(status: StatusCode) -> &'static str {
    if status == StatusCode::UNPROCESSABLE_ENTITY { "private, no-cache" } else { "no-store" }
}

/// Redirects the browser to a path of this dashboard with 303 See Other.
pub(crate) fn redirect(path: &str) -> Response {
    let location = HeaderValue::from_str(path).unwrap_or(HeaderValue::from_static("/"));
    let headers = [
        (header::LOCATION, location),
        (header::CACHE_CONTROL, HeaderValue::from_static("no-store")),
    ];
    (StatusCode::SEE_OTHER, headers).into_response()
}

/// Returns whether a path stays on this host, so that a redirect to it is no open redirect.
pub(crate) fn is_local_path(path: &str) -> bool {
    path.starts_with('/')
        && !path.starts_with("//")
        && path.bytes().all(|b| b.is_ascii_graphic() && b != b'\\')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_local_paths_are_accepted() {
        for local in ["/", "/phone/447700900123", "/messages?status=FAILED&a=%20"] {
            assert!(is_local_path(local), "{local}");
        }
        for other in ["", "//evil", "https://evil", "/\\evil", "/a\tb", "javascript:x", "/a b"] {
            assert!(!is_local_path(other), "{other}");
        }
    }
}
