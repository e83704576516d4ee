//! Connections of clients that dawdle, flood, or stay while the node goes; on a clock that jumps.

use super::*;
use crate::gate::GateKeeper;
use axum::body::Body;
use axum::http::StatusCode;
use http_body_util::Empty;
use hyper::body::Bytes;
use hyper_util::rt::TokioExecutor;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream, duplex};
use tokio::time::{Instant, sleep};

const REQUEST: &[u8] = b"GET / HTTP/1.1\r\nHost: test\r\n\r\n";

/// A client's end, and the node's; requests to `/slow` take a minute and a half, a draining node says 503.
struct Rig {
    keeper: GateKeeper,
    limits: Limits,
    connections: JoinSet<()>,
}

impl Rig {
    fn new() -> Self {
        let (keeper, limits) = (GateKeeper::new(100), Limits::default());
        Self { keeper, limits, connections: JoinSet::new() }
    }

    fn server(
        &self,
    ) -> Server<
        impl Fn(
            Request<Incoming>,
        ) -> futures_util::future::BoxFuture<'static, Result<Response, Infallible>>
        + use<>,
    > {
        let gate = self.keeper.gate();
        let handler = move |request: Request<Incoming>| answer(gate.clone(), request).boxed();
        Server { handler, gate: self.keeper.gate(), limits: self.limits }
    }

    fn http1(&mut self) -> DuplexStream {
        let (client, ours) = duplex(1 << 16);
        self.connections.spawn(self.server().http1(ours));
        client
    }

    async fn http2(&mut self) -> hyper::client::conn::http2::SendRequest<Empty<Bytes>> {
        let (client, ours) = duplex(1 << 16);
        self.connections.spawn(self.server().http2(ours));
        let builder = hyper::client::conn::http2::Builder::new(TokioExecutor::new());
        let (sender, connection) = builder.handshake(TokioIo::new(client)).await.unwrap();
        self.connections.spawn(connection.map(drop));
        sender
    }

    /// How long it takes until all connections have ended.
    async fn ended(&mut self) -> u64 {
        let begun = Instant::now();
        while self.connections.join_next().await.is_some() {}
        begun.elapsed().as_secs()
    }
}

async fn answer(gate: Gate, request: Request<Incoming>) -> Result<Response, Infallible> {
    let mut response = Response::new(Body::from("done"));
    let Some(_permit) = gate.enter() else {
        *response.status_mut() = StatusCode::SERVICE_UNAVAILABLE;
        response.headers_mut().insert("connection", "close".parse().unwrap());
        return Ok(response);
    };
    if request.uri().path() == "/slow" {
        sleep(Duration::from_secs(90)).await;
    }
    Ok(response)
}

/// What there is to read now.
async fn heard(client: &mut DuplexStream) -> String {
    let mut bytes = vec![0; 1 << 16];
    let length = client.read(&mut bytes).await.unwrap();
    String::from_utf8_lossy(&bytes[..length]).into_owned()
}

#[tokio::test(start_paused = true)]
async fn a_head_that_drips_ends_the_connection() {
    let mut rig = Rig::new();
    let mut client = rig.http1();
    let drip = async {
        for byte in b"GET / HTTP/1.1\r\nCookie: ".iter().chain(std::iter::repeat(&b'a')) {
            if client.write_all(&[*byte]).await.is_err() {
                return;
            }
            sleep(Duration::from_secs(5)).await;
        }
    };
    let (spent, ()) = tokio::join!(rig.ended(), drip);
    assert!((60..=62).contains(&spent), "{spent} s");
}

#[tokio::test(start_paused = true)]
async fn a_slow_answer_is_no_silence() {
    let mut rig = Rig::new();
    let mut client = rig.http1();
    client.write_all(b"GET /slow HTTP/1.1\r\nHost: test\r\n\r\n").await.unwrap();
    assert!(heard(&mut client).await.ends_with("done"));
    let spent = rig.ended().await;
    assert!((60..=121).contains(&spent), "{spent} s");
    assert_eq!(heard(&mut client).await, "");
}

#[tokio::test(start_paused = true)]
async fn heads_without_measure_are_refused() {
    for head in [
        format!("GET / HTTP/1.1\r\n{}\r\n", "A: b\r\n".repeat(101)),
        format!("GET / HTTP/1.1\r\nA: {}\r\n\r\n", "b".repeat(33 << 10)),
        format!("GET /{}", "a".repeat(33 << 10)),
    ] {
        let mut rig = Rig::new();
        let mut client = rig.http1();
        client.write_all(head.as_bytes()).await.unwrap();
        let said = heard(&mut client).await;
        assert!(said.starts_with("HTTP/1.1 431 "), "{said}");
        assert_eq!(rig.ended().await, 0);
    }
}

