//! `/healthz`, `/readyz` and `/metrics`.

use crate::database::{Engine, each_engine};
use crate::http::Request;
use crate::patience::eventually;
use crate::send_sms::hello;
use crate::server::Server;

each_engine!(health: a_server_at_work_is_alive_and_ready metrics_count_what_happened
    the_log_names_no_secrets the_log_speaks_json);

fn a_server_at_work_is_alive_and_ready(engine: Engine) {
    let server = Server::start(engine);
    for (path, text) in [("/healthz", "ok\n"), ("/readyz", "ready\n")] {
        let answer = server.ask(&Request::get(path));
        assert_eq!((answer.status, answer.text().as_str()), (200, text));
    }
}

/// The value of a metric, added up over its labels.
pub(crate) fn metric(server: &Server, name: &str) -> f64 {
    let page = server.ask(&Request::get("/metrics")).text();
    let lines = page.lines().filter(|l| l.split(['{', ' ']).next() == Some(name));
    lines.map(|l| l.rsplit(' ').next().unwrap().parse::<f64>().unwrap()).sum()
}

fn metrics_count_what_happened(engine: Engine) {
    let server = Server::start(engine);
    let key = server.key();
    let page = server.ask(&Request::get("/metrics"));
    assert_eq!(page.header("content-type"), Some("text/plain; version=0.0.4; charset=utf-8"));
    for _ in 0..3 {
        server.ended(&key, &server.accepted(&key, &hello("+447700900123")));
    }
    server.ended(&key, &server.accepted(&key, &hello("+447700900001")));
    server.ask(&Request::send_sms(&key, "{}"));
    for (name, value) in [
        ("heliograph_accepted_total", 4.0),
        ("heliograph_dispatched_total", 4.0),
        ("heliograph_settled_total", 4.0),
        ("heliograph_receipts_total", 4.0),
        ("heliograph_messages_failed_total", 1.0),
        ("heliograph_carrier_bound", 1.0),
    ] {
        eventually(&format!("{name} is {value}"), || {
            (metric(&server, name) == value).then_some(())
        });
    }
    let page = server.ask(&Request::get("/metrics")).text();
    for name in [
        "heliograph_carrier_bound{carrier=\"simulated\"} 1",
        "heliograph_queue_depth",
        "heliograph_writer_batch_rows",
        "heliograph_writer_commit_seconds",
    ] {
        assert!(page.contains(name), "{name} is missing:\n{page}");
    }
}

fn the_log_names_no_secrets(engine: Engine) {
    let server = Server::with(engine, "[telemetry]\nlog = 'trace'");
    let key = server.key();
    let mut body = hello("+447700900123");
    body["text"] = "The secret word is swordfish".into();
    let request = Request::send_sms(&key, body.to_string()).header("X-Request-Id", "find-me");
    let id = server.ask(&request).json()["id"].as_str().unwrap().to_owned();
    server.ended(&key, &id);
    let log = eventually("the log tells of the message and of the request", || {
        let log = server.log();
        let done = log.lines().any(|l| l.contains(&id) && l.contains("DELIVERED"));
        (done && log.contains("find-me")).then_some(log)
    });
    assert!(!log.contains("swordfish"), "a text");
    assert!(!log.contains(&key[8..]), "a key");
    assert!(!log.contains('\u{1b}'), "colours in a file");
    assert!(log.contains("V1__foundation"), "the schema's steps");
    assert!(
        !log.contains(env!("CARGO_MANIFEST_DIR")) && !log.contains(".rs"),
        "where it was built"
    );
}

/// A line of the log with its fields, none of them twice.
#[derive(Debug, PartialEq, Eq, serde::Deserialize)]
#[serde(deny_unknown_fields)]
struct Line {
    timestamp: String,
    level: String,
    message: String,
    id: String,
    status: String,
    failure: Option<String>,
}

fn the_log_speaks_json(engine: Engine) {
    let server = Server::with(engine, "[telemetry]\nformat = 'json'");
    let key = server.key();
    let id = server.accepted(&key, &hello("+447700900001"));
    let lines: Vec<Line> = eventually("the log tells of the failure", || {
        let log = server.log();
        let lines = log.lines().filter(|l| l.contains(&id) && l.contains("status\":\""));
        let lines: Vec<_> = lines.map(|l| serde_json::from_str(l).unwrap()).collect();
        (lines.len() == 2).then_some(lines)
    });
    assert!(lines.iter().all(|l| (&l.id, l.message.as_str()) == (&id, "message")), "{lines:?}");
    let last = lines.last().unwrap();
    assert_eq!((last.status.as_str(), last.failure.as_deref()), ("FAILED", Some("unreachable")));
    for line in server.log().lines() {
        serde_json::from_str::<serde_json::Value>(line).unwrap_or_else(|e| panic!("{e}: {line}"));
    }
}
