//! `heliograph listen`: shows and forwards events.

use crate::support::api::hello;
use crate::support::process::Process;
use crate::support::server::Server;
use crate::support::wait::eventually;
use crate::support::webhook_sink::{Behavior, WebhookSink};
use serde_json::{Value, json};

/// Starts `heliograph listen`, and waits until it is ready.
fn listen(server: &Server, arguments: &[&str]) -> Process {
    let listener = Process::start(server.command().arg("listen").args(arguments));
    eventually("the command listens", || {
        listener.stderr.text().contains("press Ctrl-C to stop").then_some(())
    });
    listener
}

fn endpoints(server: &Server) -> Vec<Value> {
    server.list(&["webhook", "list", "--account", "demo@localhost"])
}

#[test]
fn events_are_shown_as_they_happen() {
    // The default configuration allows private addresses for this command, because only the
    // operator can run it.
    let server = Server::start();
    let (shown, parsed) =
        (listen(&server, &[]), listen(&server, &["--json", "--events", "message.failed"]));
    let id = server.accepted(&server.key(), &hello("+447700900001"));
    let text = eventually("the event is shown", || {
        Some(shown.stdout.text()).filter(|text| text.contains(&id) && text.ends_with('\n'))
    });
    assert_eq!(text.lines().count(), 1, "{text}");
    assert!(
        text.contains("Z  message.failed     ") && text.contains(" → 447700900001  "),
        "{text}"
    );
    assert!(!text.contains('\u{1b}'), "no colors outside of a terminal");
    let line = eventually("the event is printed as JSON", || {
        Some(parsed.stdout.text()).filter(|text| text.ends_with('\n'))
    });
    let event: Value = serde_json::from_str(&line).unwrap();
    assert_eq!((&event["type"], &event["data"]["id"]), (&json!("message.failed"), &json!(id)));
}

#[test]
fn events_are_forwarded() {
    let (server, sink) = (Server::start(), WebhookSink::start());
    sink.set_behavior(Behavior::status(500));
    let listener = listen(&server, &["--forward", &sink.url("/hook?x=1")]);
    let secret = listener.stderr.text();
    let secret = secret.split_whitespace().find(|w| w.starts_with("whsec_")).unwrap().to_owned();
    server.accepted(&server.key(), &hello("+447700900123"));
    let received = sink.wait_for(1).remove(0);
    assert_eq!(
        (received.path.as_str(), received.header("host")),
        ("/hook?x=1", &*sink.address.to_string())
    );
    assert!(received.is_signed_by(&secret));
    eventually("the response is shown", || {
        listener.stdout.text().contains("forwarded: HTTP 500").then_some(())
    });
    // A failed forward fails the delivery, which is retried.
    sink.set_behavior(Behavior::status(200));
    assert_eq!(sink.wait_for(2)[1].id(), received.id());
}

#[test]
fn the_secret_is_stable_and_a_killed_run_leaves_no_endpoint() {
    let server = Server::start();
    let secret = |listener: &Process| {
        let text = listener.stderr.text();
        text.split_whitespace().find(|w| w.starts_with("whsec_")).unwrap().to_owned()
    };
    let mut killed = listen(&server, &["--verbose"]);
    let first = secret(&killed);
    killed.kill();
    assert_eq!(endpoints(&server).len(), 1);
    let again = listen(&server, &[]);
    assert_eq!(secret(&again), first);
    assert_eq!(endpoints(&server).len(), 1, "the endpoint of the killed run is gone");
    // Two runs at once do not remove each other's endpoint; live events have another secret.
    let live = listen(&server, &["--live"]);
    assert_ne!(secret(&live), first);
    let third = listen(&server, &[]);
    assert_eq!((secret(&third), endpoints(&server).len()), (first, 3));
}

#[test]
fn commands_that_need_the_service_say_so_at_once() {
    let mut server = Server::with("[webhooks]\nallow_private = ['127.0.0.0/8']");
    let url = ["--url", "http://127.0.0.1:1025/"];
    server.stdout(&[&["webhook", "add", "--account", "1"][..], &url].concat());
    assert!(server.stop().success());
    for command in [&["listen"][..], &["webhook", "test", "1"]] {
        let why = server.fails(command);
        assert!(why.contains("the service is not running"), "{why}");
    }
    assert_eq!(server.list(&["webhook", "list", "--account", "1"]).len(), 1);
}

#[test]
fn invalid_arguments_are_rejected() {
    let server = Server::start();
    for (arguments, code, why) in [
        (&["--account", "zoe@example.com"][..], 1, "no account for zoe@example.com"),
        (&["--forward", "localhost:3000"], 2, "--forward"),
        (&["--events", "message.read"], 2, "message.received"),
        (&["--live", "--test"], 2, "cannot be used with"),
    ] {
        let output = server.run(&[&["listen"], arguments].concat());
        let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(code), "{stderr}");
        assert!(stderr.contains(why), "{stderr}");
    }
    server.stdout(&["account", "create", "--email", "ann@example.com"]);
    let output = server.run(&["listen"]);
    assert!(String::from_utf8_lossy(&output.stderr).contains("select one with --account"));
    assert_eq!(endpoints(&server).len(), 0);
}

#[test]
fn the_endpoint_is_removed_at_the_end() {
    let server = Server::start();
    let mut listener = listen(&server, &[]);
    assert_eq!(endpoints(&server).len(), 1);
    let url = endpoints(&server)[0]["url"].as_str().unwrap().to_owned();
    // A request without a signature is rejected and not shown.
    let address = url.trim_start_matches("http://").trim_end_matches('/').parse().unwrap();
    let request = crate::support::http::Request::new("POST", "/").body("{}");
    assert_eq!(crate::support::http::ask(address, &request).unwrap().status, 400);
    listener.terminate();
    assert!(listener.wait().success());
    assert_eq!((endpoints(&server).len(), listener.stdout.text().as_str()), (0, ""));
}
