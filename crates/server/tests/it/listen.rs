//! `heliograph listen`: events on this machine, as they happen.

use crate::database::{Engine, each_engine};
use crate::patience::eventually;
use crate::process::Process;
use crate::send_sms::hello;
use crate::server::Server;
use crate::sink::{Mood, Sink};
use serde_json::{Value, json};

each_engine!(listen: events_are_shown_as_they_happen events_are_sent_on what_it_refuses
    its_endpoint_ends_with_it);

/// A running `heliograph listen`, once it says so.
fn listen(server: &Server, arguments: &[&str]) -> Process {
    let listener = Process::start(server.command().arg("listen").args(arguments));
    eventually("it listens", || listener.stderr.text().contains("Ctrl-C ends it").then_some(()));
    listener
}

fn endpoints(server: &Server) -> Vec<Value> {
    server.list(&["webhook", "list", "--account", "demo@localhost"])
}

fn events_are_shown_as_they_happen(engine: Engine) {
    // With nothing opened in the configuration: it is the operator who listens.
    let server = Server::start(engine);
    let (shown, parsed) =
        (listen(&server, &[]), listen(&server, &["--json", "--events", "message.failed"]));
    let id = server.accepted(&server.key(), &hello("+447700900001"));
    let text = eventually("the event is shown", || {
        Some(shown.stdout.text()).filter(|text| text.contains(&id) && text.ends_with("}\n"))
    });
    assert!(text.contains("  message.failed  ") && text.contains("  verified"), "{text}");
    assert!(!text.contains('\u{1b}'), "no colours where nobody sees them");
    let line = eventually("and told as JSON", || {
        Some(parsed.stdout.text()).filter(|text| text.ends_with('\n'))
    });
    let event: Value = serde_json::from_str(&line).unwrap();
    assert_eq!((&event["type"], &event["data"]["id"]), (&json!("message.failed"), &json!(id)));
}

fn events_are_sent_on(engine: Engine) {
    let (server, sink) = (Server::start(engine), Sink::start());
    sink.behave(Mood::status(500));
    let listener = listen(&server, &["--forward", &sink.url("/hook?x=1")]);
    let secret = listener.stderr.text();
    let secret = secret.split_whitespace().find(|w| w.starts_with("whsec_")).unwrap().to_owned();
    server.accepted(&server.key(), &hello("+447700900123"));
    let told = sink.has(1).remove(0);
    assert_eq!(
        (told.path.as_str(), told.header("host")),
        ("/hook?x=1", &*sink.address.to_string())
    );
    assert!(told.is_signed_by(&secret));
    eventually("what came back is shown", || {
        listener.stdout.text().contains("forwarded: 500").then_some(())
    });
    // Its answer is ours: a failure is tried again.
    sink.behave(Mood::status(200));
    assert_eq!(sink.has(2)[1].id(), told.id());
}

fn what_it_refuses(engine: Engine) {
    let server = Server::start(engine);
    for (arguments, code, why) in [
        (&["--account", "zoe@example.com"][..], 1, "no account for zoe@example.com"),
        (&["--forward", "localhost:3000"], 1, "--forward"),
        (&["--events", "message.read"], 2, "message.received"),
        (&["--live", "--test"], 2, "cannot be used with"),
    ] {
        let output = server.tool(&[&["listen"], arguments].concat());
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(code), "{said}");
        assert!(said.contains(why), "{said}");
    }
    server.told(&["account", "create", "--email", "ann@example.com"]);
    let output = server.tool(&["listen"]);
    assert!(String::from_utf8_lossy(&output.stderr).contains("say which with --account"));
    assert_eq!(endpoints(&server).len(), 0);
}

fn its_endpoint_ends_with_it(engine: Engine) {
    let server = Server::start(engine);
    let mut listener = listen(&server, &[]);
    assert_eq!(endpoints(&server).len(), 1);
    let url = endpoints(&server)[0]["url"].as_str().unwrap().to_owned();
    // What is not signed is refused and not shown.
    let address = url.trim_start_matches("http://").trim_end_matches('/').parse().unwrap();
    let request = crate::http::Request::new("POST", "/").body("{}");
    assert_eq!(crate::http::ask(address, &request).unwrap().status, 400);
    listener.terminate();
    assert!(listener.wait().success());
    assert_eq!((endpoints(&server).len(), listener.stdout.text().as_str()), (0, ""));
}
