//! A reverse proxy in front: the headers of trusted proxies count, those of others have no effect.

use crate::support::api::problem;
use crate::support::http::Request;
use crate::support::server::Server;
use crate::support::wait::eventually;

/// Sends a request for a balance with forwarded headers; returns the status.
fn balance(server: &Server, key: &str, headers: &[(&str, &str)]) -> u16 {
    let mut request = Request::get("/v1/balance").key(key);
    for (name, value) in headers {
        request = request.header(name, *value);
    }
    server.ask(&request).status
}

/// Waits for the access log line of a request with this id; returns the client address.
fn logged_client(server: &Server, id: &str) -> String {
    let line = eventually("the request is logged", || {
        let log = server.log();
        log.lines().find(|line| line.contains(&format!("request={id} "))).map(str::to_owned)
    });
    let client = line.split(" client=").nth(1).unwrap();
    client.split(' ').next().unwrap().to_owned()
}

#[test]
fn keys_and_pages_need_https_behind_a_proxy() {
    let server = Server::with("[server]\nbehind_proxy = true");
    let key = server.key();
    for path in ["/v1/balance", "/sign-in", "/", "/docs", "/v1/nothing"] {
        for proto in ["http", "", "httpss", "https, http"] {
            let request = Request::get(path).key(&key).header("X-Forwarded-Proto", proto);
            assert_eq!(
                problem(&server.ask(&request), 400, "invalid_request"),
                [],
                "{path} {proto}"
            );
        }
        assert_eq!(server.ask(&Request::get(path).key(&key)).status, 400, "{path}");
        let https = Request::get(path).key(&key).header("X-Forwarded-Proto", "https");
        assert_ne!(server.ask(&https).status, 400, "{path}");
    }
    assert_eq!(balance(&server, &key, &[("X-Forwarded-Proto", "https")]), 200);
    // Load balancers ask directly.
    for path in ["/healthz", "/readyz"] {
        assert_eq!(server.ask(&Request::get(path)).status, 200);
    }
}

#[test]
fn headers_of_an_untrusted_proxy_have_no_effect() {
    let server = Server::with("[server]\nbehind_proxy = true\ntrusted_proxies = ['127.0.0.2']");
    let key = server.key();
    let forged = [
        ("X-Forwarded-Proto", "https"),
        ("X-Forwarded-For", "198.51.100.4"),
        ("X-Request-Id", "forged"),
    ];
    assert_eq!(balance(&server, &key, &forged), 400);
    assert_eq!(logged_client(&server, "forged"), "127.0.0.1");
    let plain = Server::start();
    let key = plain.key();
    assert_eq!(balance(&plain, &key, &forged), 200);
    assert_eq!(logged_client(&plain, "forged"), "127.0.0.1");
}

#[test]
fn the_client_is_the_last_untrusted_address() {
    let server = Server::with(
        "[server]\nbehind_proxy = true\ntrusted_proxies = ['127.0.0.1', '10.0.0.0/8']",
    );
    let key = server.key();
    for (id, forwarded_for, client) in [
        ("one", "198.51.100.4", "198.51.100.4"),
        ("two", "127.0.0.1, 198.51.100.4", "198.51.100.4"),
        ("three", "9.9.9.9, 2001:db8::1, 10.1.1.1", "2001:db8::1"),
        ("four", "9.9.9.9, unknown", "127.0.0.1"),
    ] {
        let headers = [
            ("X-Forwarded-Proto", "https"),
            ("X-Forwarded-For", forwarded_for),
            ("X-Request-Id", id),
        ];
        assert_eq!(balance(&server, &key, &headers), 200);
        assert_eq!(logged_client(&server, id), client, "{forwarded_for}");
    }
}
