//! A webhook endpoint that does what it is told, also to the one who calls it.

use crate::patience::{eventually, pause};
use serde_json::Value;
use std::collections::HashSet;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// How a sink treats whoever calls it.
#[derive(Clone, Debug)]
pub(crate) enum Mood {
    /// This status with these headers and this body.
    Answer(u16, &'static str, String),
    /// Nothing, for as long as the caller waits.
    Hang,
    /// Closes the connection without a word.
    Reset,
    /// One byte of an answer now and then.
    Drip,
    /// 200, and then a body that never ends.
    Endless,
    /// 200 after a while.
    After(Duration),
    /// 200, but for one webhook in twenty 500 when it comes for the first time.
    Flaky,
}

impl Mood {
    pub(crate) fn status(status: u16) -> Self {
        Self::Answer(status, "", String::new())
    }
}

/// One request as it came.
#[derive(Clone, Debug)]
pub(crate) struct Received {
    pub(crate) path: String,
    headers: Vec<(String, String)>,
    pub(crate) body: String,
    pub(crate) at: Instant,
    /// Whether a flaky sink answered with 500.
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

    /// What the Standard Webhooks library for Rust makes of it.
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
    mood: Mutex<Mood>,
    log: Mutex<Vec<Received>>,
    /// What a flaky sink has refused.
    refused: Mutex<HashSet<String>>,
}

impl Shared {
    /// What becomes of a request in a flaky mood.
    fn refuses(&self, id: &str) -> bool {
        let unlucky = id.bytes().fold(0u32, |sum, b| sum.wrapping_mul(31) + u32::from(b)) % 20 == 0;
        let mut refused = self.refused.lock().unwrap_or_else(PoisonError::into_inner);
        unlucky && refused.insert(id.to_owned())
    }
}

/// A running sink; its threads end with their connections.
pub(crate) struct Sink {
    pub(crate) address: SocketAddr,
    shared: Arc<Shared>,
}

impl Sink {
    pub(crate) fn start() -> Self {
        Self::on("127.0.0.1:0".parse().unwrap())
    }

    /// One at this address.
    pub(crate) fn on(address: SocketAddr) -> Self {
        let listener = TcpListener::bind(address).unwrap();
        let address = listener.local_addr().unwrap();
        let mood = Mutex::new(Mood::status(200));
        let shared = Arc::new(Shared { mood, log: Mutex::default(), refused: Mutex::default() });
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

    pub(crate) fn behave(&self, mood: Mood) {
        *self.shared.mood.lock().unwrap_or_else(PoisonError::into_inner) = mood;
    }

    /// Everything that came so far.
    pub(crate) fn received(&self) -> Vec<Received> {
        self.shared.log.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// What has come as soon as there is so much of it.
    pub(crate) fn has(&self, count: usize) -> Vec<Received> {
        eventually(&format!("{count} webhooks arrive"), || {
            Some(self.received()).filter(|all| all.len() >= count)
        })
    }
}

fn serve(stream: TcpStream, shared: &Shared) {
    let mut reader = BufReader::new(stream);
    while let Some(mut received) = read(&mut reader) {
        // The mood of the moment in which a request came; it counts as come when that is known.
        let mut mood = shared.mood.lock().unwrap_or_else(PoisonError::into_inner).clone();
        if matches!(mood, Mood::Flaky) {
            received.refused = shared.refuses(received.id());
            mood = Mood::status(if received.refused { 500 } else { 200 });
        }
        shared.log.lock().unwrap_or_else(PoisonError::into_inner).push(received);
        if treat(reader.get_mut(), &mood).is_none() {
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

/// Treats a caller as it deserves; `None` when the connection is of no use any more.
fn treat(stream: &mut TcpStream, mood: &Mood) -> Option<()> {
    let ok = b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n";
    match mood {
        Mood::Answer(status, headers, body) => {
            let length = body.len();
            let answer =
                format!("HTTP/1.1 {status} X\r\n{headers}Content-Length: {length}\r\n\r\n{body}");
            stream.write_all(answer.as_bytes()).ok()
        }
        Mood::After(time) => {
            pause(*time);
            stream.write_all(ok).ok()
        }
        // Taken for one of the others above.
        Mood::Flaky => stream.write_all(ok).ok(),
        Mood::Hang => {
            // Until the caller has had enough.
            let _ = stream.read(&mut [0]);
            None
        }
        Mood::Reset => None,
        Mood::Drip => {
            for byte in ok {
                stream.write_all(&[*byte]).ok()?;
                pause(Duration::from_millis(200));
            }
            Some(())
        }
        Mood::Endless => {
            stream.write_all(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n").ok()?;
            loop {
                stream.write_all(b"400\r\n").ok()?;
                stream.write_all(&[b'x'; 0x400]).ok()?;
                stream.write_all(b"\r\n").ok()?;
            }
        }
    }
}
