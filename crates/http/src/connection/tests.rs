//! Tests of slow, flooding and idle clients, and of clients during a drain, with paused time.

use super::*;
use crate::drain::DrainController;
use axum::body::Body;
use axum::http::StatusCode;
use http_body_util::Empty;
use hyper::body::Bytes;
use hyper_util::rt::TokioExecutor;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream, duplex};
use tokio::time::{Instant, sleep};

const REQUEST: &[u8] = b"GET / HTTP/1.1\r\nHost: test\r\n\r\n";

/// A server whose requests to `/slow` take 90 seconds, and which answers 503 while it drains.
struct TestServer {
    controller: DrainController,
    limits: ListenerLimits,
    connections: JoinSet<()>,
}

impl TestServer {
    fn new() -> Self {
        let (controller, limits) = (DrainController::new(100), ListenerLimits::default());
        Self { controller, limits, connections: JoinSet::new() }
    }

    fn server(
        &self,
    ) -> HttpServer<
        impl Fn(
            Request<Incoming>,
        ) -> futures_util::future::BoxFuture<'static, Result<Response, Infallible>>
        + use<>,
    > {
        let gate = self.controller.gate();
        let handler = move |request: Request<Incoming>| answer(gate.clone(), request).boxed();
        HttpServer {
            handler,
            gate: self.controller.gate(),
            limits: self.limits,
            errors: ErrorDocuments::of_tests(),
            peer: std::net::Ipv4Addr::LOCALHOST.into(),
        }
    }

    fn http1(&mut self) -> DuplexStream {
        let (client, stream) = duplex(1 << 16);
        self.connections.spawn(self.server().http1(stream));
        client
    }

    async fn http2(&mut self) -> hyper::client::conn::http2::SendRequest<Empty<Bytes>> {
        let (client, stream) = duplex(1 << 16);
        self.connections.spawn(self.server().http2(stream));
        let builder = hyper::client::conn::http2::Builder::new(TokioExecutor::new());
        let (sender, connection) = builder.handshake(TokioIo::new(client)).await.unwrap();
        self.connections.spawn(connection.map(drop));
        sender
    }

    /// Waits until all connections have ended; returns the seconds it took.
    async fn ended(&mut self) -> u64 {
        let begun = Instant::now();
        while self.connections.join_next().await.is_some() {}
        begun.elapsed().as_secs()
    }
}

async fn answer(gate: RequestGate, request: Request<Incoming>) -> Result<Response, Infallible> {
    let mut response = Response::new(Body::from("done"));
    let Some(_permit) = gate.try_open() else {
        *response.status_mut() = StatusCode::SERVICE_UNAVAILABLE;
        response.headers_mut().insert("connection", "close".parse().unwrap());
        return Ok(response);
    };
    if request.uri().path() == "/slow" {
        sleep(Duration::from_secs(90)).await;
    }
    Ok(response)
}

/// Reads the available bytes.
async fn receive(client: &mut DuplexStream) -> String {
    let mut bytes = vec![0; 1 << 16];
    let length = client.read(&mut bytes).await.unwrap();
    String::from_utf8_lossy(&bytes[..length]).into_owned()
}

#[tokio::test(start_paused = true)]
async fn slow_request_head_closes_the_connection() {
    let mut server = TestServer::new();
    let mut client = server.http1();
    let drip = async {
        for byte in b"GET / HTTP/1.1\r\nCookie: ".iter().chain(std::iter::repeat(&b'a')) {
            if client.write_all(&[*byte]).await.is_err() {
                return;
            }
            sleep(Duration::from_secs(5)).await;
        }
    };
    let (spent, ()) = tokio::join!(server.ended(), drip);
    assert!((60..=62).contains(&spent), "{spent} s");
}

#[tokio::test(start_paused = true)]
async fn slow_response_does_not_count_as_idle() {
    let mut server = TestServer::new();
    let mut client = server.http1();
    client.write_all(b"GET /slow HTTP/1.1\r\nHost: test\r\n\r\n").await.unwrap();
    assert!(receive(&mut client).await.ends_with("done"));
    let spent = server.ended().await;
    assert!((60..=121).contains(&spent), "{spent} s");
    assert_eq!(receive(&mut client).await, "");
}

#[tokio::test(start_paused = true)]
async fn oversized_heads_are_rejected() {
    for head in [
        format!("GET / HTTP/1.1\r\n{}\r\n", "A: b\r\n".repeat(101)),
        format!("GET / HTTP/1.1\r\nA: {}\r\n\r\n", "b".repeat(33 << 10)),
        format!("GET /{}", "a".repeat(33 << 10)),
    ] {
        let mut server = TestServer::new();
        let mut client = server.http1();
        client.write_all(head.as_bytes()).await.unwrap();
        let response = receive(&mut client).await;
        assert!(response.starts_with("HTTP/1.1 431 "), "{response}");
        assert!(response.ends_with("\r\n\r\nHeadTooLarge of 127.0.0.1"), "{response}");
        assert!(response.contains("\r\nx-request-id: test\r\n"), "{response}");
        drop(client);
        assert_eq!(server.ended().await, 0);
    }
}

