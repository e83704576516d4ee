//! The control port: scripts look at handsets and reply from them.

use crate::rig::{Rig, Smsc, options, submission};
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
struct Desk {
    smsc: Smsc,
    port: u16,
    tasks: JoinSet<()>,
}

impl Desk {
    async fn open() -> Self {
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

    /// What is answered to a request: (its head, its body).
    async fn ask(&self, line: &str, body: &str) -> (String, Value) {
        let mut stream = self.connect().await;
        let length = body.len();
        let request =
            format!("{line} HTTP/1.1\r\nhost: x\r\ncontent-length: {length}\r\n\r\n{body}");
        // One that is too long is answered before it is all written.
        let _ = stream.write_all(request.as_bytes()).await;
        answer(stream).await
    }

    /// What is wrong with a request.
    async fn error(&self, line: &str, body: &str) -> (String, String) {
        let (head, body) = self.ask(line, body).await;
        assert!(head.contains("content-type: application/json"), "{head}");
        (head[9..12].to_owned(), body["error"].as_str().unwrap().to_owned())
    }
}

async fn answer(mut stream: TcpStream) -> (String, Value) {
    let mut answer = Vec::new();
    let mut piece = [0; 4096];
    // A connection that is reset has said all that it had to say before.
    while let Ok(read @ 1..) = stream.read(&mut piece).await {
        answer.extend_from_slice(&piece[..read]);
    }
    let answer = String::from_utf8(answer).unwrap();
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    (head.to_owned(), serde_json::from_str(body).unwrap())
}

#[tokio::test]
async fn a_handset_is_looked_at_and_replies() {
    let desk = Desk::open().await;
    let mut rig = Rig::bound(options(desk.smsc.port)).await;
    let messages = "GET /handsets/447700900123/messages";
    let (head, body) = desk.ask(messages, "").await;
    assert!(head.starts_with("HTTP/1.1 200 "), "{head}");
    assert_eq!(body, json!([]));
    let mut part = submission(1, ANN);
    part.originator = "447700900000".parse().unwrap();
    rig.submissions.send(part).await.unwrap();
    rig.accepted().await;
    let expected = json!([{
        "from": "447700900000",
        "to": "447700900123",
        "text": "Hello from the test",
        "parts": 1,
        "at": "2026-11-20T09:00:00.000Z",
    }]);
    assert_eq!(desk.ask(messages, "").await.1, expected);
    assert_eq!(desk.ask("GET /handsets/+447700900123/messages", "").await.1, expected);
    assert_eq!(desk.ask("GET /handsets/1/messages", "").await.1, json!([]));
    let (head, body) = desk.ask(REPLY, r#"{"to":"447700900000","text":"Да 😀"}"#).await;
    assert!(head.starts_with("HTTP/1.1 202 "), "{head}");
    assert_eq!(body, json!({}));
    let (_, incoming) = rig.message().await;
    assert_eq!((incoming.from.as_str(), incoming.text.as_str()), ("447700900123", "Да 😀"));
}

#[tokio::test]
async fn what_is_wrong_is_told_in_words() {
    let desk = Desk::open().await;
    let good = r#"{"to":"447700900000","text":"Yes"}"#;
    let long = format!(r#"{{"to":"447700900000","text":"{}"}}"#, "x".repeat(255 * 153 + 1));
    for (line, body, status, words) in [
        (REPLY, good, "409", "nobody is bound"),
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
        ("GET /", "", "404", "nothing else"),
        ("GET /handsets", "", "404", "nothing else"),
        ("GET /handsets/1", "", "404", "nothing else"),
        ("GET /handsets/1/messages/2", "", "404", "nothing else"),
        ("GET /handsets/1/contacts", "", "404", "nothing else"),
        ("POST /handsets/1/messages", good, "405", "only GET"),
        ("DELETE /handsets/1/reply", "", "405", "only POST"),
    ] {
        let (told, error) = desk.error(line, body).await;
        assert_eq!(told, status, "{line} {error}");
        assert!(error.contains(words), "{line}: {error}");
    }
    let (head, _) = desk.ask("GET /handsets/1/reply", "").await;
    assert!(head.contains("allow: POST"), "{head}");
}

#[tokio::test]
async fn connections_are_bounded_and_end_with_the_simulator() {
    let desk = Desk::open().await;
    let mut idle = Vec::new();
    for _ in 0..100 {
        idle.push(desk.connect().await);
    }
    // The next is answered when one of these has ended.
    let mut stream = desk.connect().await;
    stream.write_all(b"GET / HTTP/1.1\r\nhost: x\r\n\r\n").await.unwrap();
    let waited = tokio::time::timeout(Duration::from_millis(100), stream.readable()).await;
    assert!(waited.is_err());
    idle.pop();
    assert!(answer(stream).await.0.starts_with("HTTP/1.1 404 "));
    desk.smsc.stop().await;
    desk.tasks.join_all().await;
}

#[tokio::test]
async fn a_request_must_come_in_time() {
    let desk = Desk::open().await;
    let mut stream = desk.connect().await;
    stream.write_all(b"GET /handsets/1/messages HTTP/1.1\r\nhost").await.unwrap();
    // From here on time passes as fast as nothing else happens.
    tokio::time::pause();
    let mut answer = Vec::new();
    let _ = stream.read_to_end(&mut answer).await;
    assert_eq!(answer, b"");
}
