//! Requests to the API, and its responses as snapshots show them.

use axum::extract::Request;
use axum::http::{HeaderMap, StatusCode, header, request};
use serde_json::{Value, json};
use std::fmt;

/// Begins a request with this API key, or without one if it is empty.
pub(crate) fn request(method: &str, key: &str, path: &str) -> request::Builder {
    let request = Request::builder().method(method).uri(path);
    match key {
        "" => request,
        key => request.header(header::AUTHORIZATION, format!("Bearer {key}")),
    }
}

/// Begins a request with a JSON body.
pub(crate) fn json_request(key: &str, path: &str) -> request::Builder {
    request("POST", key, path).header(header::CONTENT_TYPE, "application/json")
}

/// A response. Snapshots show its status, its headers and its body.
pub(crate) struct ApiResponse {
    pub(crate) status: StatusCode,
    pub(crate) headers: HeaderMap,
    pub(crate) body: String,
    shown: String,
}

impl ApiResponse {
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap()
    }

    /// Returns the parts of a problem document that differ between problems of one kind: a short
    /// form for snapshots.
    pub(crate) fn problem(&self) -> String {
        let body = self.json();
        let text = |value: &Value, name: &str| value[name].as_str().unwrap().to_owned();
        assert_eq!(self.headers[header::CONTENT_TYPE], "application/problem+json");
        assert_eq!(
            (&body["status"], text(&body, "requestId")),
            (&json!(self.status.as_u16()), "test".to_owned())
        );
        assert_eq!(text(&body, "type"), format!("/docs/errors/{}", text(&body, "code")));
        let mut lines =
            vec![format!("{} {}: {}", body["status"], text(&body, "code"), text(&body, "detail"))];
        for fault in body["errors"].as_array().into_iter().flatten() {
            let [pointer, code, detail] =
                ["pointer", "code", "detail"].map(|name| text(fault, name));
            lines.push(format!("{pointer} {code}: {detail}"));
        }
        lines.join("\n")
    }

    /// Returns some fields of the body, redacted for snapshots.
    pub(crate) fn fields<const N: usize>(&self, names: [&str; N]) -> String {
        let (_, body) = self.shown.split_once("\n{").unwrap();
        let body: Value = serde_json::from_str(&format!("{{{body}")).unwrap();
        names.map(|name| format!("{name}: {}", body[name])).join("\n")
    }

    /// Returns the id of the object in the body.
    pub(crate) fn id(&self) -> String {
        self.json()["id"].as_str().unwrap().to_owned()
    }

    /// Creates a response; `redact` redacts its text for snapshots.
    pub(crate) fn new(
        status: StatusCode,
        headers: HeaderMap,
        body: String,
        redact: impl FnOnce(&str) -> String,
    ) -> Self {
        let mut response = Self { status, headers, body, shown: String::new() };
        response.shown = redact(&response.render());
        response
    }

    fn render(&self) -> String {
        let mut lines = vec![self.status.to_string()];
        for (name, value) in self.headers.iter().filter(|(n, _)| *n != header::CONTENT_LENGTH) {
            lines.push(format!("{name}: {}", value.to_str().unwrap()));
        }
        lines[1..].sort_unstable();
        let json = serde_json::from_str::<Value>(&self.body);
        lines.push(json.map_or(self.body.clone(), |json| format!("{json:#}")));
        lines.join("\n")
    }
}

impl fmt::Display for ApiResponse {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.shown)
    }
}
