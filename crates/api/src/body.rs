//! Reads request bodies.

use crate::error::Problem;
use axum::body::{Body, Bytes};
use axum::http::{HeaderMap, header};
use std::time::Duration;

/// The time within which a body must arrive.
const READ_TIMEOUT: Duration = Duration::from_secs(30);

/// The size limit of an empty body, in bytes: room for `{}` and white space.
const EMPTY_BODY_LIMIT: usize = 64;

/// Reads a JSON body of at most `limit` bytes.
pub(crate) async fn read_json(
    headers: &HeaderMap,
    body: Body,
    limit: usize,
) -> Result<Bytes, Problem> {
    read_as("application/json", headers, body, limit).await
}

/// Reads a body of this media type and of at most `limit` bytes.
pub(crate) async fn read_as(
    kind: &'static str,
    headers: &HeaderMap,
    body: Body,
    limit: usize,
) -> Result<Bytes, Problem> {
    if !is(kind, headers) {
        return Err(Problem::unsupported_media_type(kind));
    }
    let encoded = headers.get_all(header::CONTENT_ENCODING).iter();
    if encoded.into_iter().any(|v| !v.as_bytes().eq_ignore_ascii_case(b"identity")) {
        return Err(Problem::compressed());
    }
    let whole = tokio::time::timeout(READ_TIMEOUT, axum::body::to_bytes(body, limit)).await;
    whole.map_err(|_| Problem::request_timeout())?.map_err(|e| {
        // The error of the size limit is wrapped; every other error means that the client
        // disconnected.
        let mut source: Option<&dyn std::error::Error> = Some(&e);
        while let Some(s) = source {
            if s.to_string().contains("length limit") {
                return Problem::too_large(limit);
            }
            source = s.source();
        }
        Problem::invalid("The body is incomplete.", Vec::new())
    })
}

/// Rejects a body on an operation that takes none, since its fields would be ignored silently. An
/// empty JSON object is accepted, for clients that always send JSON.
pub(crate) async fn require_empty(body: Body) -> Result<(), Problem> {
    let whole =
        tokio::time::timeout(READ_TIMEOUT, axum::body::to_bytes(body, EMPTY_BODY_LIMIT)).await;
    let bytes = whole.map_err(|_| Problem::request_timeout())?;
    match bytes.as_deref().map(<[u8]>::trim_ascii) {
        Ok(b"" | b"{}") => Ok(()),
        _ => Err(Problem::invalid("This endpoint takes no request body.", Vec::new())),
    }
}

fn is(wanted: &str, headers: &HeaderMap) -> bool {
    let Some(kind) = headers.get(header::CONTENT_TYPE).and_then(|v| v.to_str().ok()) else {
        return false;
    };
    let (kind, parameters) = kind.split_once(';').unwrap_or((kind, ""));
    let parameters = parameters.trim().to_ascii_lowercase();
    kind.trim().eq_ignore_ascii_case(wanted)
        && ["", "charset=utf-8", "charset=\"utf-8\""].contains(&parameters.as_str())
}