#[tokio::test(start_paused = true)]
async fn a_silent_http2_connection_ends() {
    let mut rig = Rig::new();
    let mut sender = rig.http2().await;
    let asked = sender.send_request(Request::get("/slow").body(Empty::new()).unwrap());
    assert_eq!(asked.await.unwrap().status(), 200);
    let spent = rig.ended().await;
    assert!((60..=121).contains(&spent), "{spent} s");
    assert!(sender.is_closed());
}

#[tokio::test(start_paused = true)]
async fn a_dead_http2_client_is_noticed() {
    let mut rig = Rig::new();
    let (mut client, ours) = duplex(1 << 16);
    rig.connections.spawn(rig.server().http2(ours));
    client.write_all(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0").await.unwrap();
    let spent = rig.ended().await;
    assert!((40..=41).contains(&spent), "{spent} s");
}

#[tokio::test(start_paused = true)]
async fn a_request_on_its_way_is_answered_while_the_node_drains() {
    let mut rig = Rig::new();
    let (mut late, mut idle) = (rig.http1(), rig.http1());
    for client in [&mut late, &mut idle] {
        client.write_all(REQUEST).await.unwrap();
        assert!(heard(client).await.starts_with("HTTP/1.1 200 OK"));
    }
    assert!(!rig.keeper.drain(Duration::from_secs(10)).await);
    let say = async {
        sleep(Duration::from_millis(900)).await;
        late.write_all(REQUEST).await.unwrap();
        let said = heard(&mut late).await;
        assert!(said.starts_with("HTTP/1.1 503 ") && said.contains("connection: close"), "{said}");
        assert_eq!(
            (heard(&mut late).await, heard(&mut idle).await),
            (String::new(), String::new())
        );
    };
    let (spent, ()) = tokio::join!(rig.ended(), say);
    assert_eq!(spent, 1);
}

#[tokio::test(start_paused = true)]
async fn what_has_begun_is_answered_and_the_connection_ends() {
    let mut rig = Rig::new();
    let mut client = rig.http1();
    client.write_all(b"GET /slow HTTP/1.1\r\nHost: test\r\n\r\n").await.unwrap();
    sleep(Duration::from_secs(1)).await;
    let (late, said) = tokio::join!(rig.keeper.drain(Duration::from_secs(100)), heard(&mut client));
    assert!(!late && said.starts_with("HTTP/1.1 200 OK"), "{said}");
    assert!(said.contains("connection: close"), "{said}");
    assert_eq!(rig.ended().await, 0);
}

#[tokio::test(start_paused = true)]
async fn who_takes_too_long_is_cut_off() {
    let mut rig = Rig::new();
    let mut client = rig.http1();
    client.write_all(b"GET /slow HTTP/1.1\r\nHost: test\r\n\r\n").await.unwrap();
    let mut sender = rig.http2().await;
    let asked = sender.send_request(Request::get("/slow").body(Empty::new()).unwrap());
    sleep(Duration::from_secs(1)).await;
    assert!(rig.keeper.drain(Duration::from_secs(10)).await);
    assert_eq!(heard(&mut client).await, "");
    assert!(asked.await.is_err());
    assert_eq!(rig.ended().await, 0);
}

#[tokio::test(start_paused = true)]
async fn http2_is_told_to_go_and_answered_to_the_end() {
    let mut rig = Rig::new();
    let mut sender = rig.http2().await;
    let asked = sender.send_request(Request::get("/slow").body(Empty::new()).unwrap());
    sleep(Duration::from_secs(1)).await;
    let (late, answer) = tokio::join!(rig.keeper.drain(Duration::from_secs(100)), asked);
    assert_eq!((late, answer.unwrap().status().as_u16()), (false, 200));
    assert_eq!(rig.ended().await, 0);
    assert!(sender.is_closed());
}

#[tokio::test(start_paused = true)]
async fn who_comes_by_http2_while_the_node_drains_is_refused_in_words() {
    let mut rig = Rig::new();
    assert!(!rig.keeper.drain(Duration::from_secs(10)).await);
    let mut sender = rig.http2().await;
    let asked = sender.send_request(Request::get("/").body(Empty::new()).unwrap()).await;
    assert_eq!(asked.unwrap().status(), 503);
    assert_eq!(rig.ended().await, 0);
    assert!(sender.is_closed());
}
