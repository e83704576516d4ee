//! The control port: scripts read the messages of handsets and reply from them.

use crate::harness::{Harness, Smsc, options, submission};
use heliograph_carrier::smsc::control;
use heliograph_carrier::smsc::options::SmscOptions;
use serde_json::{Value, json};
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;

const ANN: u64 = 447_700_900_123;
const REPLY: &str = "POST /handsets/447700900123/reply";

/// A simulated SMSC with its control port.
struct Control {
    smsc: Smsc,
    port: u16,
    tasks: JoinSet<()>,
}

impl Control {
    async fn start() -> Self {
        let smsc = Smsc::start(SmscOptions { no_receipts: true, ..SmscOptions::default() }).await;
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let serve = control::serve(listener, smsc.simulator.clone(), smsc.stop.subscribe());
        let mut tasks = JoinSet::new();
        tasks.spawn(serve);
        Self { smsc, port, tasks }
    }

    async fn connect(&self) -> TcpStream {
        TcpStream::connect(("127.0.0.1", self.port)).await.unwrap()
    }

    /// Sends a request and returns the response: (head, body).
    async fn request(&self, line: &str, body: &str) -> (String, Value) {
        let mut stream = self.connect().await;
        let length = body.len();
        let request =
            format!("{line} HTTP/1.1\r\nhost: x\r\ncontent-length: {length}\r\n\r\n{body}");
        // A request that is too long is answered before it is completely written.
        let _ = stream.write_all(request.as_bytes()).await;
        response(stream).await
    }

    /// Sends a request and returns its error: (status, message).
    async fn error(&self, line: &str, body: &str) -> (String, String) {
        let (head, body) = self.request(line, body).await;
        assert!(head.contains("content-type: application/json"), "{head}");
        (head[9..12].to_owned(), body["error"].as_str().unwrap().to_owned())
    }
}

async fn response(mut stream: TcpStream) -> (String, Value) {
    let mut response = Vec::new();
    let mut buffer = [0; 4096];
    // The complete response arrives before a reset of the connection.
    while let Ok(read @ 1..) = stream.read(&mut buffer).await {
        response.extend_from_slice(&buffer[..read]);
    }
    let response = String::from_utf8(response).unwrap();
    let (head, body) = response.split_once("\r\n\r\n").unwrap();
    (head.to_owned(), serde_json::from_str(body).unwrap())
}

#[tokio::test]
async fn scripts_read_messages_and_reply() {
    let control = Control::start().await;
    let mut harness = Harness::bound(options(control.smsc.port)).await;
    let messages = "GET /handsets/447700900123/messages";
    let (head, body) = control.request(messages, "").await;
    assert!(head.starts_with("HTTP/1.1 200 "), "{head}");
    assert_eq!(body, json!([]));
    let mut part = submission(1, ANN);
    part.originator = "447700900000".parse().unwrap();
    harness.submissions.send(part).await.unwrap();
    harness.accepted().await;
    let expected = json!([{
        "from": "447700900000",
        "to": "447700900123",
        "text": "Hello from the test",
        "parts": 1,
        "at": "2026-11-20T09:00:00.000Z",
    }]);
    assert_eq!(control.request(messages, "").await.1, expected);
    assert_eq!(control.request("GET /handsets/+447700900123/messages", "").await.1, expected);
    assert_eq!(control.request("GET /handsets/1/messages", "").await.1, json!([]));
    let (head, body) = control.request(REPLY, r#"{"to":"447700900000","text":"Да 😀"}"#).await;
    assert!(head.starts_with("HTTP/1.1 202 "), "{head}");
    assert_eq!(body, json!({}));
    let (_, incoming) = harness.message().await;
    assert_eq!((incoming.from.as_str(), incoming.text.as_str()), ("447700900123", "Да 😀"));
}

#[tokio::test]
async fn invalid_requests_are_refused_with_a_message() {
    let control = Control::start().await;
    let good = r#"{"to":"447700900000","text":"Yes"}"#;
    let long = format!(r#"{{"to":"447700900000","text":"{}"}}"#, "x".repeat(255 * 153 + 1));
    for (line, body, expected, text) in [
        (REPLY, good, "409", "no client can receive"),
        (REPLY, "", "400", "the body must be"),
        (REPLY, "[]", "400", "the body must be"),
        (REPLY, r#"{"to":"447700900000"}"#, "400", "missing field `text`"),
        (REPLY, r#"{"text":"Yes"}"#, "400", "missing field `to`"),
        (REPLY, r#"{"to":1,"text":"Yes"}"#, "400", "expected a string"),
        (REPLY, r#"{"to":"?","text":"Yes"}"#, "400", "to: "),
        (REPLY, r#"{"to":"","text":"Yes"}"#, "400", "to: "),
        (REPLY, r#"{"to":"Shop","text":"Yes","now":1}"#, "400", "unknown field `now`"),
        (REPLY, &long, "400", "255 parts"),
        (REPLY, &"x".repeat(64 * 1024 + 1), "413", "64 KiB"),
        ("POST /handsets/Ann/reply", good, "400", "1 to 15 digits"),
        ("GET /handsets//messages", "", "400", "1 to 15 digits"),
        ("GET /handsets/0/messages", "", "400", "1 to 15 digits"),
        ("GET /handsets/1234567890123456/messages", "", "400", "1 to 15 digits"),
        ("GET /", "", "404", "not found: "),
        ("GET /handsets", "", "404", "not found: "),
        ("GET /handsets/1", "", "404", "not found: "),
        ("GET /handsets/1/messages/2", "", "404", "not found: "),
        ("GET /handsets/1/contacts", "", "404", "not found: "),
        ("POST /handsets/1/messages", good, "405", "use GET"),
        ("DELETE /handsets/1/reply", "", "405", "use POST"),
    ] {
        let (status, error) = control.error(line, body).await;
        assert_eq!(status, expected, "{line} {error}");
        assert!(error.contains(text), "{line}: {error}");
    }
    let (head, _) = control.request("GET /handsets/1/reply", "").await;
    assert!(head.contains("allow: POST"), "{head}");
}

#[tokio::test]
async fn connections_are_limited_and_end_with_the_simulator() {
    let control = Control::start().await;
    let mut idle = Vec::new();
    for _ in 0..100 {
        idle.push(control.connect().await);
    }
    // The next connection is served only after one of these has ended.
    let mut stream = control.connect().await;
    stream.write_all(b"GET / HTTP/1.1\r\nhost: x\r\n\r\n").await.unwrap();
    let readable = tokio::time::timeout(Duration::from_millis(100), stream.readable()).await;
    assert!(readable.is_err());
    idle.pop();
    assert!(response(stream).await.0.starts_with("HTTP/1.1 404 "));
    control.smsc.stop().await;
    control.tasks.join_all().await;
}

#[tokio::test]
async fn incomplete_request_times_out() {
    let control = Control::start().await;
    let mut stream = control.connect().await;
    stream.write_all(b"GET /handsets/1/messages HTTP/1.1\r\nhost").await.unwrap();
    // Timers of a paused clock fire as soon as the runtime is idle.
    tokio::time::pause();
    let mut response = Vec::new();
    let _ = stream.read_to_end(&mut response).await;
    assert_eq!(response, b"");
}
