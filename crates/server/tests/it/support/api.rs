//! Requests to the API and checks of its responses that many tests share.

use crate::support::http::{HttpResponse, Request};
use crate::support::server::Server;
use serde_json::{Value, json};

/// Returns the body of a valid message.
pub(crate) fn hello(recipient: &str) -> Value {
    json!({ "originator": "Shop", "recipient": recipient, "text": "Hello" })
}

/// Reads a resource, which must exist.
pub(crate) fn get(server: &Server, key: &str, path: &str) -> Value {
    let response = server.ask(&Request::get(path).key(key));
    assert_eq!(response.status, 200, "{path}: {}", response.text());
    response.json()
}

/// Returns the first page of a list.
pub(crate) fn data(server: &Server, key: &str, path: &str) -> Vec<Value> {
    get(server, key, path)["data"].as_array().unwrap().clone()
}

/// A request with a JSON body.
pub(crate) fn post(key: &str, path: &str, body: &Value) -> Request {
    Request::send_sms(key, body.to_string()).to(path)
}

/// Asserts that a response is a complete problem document; returns its errors as (pointer, code).
pub(crate) fn problem(response: &HttpResponse, status: u16, code: &str) -> Vec<(String, String)> {
    assert_eq!(response.status, status, "{}", response.text());
    assert_eq!(response.header("content-type"), Some("application/problem+json"));
    let body = response.json();
    assert_eq!(body["type"], format!("/docs/errors/{code}"));
    assert_eq!((&body["status"], &body["code"]), (&json!(status), &json!(code)));
    assert_eq!(body["requestId"].as_str(), response.header("x-request-id"));
    for sentence in ["title", "detail"] {
        assert!(body[sentence].as_str().is_some_and(|s| s.len() > 5), "{body}");
    }
    let known = ["type", "title", "status", "detail", "code", "requestId", "errors"];
    assert!(body.as_object().unwrap().keys().all(|k| known.contains(&k.as_str())), "{body}");
    let faults = body["errors"].as_array().cloned().unwrap_or_default();
    let text = |v: &Value| v.as_str().unwrap().to_owned();
    assert!(faults.iter().all(|f| text(&f["detail"]).ends_with(['.', '?', ')'])), "{body}");
    faults.iter().map(|f| (text(&f["pointer"]), text(&f["code"]))).collect()
}