#[tokio::test(start_paused = true)]
async fn malformed_requests_get_a_document_after_earlier_responses() {
    for malformed in ["GET / HTTP/9.9\r\n\r\n", "G\u{e9}T / HTTP/1.1\r\n\r\n", "\0\0\0\0\r\n\r\n"] {
        let mut server = TestServer::new();
        let mut client = server.http1();
        client.write_all(&[REQUEST, malformed.as_bytes()].concat()).await.unwrap();
        let mut all = String::new();
        while !all.contains("Malformed of") {
            let more = receive(&mut client).await;
            assert!(!more.is_empty(), "{all}");
            all.push_str(&more);
        }
        let (first, second) = all.split_once("done").unwrap();
        assert!(first.starts_with("HTTP/1.1 200 OK\r\n"), "{all}");
        assert!(second.starts_with("HTTP/1.1 400 Bad Request\r\n"), "{all}");
        // The client has time to read the response while it still sends.
        client.write_all(&[b'a'; 1 << 10]).await.unwrap();
        assert_eq!(server.ended().await, 2, "the client keeps the connection open");
    }
}

#[tokio::test(start_paused = true)]
async fn idle_http2_connection_is_closed() {
    let mut server = TestServer::new();
    let mut sender = server.http2().await;
    let response = sender.send_request(Request::get("/slow").body(Empty::new()).unwrap());
    assert_eq!(response.await.unwrap().status(), 200);
    let spent = server.ended().await;
    assert!((60..=121).contains(&spent), "{spent} s");
    assert!(sender.is_closed());
}

#[tokio::test(start_paused = true)]
async fn dead_http2_client_is_detected_by_ping() {
    let mut server = TestServer::new();
    let (mut client, stream) = duplex(1 << 16);
    server.connections.spawn(server.server().http2(stream));
    client.write_all(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0").await.unwrap();
    let spent = server.ended().await;
    assert!((40..=41).contains(&spent), "{spent} s");
}

#[tokio::test(start_paused = true)]
async fn request_in_transit_gets_a_response_during_a_drain() {
    let mut server = TestServer::new();
    let (mut late, mut idle) = (server.http1(), server.http1());
    for client in [&mut late, &mut idle] {
        client.write_all(REQUEST).await.unwrap();
        assert!(receive(client).await.starts_with("HTTP/1.1 200 OK"));
    }
    assert!(!server.controller.drain(Duration::from_secs(10)).await);
    let send = async {
        sleep(Duration::from_millis(900)).await;
        late.write_all(REQUEST).await.unwrap();
        let response = receive(&mut late).await;
        assert!(
            response.starts_with("HTTP/1.1 503 ") && response.contains("connection: close"),
            "{response}"
        );
        assert_eq!(
            (receive(&mut late).await, receive(&mut idle).await),
            (String::new(), String::new())
        );
    };
    let (spent, ()) = tokio::join!(server.ended(), send);
    assert_eq!(spent, 1);
}

#[tokio::test(start_paused = true)]
async fn request_in_flight_completes_before_the_connection_closes() {
    let mut server = TestServer::new();
    let mut client = server.http1();
    client.write_all(b"GET /slow HTTP/1.1\r\nHost: test\r\n\r\n").await.unwrap();
    sleep(Duration::from_secs(1)).await;
    let (late, response) =
        tokio::join!(server.controller.drain(Duration::from_secs(100)), receive(&mut client));
    assert!(!late && response.starts_with("HTTP/1.1 200 OK"), "{response}");
    assert!(response.contains("connection: close"), "{response}");
    assert_eq!(server.ended().await, 0);
}

#[tokio::test(start_paused = true)]
async fn requests_are_aborted_after_the_drain_timeout() {
    let mut server = TestServer::new();
    let mut client = server.http1();
    client.write_all(b"GET /slow HTTP/1.1\r\nHost: test\r\n\r\n").await.unwrap();
    let mut sender = server.http2().await;
    let response = sender.send_request(Request::get("/slow").body(Empty::new()).unwrap());
    sleep(Duration::from_secs(1)).await;
    assert!(server.controller.drain(Duration::from_secs(10)).await);
    assert_eq!(receive(&mut client).await, "");
    assert!(response.await.is_err());
    assert_eq!(server.ended().await, 0);
}

#[tokio::test(start_paused = true)]
async fn http2_requests_in_flight_complete_after_goaway() {
    let mut server = TestServer::new();
    let mut sender = server.http2().await;
    let response = sender.send_request(Request::get("/slow").body(Empty::new()).unwrap());
    sleep(Duration::from_secs(1)).await;
    let (late, answer) = tokio::join!(server.controller.drain(Duration::from_secs(100)), response);
    assert_eq!((late, answer.unwrap().status().as_u16()), (false, 200));
    assert_eq!(server.ended().await, 0);
    assert!(sender.is_closed());
}

#[tokio::test(start_paused = true)]
async fn new_http2_connection_gets_503_during_a_drain() {
    let mut server = TestServer::new();
    assert!(!server.controller.drain(Duration::from_secs(10)).await);
    let mut sender = server.http2().await;
    let response = sender.send_request(Request::get("/").body(Empty::new()).unwrap()).await;
    assert_eq!(response.unwrap().status(), 503);
    assert_eq!(server.ended().await, 0);
    assert!(sender.is_closed());
}
