//! TLS of the listener: renewed certificates, invalid certificates, HSTS and plain HTTP.

use crate::support::api::hello;
use crate::support::http::{self, Request};
use crate::support::https_client::{H2, HSTS, HTTP_1_1, HttpsClient, Pair, get, start};
use crate::support::server::Server;
use crate::support::wait::eventually;

fn mismatches(server: &Server) -> usize {
    server.log().matches("does not match the first certificate").count()
}

#[test]
fn a_renewed_certificate_is_loaded() {
    let (old, new, third) = (Pair::new(), Pair::new(), Pair::new());
    let mut server = start(&old);
    let address = server.address();
    let mut kept = HttpsClient::open(address, &old, H2).unwrap();
    let healthy = |client: &mut HttpsClient| client.ask(get("/healthz")).unwrap().status() == 200;
    assert!(healthy(&mut kept) && HttpsClient::open(address, &new, H2).is_err());
    // Without a signal.
    new.put(&server);
    eventually("the new certificate is shown", || HttpsClient::open(address, &new, HTTP_1_1).ok());
    assert!(HttpsClient::open(address, &old, H2).is_err());
    // A key of another certificate changes nothing, and is logged once.
    let broken = Pair { cert: third.cert.clone(), key: old.key.clone() };
    broken.put(&server);
    server.process().hang_up();
    eventually("the mismatch is logged", || (mismatches(&server) == 1).then_some(()));
    server.process().hang_up();
    eventually("the signal is handled", || {
        (server.log().matches("SIGHUP").count() == 2).then_some(())
    });
    assert!(healthy(&mut HttpsClient::open(address, &new, H2).unwrap()));
    // With a signal.
    third.put(&server);
    server.process().hang_up();
    eventually("the third certificate is shown", || HttpsClient::open(address, &third, H2).ok());
    assert!(healthy(&mut kept));
    assert_eq!(mismatches(&server), 1);
    for pair in [old, new, third] {
        let secret = pair.key.lines().nth(1).unwrap().to_owned();
        assert!(!server.log().contains(&secret), "a private key");
    }
    assert_eq!(server.stop().code(), Some(0));
}

#[test]
fn sighup_does_not_end_the_server() {
    let mut server = Server::start();
    server.process().hang_up();
    eventually("the signal is logged", || server.log().contains("SIGHUP").then_some(()));
    assert_eq!(server.ask(&Request::get("/healthz")).status, 200);
}

#[test]
fn an_invalid_certificate_or_key_is_reported_at_start() {
    let (pair, other) = (Pair::new(), Pair::new());
    let mut server = Server::new("");
    pair.put(&server);
    std::fs::write(server.home.path().join("other.pem"), other.key).unwrap();
    for (arguments, hint) in [
        (
            &["serve", "--tls-cert", "cert.pem"][..],
            "server.tls_cert requires server.tls_key (--tls-key)",
        ),
        (
            &["serve", "--tls-key", "key.pem"],
            "server.tls_key requires server.tls_cert (--tls-cert)",
        ),
        (&["serve", "--tls-cert", "gone", "--tls-key", "key.pem"], "cannot read gone"),
        (
            &["serve", "--tls-cert", "key.pem", "--tls-key", "key.pem"],
            "key.pem contains no certificate",
        ),
        (
            &["serve", "--tls-cert", "cert.pem", "--tls-key", "cert.pem"],
            "cert.pem contains no readable private key",
        ),
        (
            &["serve", "--tls-cert", "cert.pem", "--tls-key", "other.pem"],
            "the key in other.pem does not match the first certificate in cert.pem",
        ),
    ] {
        let stderr = server.fails_to_start(arguments);
        assert!(stderr.contains(hint) && stderr.contains("server.tls_"), "{stderr}");
        assert!(!stderr.contains("MI"), "{stderr}");
    }
    assert!(!server.home.path().join("data").exists());
    // With a certificate and its key, all addresses are allowed.
    server.launch_with(&[
        "--listen",
        "0.0.0.0:0",
        "--tls-cert",
        "cert.pem",
        "--tls-key",
        "key.pem",
    ]);
    eventually("the server listens", || server.log().contains("listening").then_some(()));
}

