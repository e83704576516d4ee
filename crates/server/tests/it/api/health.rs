//! `/healthz`, `/readyz`, `/metrics` and the log.

use crate::support::api::hello;
use crate::support::http::Request;
use crate::support::server::Server;
use crate::support::wait::eventually;

#[test]
fn a_running_server_is_alive_and_ready() {
    let server = Server::start();
    for (path, text) in [("/healthz", "ok\n"), ("/readyz", "ready\n")] {
        let response = server.ask(&Request::get(path));
        assert_eq!((response.status, response.text().as_str()), (200, text));
    }
}

#[test]
fn a_server_that_cannot_write_is_not_ready() {
    let server = Server::start();
    let status = || server.ask(&Request::get("/readyz")).status;
    assert_eq!(status(), 200);
    server.database.while_unavailable(|| {
        eventually("the server is not ready", || (status() == 503).then_some(()));
        assert_eq!(server.ask(&Request::get("/healthz")).status, 200);
    });
    eventually("the server is ready again", || (status() == 200).then_some(()));
    server.check();
}

/// Returns the value of a metric, summed over its labels.
fn metric(server: &Server, name: &str) -> f64 {
    let page = server.ask(&Request::get("/metrics")).text();
    let lines = page.lines().filter(|l| l.split(['{', ' ']).next() == Some(name));
    lines.map(|l| l.rsplit(' ').next().unwrap().parse::<f64>().unwrap()).sum()
}

#[test]
fn metrics_count_messages() {
    let server = Server::start();
    let key = server.key();
    let page = server.ask(&Request::get("/metrics"));
    assert_eq!(page.header("content-type"), Some("text/plain; version=0.0.4; charset=utf-8"));
    for _ in 0..3 {
        server.wait_until_ended(&key, &server.accepted(&key, &hello("+447700900123")));
    }
    server.wait_until_ended(&key, &server.accepted(&key, &hello("+447700900001")));
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

#[test]
fn the_log_contains_no_texts_keys_or_build_paths() {
    let server = Server::with("[telemetry]\nlog = 'trace'");
    let key = server.key();
    let mut body = hello("+447700900123");
    body["text"] = "The secret word is swordfish".into();
    let request = Request::send_sms(&key, body.to_string()).header("X-Request-Id", "find-me");
    let id = server.ask(&request).json()["id"].as_str().unwrap().to_owned();
    server.wait_until_ended(&key, &id);
    let log = eventually("the log contains the message and the request", || {
        let log = server.log();
        let done = log.lines().any(|l| l.contains(&id) && l.contains("DELIVERED"));
        (done && log.contains("find-me")).then_some(log)
    });
    assert!(!log.contains("swordfish"), "the text of a message");
    assert!(!log.contains(&key[8..]), "an API key");
    assert!(!log.contains('\u{1b}'), "colors in a file");
    assert!(log.contains("name=initial_schema"), "the migrations");
    assert!(
        !log.contains(env!("CARGO_MANIFEST_DIR")) && !log.contains(".rs"),
        "a path of the build machine"
    );
}

/// A log line; unknown and duplicate fields are errors.
#[derive(Debug, PartialEq, Eq, serde::Deserialize)]
#[serde(deny_unknown_fields)]
struct LogLine {
    timestamp: String,
    level: String,
    message: String,
    id: String,
    status: String,
    failure: Option<String>,
}

#[test]
fn the_log_can_be_json() {
    let server = Server::with("[telemetry]\nformat = 'json'");
    let key = server.key();
    let id = server.accepted(&key, &hello("+447700900001"));
    let lines: Vec<LogLine> = eventually("the log contains the failure", || {
        let log = server.log();
        let lines = log.lines().filter(|l| l.contains(&id) && l.contains("status\":\""));
        let lines: Vec<_> = lines.map(|l| serde_json::from_str(l).unwrap()).collect();
        (lines.len() == 2).then_some(lines)
    });
    assert!(
        lines.iter().all(|l| (&l.id, l.message.as_str()) == (&id, "message status changed")),
        "{lines:?}"
    );
    let last = lines.last().unwrap();
    assert_eq!((last.status.as_str(), last.failure.as_deref()), ("FAILED", Some("unreachable")));
    for line in server.log().lines() {
        serde_json::from_str::<serde_json::Value>(line).unwrap_or_else(|e| panic!("{e}: {line}"));
    }
}
