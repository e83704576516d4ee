//! Answers as JSON, and how their values are written.

use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde::{Serialize, Serializer};
use std::fmt;

/// An answer with a body.
pub(crate) fn json(status: StatusCode, body: &impl Serialize) -> Response {
    let mut json = Vec::with_capacity(640);
    let _ = serde_json::to_writer(&mut json, body);
    let kind = HeaderValue::from_static("application/json");
    (status, [(header::CONTENT_TYPE, kind)], json).into_response()
}

/// As a string, in the form that it prints itself.
pub(crate) fn shown<S: Serializer>(value: &impl fmt::Display, s: S) -> Result<S::Ok, S::Error> {
    s.collect_str(value)
}

/// The same for what may be absent.
pub(crate) fn shown_if<S: Serializer>(
    value: &Option<impl fmt::Display>,
    s: S,
) -> Result<S::Ok, S::Error> {
    match value {
        Some(value) => s.collect_str(value),
        None => s.serialize_none(),
    }
}
