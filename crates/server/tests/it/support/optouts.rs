//! Requests to `/v1/optout-lists` that several tests share.

use crate::support::api::post;
use crate::support::http::{HttpResponse, Request};
use crate::support::server::Server;
use serde_json::{Value, json};

pub(crate) const LISTS: &str = "/v1/optout-lists";
pub(crate) const NUMBERS: &str = "/v1/optout-lists/default/numbers";

/// A request to import a file of numbers.
pub(crate) fn file(key: &str, list: &str, csv: impl Into<Vec<u8>>) -> Request {
    let path = format!("{LISTS}/{list}/numbers/import");
    Request::new("POST", &path).key(key).header("Content-Type", "text/csv").body(csv)
}

/// Adds a number to a list.
pub(crate) fn add(server: &Server, key: &str, list: &str, body: &Value) -> HttpResponse {
    server.ask(&post(key, &format!("{LISTS}/{list}/numbers"), body))
}

/// Creates a list; returns its id.
pub(crate) fn make(server: &Server, key: &str, name: &str) -> String {
    let response = server.ask(&post(key, LISTS, &json!({ "name": name })));
    assert_eq!(response.status, 201, "{}", response.text());
    response.json()["id"].as_str().unwrap().to_owned()
}
