//! The webhook receivers in docs/samples/webhooks, run against a server.
//!
//! The tests need `npm ci` in the folder of the Node.js receiver, php, and the Python that
//! HELIOGRAPH_PEERS_PYTHON names, with the packages of requirements.txt. Run them with
//! `--features test-samples`.

use crate::support::api::hello;
use crate::support::http::{self, Request};
use crate::support::ports::Port;
use crate::support::process::{self, Process};
use crate::support::server::Server;
use crate::support::wait::eventually;
use crate::support::webhooks::add;
use serde_json::Value;
use standardwebhooks::Webhook;
use std::net::{SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{SystemTime, UNIX_EPOCH};

const LIMIT: usize = 1 << 20;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn sample(path: &str) -> PathBuf {
    root().join("docs/samples/webhooks").join(path)
}

#[test]
fn python() {
    let python = std::env::var("HELIOGRAPH_PEERS_PYTHON").expect("see the head of this file");
    check_receiver("python/receiver.py", |_| {
        let mut command = Command::new(&python);
        command.arg(sample("python/receiver.py"));
        command
    });
}

#[test]
fn node() {
    check_receiver("node/receiver.mjs", |_| {
        let mut command = Command::new("node");
        command.arg(sample("node/receiver.mjs"));
        command
    });
}

#[test]
fn php() {
    check_receiver("php/receiver.php", |port| {
        let mut command = Command::new("php");
        command.args(["-S", &format!("127.0.0.1:{port}")]).arg(sample("php/receiver.php"));
        command
    });
}

#[test]
fn rust() {
    let beside = Path::new(env!("CARGO_BIN_EXE_heliograph")).parent().unwrap();
    let program = beside.join("examples/webhook_receiver");
    assert!(program.exists(), "cargo build -p heliograph-server --example webhook_receiver");
    check_receiver("webhook_receiver.rs", |_| Command::new(&program));
}

/// A running receiver and its endpoint.
struct Receiver {
    name: &'static str,
    process: Process,
    address: SocketAddr,
    _port: Port,
    endpoint: String,
    secret: String,
}

/// Checks a receiver.
fn check_receiver(name: &'static str, command: impl Fn(u16) -> Command) {
    let server = Server::with("[webhooks]\nallow_private = ['127.0.0.1/32']\n");
    let receiver = Receiver::start(name, &server, &command);
    receiver.takes_a_test(&server);
    let key = server.key();
    server.accepted(&key, &hello("+447700900123"));
    receiver.prints("verified message.delivered ");
    receiver.rejects_invalid_signatures();
    receiver.rejects_large_bodies();
    // After a rotation both secrets sign for a day.
    server.stdout(&["webhook", "rotate", &receiver.endpoint]);
    receiver.takes_a_test(&server);
    server.accepted(&key, &hello("+447700900001"));
    receiver.prints("verified message.failed ");
    an_empty_secret_accepts_nothing(name, &command);
}

/// A receiver with an empty secret must not accept signatures, because anyone could make them.
fn an_empty_secret_accepts_nothing(name: &str, command: &impl Fn(u16) -> Command) {
    for secret in ["", "whsec_"] {
        let port = Port::reserve();
        let address = port.address();
        let mut process = launch(command, address, secret);
        let listens = eventually(&format!("{name} listens or exits"), || {
            let ended = process.ended().is_some();
            (ended || TcpStream::connect(address).is_ok()).then_some(!ended)
        });
        let (at, body) = (now(), r#"{"type":"message.delivered"}"#);
        let forged = Webhook::from_bytes(Vec::new()).unwrap();
        let forged = forged.sign("evt_1", at, body.as_bytes()).unwrap();
        let request = Receiver::post("evt_1", at, &forged).body(body);
        // A receiver that exits after the connection was opened rejects the request, too.
        let response = http::ask(address, &request).ok().filter(|_| listens).map(|a| a.status);
        assert!(response.is_none_or(|status| status == 400), "{name}: {response:?}");
    }
}

fn launch(command: &impl Fn(u16) -> Command, address: SocketAddr, secret: &str) -> Process {
    let mut command = command(address.port());
    process::clear(&mut command);
    Process::start(command.env("WEBHOOK_SECRET", secret).env("PORT", address.port().to_string()))
}

impl Receiver {
    fn start(name: &'static str, server: &Server, command: &impl Fn(u16) -> Command) -> Self {
        let port = Port::reserve();
        let address = port.address();
        let (endpoint, secret) = add(server, &format!("http://{address}/webhooks"), &[]);
        let mut process = launch(command, address, &secret);
        eventually(&format!("{name} listens"), || {
            let ended = process.ended();
            assert!(ended.is_none(), "{name}: {ended:?}: {}", process.stderr.text());
            TcpStream::connect(address).ok()
        });
        Self { name, process, address, _port: port, endpoint, secret }
    }

    fn takes_a_test(&self, server: &Server) {
        let test = server.stdout(&["--json", "webhook", "test", &self.endpoint]);
        let test: Value = serde_json::from_str(&test).unwrap();
        assert_eq!((&test["success"], &test["status"]), (&true.into(), &204.into()), "{test}");
        self.prints(&format!("verified webhook.test {}\n", test["event"].as_str().unwrap()));
    }

    fn prints(&self, line: &str) {
        eventually(&format!("{} prints {line:?}", self.name), || {
            self.process.stdout.text().contains(line).then_some(())
        });
    }

    fn rejects_invalid_signatures(&self) {
        let stranger = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";
        let (body, other) = (r#"{"type":"message.delivered"}"#, r#"{"type":"message.failed"}"#);
        let (ours, now) = (&*self.secret, now());
        for (secret, at, signed, body, status) in [
            (ours, now, body, body, 204),
            (stranger, now, body, body, 400),
            (ours, now, other, body, 400),
            (ours, now - 600, body, body, 400),
            (ours, now + 600, body, body, 400),
        ] {
            let signature = Webhook::new(secret).unwrap();
            let signature = signature.sign("evt_1", at, signed.as_bytes()).unwrap();
            let response = self.responses(&Self::post("evt_1", at, &signature).body(body));
            assert_eq!(response, status, "{}: {at} (now {now}), {signed}, {body}", self.name);
        }
        for signature in ["", "v1", "v1,", "v1,AAAA", "v2,x v1", "v1,\u{e4}"] {
            let response = self.responses(&Self::post("evt_1", now, signature).body(body));
            assert_eq!(response, 400, "{}: {signature}", self.name);
        }
        assert_eq!(self.responses(&Request::new("POST", "/").body(body)), 400, "{}", self.name);
    }

    fn rejects_large_bodies(&self) {
        let request = Self::post("evt_1", now(), "v1,AAAA").body(vec![b'x'; LIMIT + 1]);
        let mut connection = http::Connection::open(self.address).unwrap();
        // PHP reads the whole body first; the other receivers check Content-Length.
        let kept = if self.name.contains("php") { 0 } else { LIMIT + 1 };
        connection.begin(&request, kept).unwrap();
        assert_eq!(connection.response().unwrap().status, 413, "{}", self.name);
    }

    fn post(id: &str, at: i64, signature: &str) -> Request {
        let request = Request::new("POST", "/webhooks").header("webhook-id", id);
        request.header("webhook-timestamp", at.to_string()).header("webhook-signature", signature)
    }

    fn responses(&self, request: &Request) -> u16 {
        http::ask(self.address, request).unwrap().status
    }
}

#[expect(clippy::disallowed_methods, reason = "the receivers use the system clock")]
fn now() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
    i64::try_from(since.as_secs()).unwrap()
}

#[test]
fn quoted_code_is_in_the_samples() {
    let page = std::fs::read_to_string(root().join("docs/webhooks.md")).unwrap();
    for (language, path) in [
        ("python", "docs/samples/webhooks/python/receiver.py"),
        ("js", "docs/samples/webhooks/node/receiver.mjs"),
        ("php", "docs/samples/webhooks/php/receiver.php"),
        ("rust", "crates/server/examples/webhook_receiver.rs"),
    ] {
        let sample = std::fs::read_to_string(root().join(path)).unwrap();
        let quotes: Vec<_> = page.split(&format!("```{language}\n")).skip(1).collect();
        assert!(!quotes.is_empty(), "{language} is not quoted");
        for quote in quotes {
            let (quote, _) = quote.split_once("```").unwrap();
            assert!(sample.contains(quote), "not in {path}:\n{quote}");
        }
    }
}