#[test]
fn hsts_needs_https_or_a_trusted_proxy() {
    let hsts = |server: &Server, proto: &str| {
        let response = server.ask(&Request::get("/healthz").header("X-Forwarded-Proto", proto));
        response.header("strict-transport-security").map(str::to_owned)
    };
    let plain = Server::start();
    let response = plain.ask(&Request::get("/healthz"));
    assert_eq!((response.status, response.header("strict-transport-security")), (200, None));
    assert_eq!(hsts(&plain, "https"), None);
    let proxied = Server::with("[server]\nbehind_proxy = true\n");
    assert_eq!(hsts(&proxied, "https").as_deref(), HSTS);
    assert_eq!(hsts(&proxied, "http"), None);
    assert_eq!(proxied.ask(&Request::get("/healthz")).header("strict-transport-security"), None);
}

#[test]
fn plain_http_on_an_https_port_gets_400() {
    let server = start(&Pair::new());
    let response = http::ask(server.address(), &Request::get("/healthz")).unwrap();
    assert_eq!(response.status, 400);
    assert!(response.text().contains("requires HTTPS"), "{}", response.text());
    assert!(response.header("x-request-id").is_some());
}

/// curl drops an HTTP/2 response if its upload is reset, so early errors must not reset it.
#[cfg(feature = "test-peers")]
#[test]
fn curl_receives_early_errors_over_http2() {
    let pair = Pair::new();
    let server = start(&pair);
    let ca = server.home.path().join("cert.pem");
    let ask = |key: &str, path: &str, bytes: usize| {
        let body = server.home.path().join("body.json");
        std::fs::write(&body, "x".repeat(bytes)).unwrap();
        let mut curl = std::process::Command::new("curl");
        curl.args(["-s", "--http2", "-o", "/dev/null", "-w", "%{http_version} %{http_code}"]);
        curl.arg("--cacert").arg(&ca).arg("-H").arg(format!("Authorization: Bearer {key}"));
        curl.arg("-H").arg("Content-Type: application/json").arg("--data-binary");
        curl.arg(format!("@{}", body.display())).arg(format!("https://{}{path}", server.address()));
        let output = curl.output().unwrap();
        (output.status.code(), String::from_utf8(output.stdout).unwrap())
    };
    let key = server.key();
    let expected = |status: u16| (Some(0), format!("2 {status}"));
    for _ in 0..10 {
        assert_eq!(ask("hg_live_wrong", "/v1/send/sms", 60), expected(401));
        assert_eq!(ask(&key, "/v1/nothing", 60), expected(404));
        assert_eq!(ask("hg_live_wrong", "/v1/send/sms", 500_000), expected(401));
        assert_eq!(ask(&key, "/v1/send/sms", 2_000_000), expected(413));
    }
}

#[test]
fn every_response_has_security_headers() {
    let server = Server::start();
    let key = server.key();
    let send = Request::send_sms(&key, hello("+447700900123").to_string());
    for (request, status, cache) in [
        (Request::get("/healthz"), 200, "no-store"),
        (Request::get("/v1/balance"), 401, "no-store"),
        (Request::get("/v1/nothing"), 404, "no-store"),
        (send, 201, "no-store"),
        (Request::get("/sign-in"), 200, "no-store"),
        (Request::get("/v1/openapi.json"), 200, "no-cache"),
    ] {
        let response = server.ask(&request);
        let headers = ["x-content-type-options", "cache-control", "strict-transport-security"];
        let found = headers.map(|name| response.header(name));
        assert_eq!((response.status, found), (status, [Some("nosniff"), Some(cache), None]));
    }
}
