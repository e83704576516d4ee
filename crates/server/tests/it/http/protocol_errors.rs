//! Requests that are not valid HTTP get a problem document and a request id.

use crate::support::api::problem;
use crate::support::http::{Connection, HttpResponse};
use crate::support::https_client::{H2, HttpsClient, Pair, get, json, start};
use crate::support::server::Server;
use crate::support::wait::eventually;

/// Sends bytes as they are; returns the response.
fn send(server: &Server, request: &str) -> HttpResponse {
    let mut connection = Connection::open(server.address()).unwrap();
    connection.write(request.as_bytes()).unwrap();
    connection.response().unwrap()
}

#[test]
fn malformed_requests_get_a_problem() {
    let server = Server::start();
    for request in [
        "GET /healthz HTTP/9.9\r\nHost: test\r\n\r\n",
        "GET\r\n\r\n",
        "GET /healthz HTTP/1.1\r\nHost: test\r\nBad Name: a\r\n\r\n",
        "GET /healthz HTTP/1.1\r\nHost: test\r\nContent-Length: a\r\n\r\n",
        "\u{1}\u{2}\u{3}\r\n\r\n",
    ] {
        let response = send(&server, request);
        assert_eq!(problem(&response, 400, "invalid_request"), [], "{request:?}");
        assert_eq!(response.header("connection"), Some("close"));
        let id = response.header("x-request-id").unwrap().to_owned();
        assert_eq!(response.json()["requestId"], id.as_str());
        eventually("the request is logged", || {
            let line = format!("request={id} client=127.0.0.1 status=400");
            server.log().contains(&line).then_some(())
        });
    }
    assert!(server.log().contains("event=request_refused client=127.0.0.1 reason=malformed"));
}

#[test]
fn heads_over_the_limit_get_a_problem() {
    let pair = Pair::new();
    let server = start(&pair);
    let mut client = HttpsClient::open(server.address(), &pair, H2).unwrap();
    let mut large = get("/healthz");
    for _ in 0..3 {
        large.headers_mut().append("cookie", "a".repeat(15 << 10).parse().unwrap());
    }
    let response = client.ask(large).unwrap();
    assert_eq!(response.status(), 431);
    assert_eq!(json(&response)["code"], "headers_too_large");
    assert!(response.headers().contains_key("x-request-id"));
    assert_eq!(client.ask(get("/healthz")).unwrap().status(), 200);
    let plain = Server::start();
    // Far more than is read: the client still gets the response.
    for size in [33 << 10, 600 << 10] {
        let cookie = "a".repeat(size);
        let response =
            send(&plain, &format!("GET / HTTP/1.1\r\nHost: test\r\nCookie: {cookie}\r\n\r\n"));
        assert_eq!(problem(&response, 431, "headers_too_large"), []);
    }
}

#[test]
fn a_request_names_one_host() {
    let server = Server::start();
    for hosts in ["", "Host: a\r\nHost: b\r\n", "Host: \r\n", "Host: a/b\r\n"] {
        let response = send(&server, &format!("GET /v1/balance HTTP/1.1\r\n{hosts}\r\n"));
        assert_eq!(problem(&response, 400, "invalid_request"), [], "{hosts:?}");
    }
    assert_eq!(send(&server, "GET /healthz HTTP/1.0\r\n\r\n").status, 200);
    assert_eq!(send(&server, "GET /healthz HTTP/1.1\r\nHost: a:80\r\n\r\n").status, 200);
}

#[test]
fn types_are_absolute_with_a_public_url() {
    let server = Server::with("[server]\npublic_url = 'https://sms.example.com'");
    for (request, code) in [
        ("GET /v1/nothing HTTP/1.1\r\nHost: a\r\n\r\n", "not_found"),
        ("GET /v1 nothing HTTP/1.1\r\nHost: a\r\n\r\n", "invalid_request"),
    ] {
        let kind = send(&server, request).json()["type"].clone();
        assert_eq!(kind, format!("https://sms.example.com/docs/errors/{code}"));
    }
}
