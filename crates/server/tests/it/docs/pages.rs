//! The pages under `/docs`: headers, links and completeness.

use crate::support::api::problem;
use crate::support::http::{HttpResponse, Request};
use crate::support::server::Server;
use std::collections::{BTreeMap, BTreeSet};

/// Codes of planned features, which have no page.
const RESERVED: [&str; 7] = [
    "double_braces",
    "not_editable",
    "not_in_future",
    "spend_limit_reached",
    "unknown_merge_field",
    "unknown_time_zone",
    "velocity_limited",
];

fn page(server: &Server, path: &str) -> HttpResponse {
    let response = server.ask(&Request::get(path));
    assert_eq!(response.status, 200, "{path}");
    response
}

/// Returns the values of an attribute in a page.
fn values(html: &str, attribute: &str) -> BTreeSet<String> {
    let begin = format!(" {attribute}=\"");
    html.split(&begin).skip(1).map(|p| p.split('"').next().unwrap().to_owned()).collect()
}

/// Returns all pages that can be reached from the first one.
fn pages(server: &Server) -> BTreeMap<String, String> {
    let (mut pages, mut open) = (BTreeMap::new(), vec!["/docs".to_owned()]);
    while let Some(path) = open.pop() {
        let html = page(server, &path).text();
        for link in values(&html, "href") {
            let path = link.split('#').next().unwrap();
            let new = path.starts_with("/docs") && !path.contains('.') && !pages.contains_key(path);
            if new && !open.iter().any(|o| o == path) {
                open.push(path.to_owned());
            }
        }
        pages.insert(path, html);
    }
    pages
}

#[test]
fn every_page_has_a_strict_policy() {
    let server = Server::start();
    let pages = pages(&server);
    assert!(pages.len() > 15, "{:?}", pages.keys());
    for (path, html) in &pages {
        let response = page(&server, path);
        for (name, value) in [
            ("content-type", "text/html; charset=utf-8"),
            ("x-content-type-options", "nosniff"),
            ("referrer-policy", "no-referrer"),
            ("cache-control", "no-cache"),
        ] {
            assert_eq!(response.header(name), Some(value), "{path}");
        }
        let policy = response.header("content-security-policy").unwrap();
        for rule in ["default-src 'self'", "script-src 'none'", "frame-ancestors 'none'"] {
            assert!(policy.split("; ").any(|r| r == rule), "{path}: {policy}");
        }
        let tag = response.header("etag").unwrap();
        let again = Request::get(path).header("If-None-Match", tag);
        assert_eq!(server.ask(&again).status, 304, "{path}");
        for outside in ["<script", " style=", "<iframe", "javascript:", " onclick="] {
            assert!(!html.contains(outside), "{path} has {outside}");
        }
        let addresses = values(html, "href").into_iter().chain(values(html, "src"));
        for address in addresses {
            let own =
                address.starts_with('#') || address.starts_with('/') && !address.starts_with("//");
            // Guides link to standards and tools.
            let guide = path.starts_with("/docs/guides/") && address.starts_with("https://");
            assert!(own || guide, "{path} leads to {address}");
        }
    }
    for (path, kind) in
        [("/docs/style.css", "text/css; charset=utf-8"), ("/docs/icon.svg", "image/svg+xml")]
    {
        let response = page(&server, path);
        assert_eq!(response.header("content-type"), Some(kind));
        assert!(!response.text().contains("url(") && !response.text().contains("@import"));
    }
    problem(&server.ask(&Request::get("/docs?theme=dark")), 400, "invalid_request");
}

#[test]
fn links_have_a_target() {
    let server = Server::start();
    let pages = pages(&server);
    for (path, html) in &pages {
        for link in values(html, "href").into_iter().filter(|link| !link.starts_with("https://")) {
            let (to, place) = link.split_once('#').unwrap_or((&link, ""));
            let to = if to.is_empty() { path } else { to };
            let there = pages.get(to).cloned().unwrap_or_else(|| page(&server, to).text());
            let found = place.is_empty() || values(&there, "id").contains(place);
            assert!(found, "{path} leads to {link}, which is not there");
        }
    }
}

#[test]
fn every_operation_and_error_is_documented() {
    let server = Server::start();
    let document = page(&server, "/v1/openapi.json").json();
    let html = page(&server, "/docs").text();
    let places = values(&html, "id");
    for section in ["paths", "webhooks"] {
        for operation in document[section].as_object().unwrap().values() {
            for told in operation.as_object().unwrap().values() {
                assert!(places.contains(told["operationId"].as_str().unwrap()), "{told}");
            }
        }
    }
    for name in document["components"]["schemas"].as_object().unwrap().keys() {
        assert!(places.contains(&format!("type-{name}")), "{name}");
    }
    let codes = |name: &str| {
        let codes = &document["components"]["schemas"][name]["anyOf"][0]["enum"];
        let codes = codes.as_array().unwrap().iter().map(|code| code.as_str().unwrap());
        codes.filter(|code| !RESERVED.contains(code)).collect::<Vec<_>>()
    };
    for name in codes("ProblemCode") {
        assert!(page(&server, &format!("/docs/errors/{name}")).text().contains(name));
    }
    for name in codes("FaultCode") {
        let html = page(&server, "/docs/errors/invalid_request").text();
        assert!(values(&html, "id").contains(name), "{name}");
    }
}

#[test]
fn error_types_are_pages() {
    let server = Server::start();
    for request in [
        Request::get("/nowhere"),
        Request::get("/v1/messages/0"),
        Request::new("PUT", "/docs"),
        Request::send_sms(&server.key(), "{}"),
    ] {
        let address = server.ask(&request).json()["type"].as_str().unwrap().to_owned();
        assert!(page(&server, &address).text().contains("Solution"));
    }
}
