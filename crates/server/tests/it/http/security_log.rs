//! Security events in the log, and the client and the key of each request.

use crate::support::browser::Browser;
use crate::support::http::Request;
use crate::support::server::Server;
use crate::support::sign_in::{PASSWORD, sign_in, sign_up};
use crate::support::wait::eventually;

/// Waits for a line of the log that contains all of these.
fn logged(server: &Server, parts: &[&str]) -> String {
    eventually(&format!("the log has {parts:?}"), || {
        let log = server.log();
        let line = log.lines().find(|line| parts.iter().all(|part| line.contains(part)));
        line.map(str::to_owned)
    })
}

#[test]
fn failed_sign_ins_name_the_client_and_the_reason() {
    let server = Server::with("[server]\nbehind_proxy = false");
    let browser = sign_up(&server, "ann@example.com");
    logged(
        &server,
        &[" INFO security event event=signed_in client=127.0.0.1 reason=sign_up", "user="],
    );
    drop(browser);
    let stranger = Browser::new(&server);
    sign_in(&stranger, "ann@example.com", "not the password");
    let line = " WARN security event event=sign_in_failed client=127.0.0.1 reason=";
    logged(&server, &[&format!("{line}wrong_password"), "user="]);
    sign_in(&stranger, "nobody@example.com", "not the password");
    logged(&server, &[&format!("{line}unknown_user")]);
    for _ in 0..10 {
        sign_in(&stranger, "ann@example.com", "not the password");
    }
    logged(&server, &[" WARN security event event=rate_limited client=127.0.0.1 reason=sign_in"]);
    let log = server.log();
    for secret in [PASSWORD, "not the password", "ann@example.com", "nobody@example.com"] {
        assert!(!log.contains(secret), "{secret} is in the log");
    }
}

#[test]
fn refused_keys_and_the_keys_of_requests_are_logged() {
    let server = Server::with("[limits]\nrequests_per_second = 5");
    let key = server.key();
    let id = server.list(&["key", "list", "--account", "demo@localhost"])[0]["id"]
        .as_str()
        .unwrap()
        .to_owned();
    let ask = |key: &str| server.ask(&Request::get("/v1/balance").key(key)).status;
    assert_eq!(ask(&key), 200);
    let known = format!("client=127.0.0.1 key={id} method=GET path=/v1/balance status=200");
    logged(&server, &[&known]);
    assert_eq!(ask("hg_live_wrong"), 401);
    let line = " WARN security event event=key_refused client=127.0.0.1 reason=unauthenticated";
    logged(&server, &[line]);
    eventually("the rate limit is reached", || (ask(&key) == 429).then_some(()));
    let limited = "event=rate_limited client=127.0.0.1 reason=rate_limited key=";
    logged(&server, &[&format!("{limited}{id}")]);
    server.stdout(&["key", "revoke", &id]);
    eventually("the revoked key is refused", || (ask(&key) == 401).then_some(()));
    logged(&server, &[&format!("event=revoked_key_used key={id} account=")]);
    assert!(!server.log().contains(&key));
}

#[test]
fn assets_are_not_logged_by_default() {
    let server = Server::start();
    assert_eq!(server.ask(&Request::get("/docs/style.css")).status, 200);
    assert_eq!(server.ask(&Request::get("/docs/errors")).status, 200);
    logged(&server, &["path=/docs/errors status=200"]);
    assert!(!server.log().contains("path=/docs/style.css"));
    logged(&server, &["data directory path=/"]);
}
