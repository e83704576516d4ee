//! `/metrics` tells names of carriers and volumes: it is not public.

use crate::support::api::problem;
use crate::support::http::{self, Request};
use crate::support::server::Server;

#[test]
fn metrics_of_a_public_server_are_hidden_or_need_the_token() {
    let page = Request::get("/metrics");
    assert_eq!(Server::start().ask(&page).status, 200);
    let public = Server::with("[server]\nbehind_proxy = true");
    assert_eq!(problem(&public.ask(&page), 404, "not_found"), []);
    let token = "a token of 23 characters";
    let config = format!("[server]\nbehind_proxy = true\n[telemetry]\nmetrics_token = '{token}'");
    let protected = Server::with(&config);
    assert_eq!(problem(&protected.ask(&page), 401, "unauthenticated"), []);
    let wrong = page.clone().key("a token of 24 characters");
    assert_eq!(protected.ask(&wrong).status, 401);
    assert_eq!(protected.ask(&page.key(token)).status, 200);
    assert!(!protected.log().contains(token));
}

#[test]
fn metrics_can_have_an_address_of_their_own() {
    let server = Server::with("[telemetry]\nmetrics_listen = '127.0.0.1:0'");
    let page = Request::get("/metrics");
    assert_eq!(server.ask(&page).status, 404);
    let log = server.log();
    let address = log.split("serving metrics address=").nth(1).unwrap().lines().next().unwrap();
    let response = http::ask(address.parse().unwrap(), &page).unwrap();
    assert!(response.status == 200 && response.text().contains("heliograph_accepted_total"));
    let other = http::ask(address.parse().unwrap(), &Request::get("/v1/balance")).unwrap();
    assert_eq!(problem(&other, 404, "not_found"), []);
}
