//! Tests of slow and stalled bodies over HTTP/1 and HTTP/2, with paused time.

use crate::accept_loop::answer;
use crate::body::read_body;
use crate::body_budget::BodyBudget;
use crate::client::ClientAddress;
use crate::connection::HttpServer;
use crate::drain::DrainController;
use crate::error_document::ErrorDocuments;
use crate::layers::around::AroundService;
use crate::layers::in_flight::InFlightLimit;
use crate::limits::ListenerLimits;
use crate::usage_limit::UsageLimit;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use futures_util::FutureExt;
use http_body_util::{BodyExt, Full, StreamBody};
use hyper::Request;
use hyper::body::{Bytes, Frame, Incoming};
use hyper_util::rt::{TokioExecutor, TokioIo};
use std::convert::Infallible;
use std::net::IpAddr;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream, duplex};
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio::time::Instant;

/// The size limit of bodies.
const LIMIT: usize = 4 << 20;
/// The number of requests that may be in flight.
const MAX_IN_FLIGHT: u32 = 8;

/// A server that reads the body of each request and responds with its length; except to `/unread`.
struct TestServer {
    controller: DrainController,
    clients: UsageLimit<IpAddr>,
    connections: JoinSet<()>,
}

async fn respond(request: axum::extract::Request) -> Result<Response, Infallible> {
    if request.uri().path() == "/unread" {
        return Ok(StatusCode::UNAUTHORIZED.into_response());
    }
    Ok(match read_body(request.into_body(), LIMIT).await {
        Ok(body) => format!("{} bytes", body.len()).into_response(),
        Err(error) => (StatusCode::BAD_REQUEST, format!("{error:?}")).into_response(),
    })
}

impl TestServer {
    fn new() -> Self {
        let controller = DrainController::new(MAX_IN_FLIGHT);
        Self { controller, clients: UsageLimit::default(), connections: JoinSet::new() }
    }

    /// Returns a server for the connection of a client with this address.
    fn server(
        &self,
        address: &str,
    ) -> HttpServer<
        impl Fn(
            Request<Incoming>,
        ) -> futures_util::future::BoxFuture<'static, Result<Response, Infallible>>
        + use<>,
    > {
        let client = ClientAddress { ip: address.parse().unwrap(), https: false };
        let limit = InFlightLimit {
            gate: self.controller.gate(),
            clients: self.clients.clone(),
            except: &[],
            while_draining: &[],
            reject: || StatusCode::SERVICE_UNAVAILABLE.into_response(),
            reject_client: || StatusCode::TOO_MANY_REQUESTS.into_response(),
        };
        let service = AroundService::new(limit, tower::service_fn(respond));
        let budget = BodyBudget::default();
        let handler = move |request| {
            answer(service.clone(), client, budget.request(client.limited()), request).boxed()
        };
        HttpServer {
            handler,
            gate: self.controller.gate(),
            limits: ListenerLimits::default(),
            errors: ErrorDocuments::of_tests(),
            peer: std::net::Ipv4Addr::LOCALHOST.into(),
        }
    }

    fn http1(&mut self, address: &str) -> DuplexStream {
        let (client, stream) = duplex(1 << 16);
        self.connections.spawn(self.server(address).http1(stream));
        client
    }

    async fn http2(&mut self, address: &str) -> hyper::client::conn::http2::SendRequest<BoxedBody> {
        let (client, stream) = duplex(1 << 16);
        self.connections.spawn(self.server(address).http2(stream));
        let builder = hyper::client::conn::http2::Builder::new(TokioExecutor::new());
        let (sender, connection) = builder.handshake(TokioIo::new(client)).await.unwrap();
        self.connections.spawn(connection.map(drop));
        sender
    }
}

type BoxedBody = http_body_util::combinators::BoxBody<Bytes, Infallible>;

/// Returns a request whose body consists of what is sent through the channel.
fn piecewise() -> (mpsc::Sender<Result<Frame<Bytes>, Infallible>>, Request<BoxedBody>) {
    let (pieces, mut receiver) = mpsc::channel(1);
    let stream = futures_util::stream::poll_fn(move |cx| receiver.poll_recv(cx));
    let body = BodyExt::boxed(StreamBody::new(stream));
    (pieces, Request::post("http://test/").body(body).unwrap())
}

fn complete() -> Request<BoxedBody> {
    Request::post("http://test/").body(BodyExt::boxed(Full::from("Hello"))).unwrap()
}

/// Reads the status line, and the text of a response that is complete.
async fn receive(client: &mut DuplexStream) -> (String, String) {
    let mut bytes = vec![0; 1 << 16];
    let length = client.read(&mut bytes).await.unwrap();
    let text = String::from_utf8_lossy(&bytes[..length]).into_owned();
    let (head, body) = text.split_once("\r\n\r\n").unwrap_or((&text, ""));
    (head.lines().next().unwrap_or_default().to_owned(), body.to_owned())
}

fn head(path: &str, length: usize) -> String {
    format!("POST {path} HTTP/1.1\r\nHost: test\r\nContent-Length: {length}\r\n\r\n")
}

