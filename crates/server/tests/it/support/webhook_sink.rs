//! A webhook endpoint with configurable responses.

use crate::support::wait::{eventually, pause};
use serde_json::Value;
use std::collections::HashSet;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// The response of a sink.
#[derive(Clone, Debug)]
pub(crate) enum Behavior {
    /// A status with headers and a body.
    Answer(u16, &'static str, String),
    /// No response.
    Hang,
    /// Closes the connection.
    Reset,
    /// A response with a delay after each byte.
    Drip,
    /// 200 with an endless body.
    Endless,
    /// 200 after a delay.
    After(Duration),
    /// 200, but 500 for the first attempt of one webhook in twenty.
    Flaky,
}

impl Behavior {
    pub(crate) fn status(status: u16) -> Self {
        Self::Answer(status, "", String::new())
    }
}

/// A received request.
#[derive(Clone, Debug)]
pub(crate) struct Received {
    pub(crate) path: String,
    headers: Vec<(String, String)>,
    pub(crate) body: String,
    pub(crate) at: Instant,
    /// True if a flaky sink responded with 500.
    pub(crate) refused: bool,
}

impl Received {
    pub(crate) fn header(&self, name: &str) -> &str {
        let found = self.headers.iter().find(|(n, _)| n == name);
        found.map_or("", |(_, value)| value.as_str())
    }

    pub(crate) fn id(&self) -> &str {
        self.header("webhook-id")
    }

    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap()
    }

    /// Verifies the signature with the Standard Webhooks library for Rust.
    pub(crate) fn is_signed_by(&self, secret: &str) -> bool {
        let mut headers = http::HeaderMap::new();
        for name in ["webhook-id", "webhook-timestamp", "webhook-signature"] {
            headers.insert(name, self.header(name).parse().unwrap());
        }
        let webhook = standardwebhooks::Webhook::new(secret).unwrap();
        webhook.verify(self.body.as_bytes(), &headers).is_ok()
    }
}

struct Shared {
    behavior: Mutex<Behavior>,
    log: Mutex<Vec<Received>>,
    /// The webhooks that a flaky sink has rejected.
    refused: Mutex<HashSet<String>>,
}

impl Shared {
    /// Returns whether a flaky sink rejects this attempt.
    fn refuses(&self, id: &str) -> bool {
        let unlucky = id.bytes().fold(0u32, |sum, b| sum.wrapping_mul(31) + u32::from(b)) % 20 == 0;
        let mut refused = self.refused.lock().unwrap_or_else(PoisonError::into_inner);
        unlucky && refused.insert(id.to_owned())
    }
}

/// A running sink; its threads end with their connections.
pub(crate) struct WebhookSink {
    pub(crate) address: SocketAddr,
    shared: Arc<Shared>,
}

impl WebhookSink {
    pub(crate) fn start() -> Self {
        Self::on("127.0.0.1:0".parse().unwrap())
    }

    /// Starts a sink at this address.
    pub(crate) fn on(address: SocketAddr) -> Self {
        let listener = TcpListener::bind(address).unwrap();
        let address = listener.local_addr().unwrap();
        let behavior = Mutex::new(Behavior::status(200));
        let shared =
            Arc::new(Shared { behavior, log: Mutex::default(), refused: Mutex::default() });
        let theirs = shared.clone();
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let shared = theirs.clone();
                std::thread::spawn(move || serve(stream, &shared));
            }
        });
        Self { address, shared }
    }

    pub(crate) fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    pub(crate) fn set_behavior(&self, behavior: Behavior) {
        *self.shared.behavior.lock().unwrap_or_else(PoisonError::into_inner) = behavior;
    }

    /// Returns all requests so far.
    pub(crate) fn received(&self) -> Vec<Received> {
        self.shared.log.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Waits for `count` requests.
    pub(crate) fn wait_for(&self, count: usize) -> Vec<Received> {
        eventually(&format!("{count} webhooks arrive"), || {
            Some(self.received()).filter(|all| all.len() >= count)
        })
    }
}

fn serve(stream: TcpStream, shared: &Shared) {
    let mut reader = BufReader::new(stream);
    while let Some(mut received) = read(&mut reader) {
        // The behavior at the time of the request applies. The request is logged afterwards.
        let mut behavior = shared.behavior.lock().unwrap_or_else(PoisonError::into_inner).clone();
        if matches!(behavior, Behavior::Flaky) {
            received.refused = shared.refuses(received.id());
            behavior = Behavior::status(if received.refused { 500 } else { 200 });
        }
        shared.log.lock().unwrap_or_else(PoisonError::into_inner).push(received);
        if treat(reader.get_mut(), &behavior).is_none() {
            return;
        }
    }
}

fn read(reader: &mut BufReader<TcpStream>) -> Option<Received> {
    let mut line = || {
        let mut line = String::new();
        reader.read_line(&mut line).ok().filter(|n| *n > 0)?;
        Some(line.trim_end().to_owned())
    };
    let first = line()?;
    let path = first.split(' ').nth(1)?.to_owned();
    let mut headers = Vec::new();
    while let Some((name, value)) = line()?.split_once(':') {
        headers.push((name.to_ascii_lowercase(), value.trim().to_owned()));
    }
    let mut received =
        Received { path, headers, body: String::new(), at: Instant::now(), refused: false };
    let mut body = vec![0; received.header("content-length").parse().unwrap_or(0)];
    reader.read_exact(&mut body).ok()?;
    received.body = String::from_utf8(body).ok()?;
    Some(received)
}

/// Sends the response; returns `None` if the connection cannot be used again.
fn treat(stream: &mut TcpStream, behavior: &Behavior) -> Option<()> {
    let ok = b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n";
    match behavior {
        Behavior::Answer(status, headers, body) => {
            let length = body.len();
            let response =
                format!("HTTP/1.1 {status} X\r\n{headers}Content-Length: {length}\r\n\r\n{body}");
            stream.write_all(response.as_bytes()).ok()
        }
        Behavior::After(time) => {
            pause(*time);
            stream.write_all(ok).ok()
        }
        // Replaced by a status before.
        Behavior::Flaky => stream.write_all(ok).ok(),
        Behavior::Hang => {
            // Until the client closes the connection.
            let _ = stream.read(&mut [0]);
            None
        }
        Behavior::Reset => None,
        Behavior::Drip => {
            for byte in ok {
                stream.write_all(&[*byte]).ok()?;
                pause(Duration::from_millis(200));
            }
            Some(())
        }
        Behavior::Endless => {
            stream.write_all(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n").ok()?;
            loop {
                stream.write_all(b"400\r\n").ok()?;
                stream.write_all(&[b'x'; 0x400]).ok()?;
                stream.write_all(b"\r\n").ok()?;
            }
        }
    }
}
