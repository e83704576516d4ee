//! Servers with webhook endpoints.

use crate::support::server::Server;
use serde_json::Value;

const DEMO: &str = "demo@localhost";

/// Starts a server that allows webhooks to this machine, with a timeout of one second.
pub(crate) fn server() -> Server {
    let config = "[webhooks]\nallow_private = ['127.0.0.1/32']\ntimeout_seconds = 1\n";
    Server::with(config)
}

/// Registers an endpoint; returns its id and secret.
pub(crate) fn add(server: &Server, url: &str, more: &[&str]) -> (String, String) {
    let arguments = [&["webhook", "add", "--account", DEMO, "--url", url], more].concat();
    let made: Value = serde_json::from_str(&server.stdout(&arguments)).unwrap();
    (made["id"].to_string(), made["secret"].as_str().unwrap().to_owned())
}