#[tokio::test(start_paused = true)]
async fn a_body_that_stops_arriving_times_out() {
    let mut server = TestServer::new();
    for (pieces, seconds) in [(0, 15), (2, 30)] {
        let mut client = server.http1("192.0.2.1");
        let started = Instant::now();
        client.write_all(head("/", 100).as_bytes()).await.unwrap();
        for _ in 0..pieces {
            tokio::time::sleep(Duration::from_secs(10)).await;
            client.write_all(b"a").await.unwrap();
        }
        assert_eq!(receive(&mut client).await.1, "Timeout");
        assert_eq!(started.elapsed().as_secs(), seconds);
        assert_eq!(receive(&mut client).await.0, "", "the connection is closed");
    }
}

#[tokio::test(start_paused = true)]
async fn a_large_body_has_as_much_time_as_its_rate_allows() {
    let mut server = TestServer::new();
    // One megabyte earns 32 seconds: 62 in all.
    for (pause, response) in [(14, "1048576 bytes"), (16, "Timeout")] {
        let mut client = server.http1("192.0.2.1");
        client.write_all(head("/", 1 << 20).as_bytes()).await.unwrap();
        for _ in 0..4 {
            // The connection ends when the body is late.
            let _ = client.write_all(&vec![b'a'; 1 << 18]).await;
            tokio::time::sleep(Duration::from_secs(pause)).await;
        }
        assert_eq!(receive(&mut client).await.1, response);
    }
}

#[tokio::test(start_paused = true)]
async fn a_body_that_is_too_large_is_refused_before_it_is_read() {
    let mut server = TestServer::new();
    let mut client = server.http1("192.0.2.1");
    let request = head("/", LIMIT + 1).replace("\r\n\r\n", "\r\nExpect: 100-continue\r\n\r\n");
    client.write_all(request.as_bytes()).await.unwrap();
    let expected = ("HTTP/1.1 400 Bad Request".to_owned(), format!("TooLarge({LIMIT})"));
    assert_eq!(receive(&mut client).await, expected);
}

#[tokio::test(start_paused = true)]
async fn a_client_may_finish_its_body_after_the_response() {
    let mut server = TestServer::new();
    let mut client = server.http1("192.0.2.1");
    client.write_all(head("/unread", 1 << 20).as_bytes()).await.unwrap();
    assert_eq!(receive(&mut client).await.0, "HTTP/1.1 401 Unauthorized");
    client.write_all(&vec![b'a'; 1 << 20]).await.unwrap();
    client.write_all((head("/", 5) + "Hello").as_bytes()).await.unwrap();
    assert_eq!(receive(&mut client).await.1, "5 bytes", "the connection is still usable");
}

#[tokio::test(start_paused = true)]
async fn stalled_bodies_take_no_place_of_requests_in_flight() {
    let mut server = TestServer::new();
    // The local machine has no limit of its own.
    let mut http2 = server.http2("127.0.0.1").await;
    let (mut stalled, mut tasks) = (Vec::new(), JoinSet::new());
    for _ in 0..3 * MAX_IN_FLIGHT {
        let mut client = server.http1("127.0.0.1");
        client.write_all(head("/", 5).as_bytes()).await.unwrap();
        let (pieces, request) = piecewise();
        tasks.spawn(http2.send_request(request));
        stalled.push((client, pieces));
    }
    let response = http2.send_request(complete()).await.unwrap();
    assert_eq!(response.into_body().collect().await.unwrap().to_bytes(), "5 bytes");
    let mut client = server.http1("127.0.0.1");
    client.write_all((head("/", 5) + "Hello").as_bytes()).await.unwrap();
    assert_eq!(receive(&mut client).await.1, "5 bytes");
    for (client, pieces) in &mut stalled {
        client.write_all(b"Hello").await.unwrap();
        assert_eq!(receive(client).await.1, "5 bytes");
        pieces.send(Ok(Frame::data(Bytes::from("Hi")))).await.unwrap();
    }
    drop(stalled);
    for response in tasks.join_all().await {
        assert_eq!(response.unwrap().status(), StatusCode::OK);
    }
}

#[tokio::test(start_paused = true)]
async fn a_client_has_a_share_of_the_open_requests() {
    let mut server = TestServer::new();
    let mut http2 = server.http2("192.0.2.1").await;
    let (mut stalled, mut tasks) = (Vec::new(), JoinSet::new());
    for _ in 0..MAX_IN_FLIGHT / 4 {
        let (pieces, request) = piecewise();
        tasks.spawn(http2.send_request(request));
        stalled.push(pieces);
    }
    tokio::time::sleep(Duration::from_secs(1)).await;
    let response = http2.send_request(complete()).await.unwrap();
    assert_eq!(response.status(), StatusCode::TOO_MANY_REQUESTS);
    let mut same = server.http1("192.0.2.1");
    same.write_all((head("/", 5) + "Hello").as_bytes()).await.unwrap();
    assert_eq!(receive(&mut same).await.0, "HTTP/1.1 429 Too Many Requests");
    let mut other = server.http1("192.0.2.2");
    other.write_all((head("/", 5) + "Hello").as_bytes()).await.unwrap();
    assert_eq!(receive(&mut other).await.1, "5 bytes");
    drop(stalled);
    assert_eq!(tasks.join_all().await.len(), 2);
    let response = http2.send_request(complete()).await.unwrap();
    assert_eq!(response.status(), StatusCode::OK);
}
