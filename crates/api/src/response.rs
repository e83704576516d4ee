//! JSON responses, and serializers of their values.

use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde::{Serialize, Serializer};
use std::fmt;

/// Returns a response with a JSON body.
pub(crate) fn json(status: StatusCode, body: &impl Serialize) -> Response {
    let mut json = Vec::with_capacity(640);
    let _ = serde_json::to_writer(&mut json, body);
    let kind = HeaderValue::from_static("application/json");
    (status, [(header::CONTENT_TYPE, kind)], json).into_response()
}

/// Serializes a value as a string, by its `Display` implementation.
pub(crate) fn as_string<S: Serializer>(value: &impl fmt::Display, s: S) -> Result<S::Ok, S::Error> {
    s.collect_str(value)
}

/// Serializes an optional value as a string or null.
pub(crate) fn as_string_opt<S: Serializer>(
    value: &Option<impl fmt::Display>,
    s: S,
) -> Result<S::Ok, S::Error> {
    match value {
        Some(value) => s.collect_str(value),
        None => s.serialize_none(),
    }
}
