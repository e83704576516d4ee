//! The OpenAPI document, compared with the routes of the server.

use crate::support::api::problem;
use crate::support::http::Request;
use crate::support::openapi::{COMMITTED, document};
use crate::support::server::Server;
use serde_json::json;
use std::collections::BTreeSet;

#[test]
fn the_document_is_served() {
    let server = Server::start();
    let response = server.ask(&Request::get("/v1/openapi.json"));
    assert_eq!((response.status, response.header("content-type")), (200, Some("application/json")));
    assert!(response.text() == COMMITTED, "the server's document differs from openapi.json");
    assert_eq!(response.json()["openapi"], "3.1.0");
    let tag = response.header("etag").unwrap();
    for (had, status) in [
        (tag, 304),
        (&*format!("\"x\", W/{tag}"), 304),
        ("*", 304),
        ("\"x\"", 200),
        (&tag[1..], 200),
    ] {
        let request = Request::get("/v1/openapi.json").header("If-None-Match", had);
        let response = server.ask(&request);
        assert_eq!((response.status, response.header("etag")), (status, Some(tag)), "{had}");
        assert_eq!(response.body.is_empty(), status == 304);
    }
    let response = server.ask(&Request::get("/v1/openapi.json?pretty=false"));
    problem(&response, 400, "invalid_request");
}

/// A path supports exactly the methods in the document.
#[test]
fn every_route_is_documented() {
    let server = Server::start();
    for (path, item) in document()["paths"].as_object().unwrap() {
        let mut methods: BTreeSet<_> =
            item.as_object().unwrap().keys().map(String::as_str).collect();
        if methods.contains("get") {
            methods.insert("head");
        }
        let address = path.replace("{id}", "default").replace("{number}", "447700900123");
        let response = server.ask(&Request::new("BREW", &address));
        problem(&response, 405, "method_not_allowed");
        let allowed = response.header("allow").unwrap().to_ascii_lowercase();
        assert_eq!(allowed.split(',').collect::<BTreeSet<_>>(), methods, "{path}");
        let open = item.as_object().unwrap().values().all(|o| o["security"] == json!([]));
        if let (false, Some(method)) = (open, methods.first()) {
            let method = method.to_ascii_uppercase();
            problem(&server.ask(&Request::new(&method, &address)), 401, "unauthenticated");
        }
    }
}
