//! Reads request bodies.

use crate::auth::Authenticated;
use crate::error::Problem;
use crate::media_type;
use axum::body::{Body, Bytes, HttpBody};
use axum::http::{HeaderMap, header};
use heliograph_http::{BodyError, read_body};

/// The size limit of an empty body, in bytes: room for `{}` and white space.
const EMPTY_BODY_LIMIT: usize = 64;

/// Reads a JSON body of at most `limit` bytes.
pub(crate) async fn read_json(
    caller: &Authenticated,
    headers: &HeaderMap,
    body: Body,
    limit: usize,
) -> Result<Bytes, Problem> {
    read_as("application/json", caller, headers, body, limit).await
}

/// Reads a body of this media type and of at most `limit` bytes.
pub(crate) async fn read_as(
    kind: &'static str,
    caller: &Authenticated,
    headers: &HeaderMap,
    body: Body,
    limit: usize,
) -> Result<Bytes, Problem> {
    media_type::require(kind, headers)?;
    let encoded = headers.get_all(header::CONTENT_ENCODING).iter();
    if encoded.into_iter().any(|v| !v.as_bytes().eq_ignore_ascii_case(b"identity")) {
        return Err(Problem::compressed());
    }
    let length = body.size_hint().upper().and_then(|length| usize::try_from(length).ok());
    let _share = caller.share.memory(length.unwrap_or(limit).min(limit))?;
    read_body(body, limit).await.map_err(problem)
}

/// Rejects a body on an operation that takes none, since its fields would be ignored silently. An
/// empty JSON object is accepted, for clients that always send JSON.
pub(crate) async fn require_empty(body: Body) -> Result<(), Problem> {
    match read_body(body, EMPTY_BODY_LIMIT).await.as_deref().map(<[u8]>::trim_ascii) {
        Ok(b"" | b"{}") => Ok(()),
        Ok(_) | Err(BodyError::TooLarge(_)) => {
            Err(Problem::invalid("This endpoint takes no request body.", Vec::new()))
        }
        Err(error) => Err(problem(*error)),
    }
}

fn problem(error: BodyError) -> Problem {
    match error {
        BodyError::TooLarge(limit) => Problem::too_large(limit),
        BodyError::Timeout => Problem::request_timeout(),
        BodyError::Overloaded => Problem::overloaded(),
        BodyError::Incomplete => Problem::invalid("The body is incomplete.", Vec::new()),
    }
}
