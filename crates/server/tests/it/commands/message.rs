//! `heliograph message` and `heliograph optout`.

use crate::support::api::hello;
use crate::support::ports::Port;
use crate::support::server::Server;
use serde_json::{Value, json};

/// Returns a configuration whose live messages stay queued, because the carrier is down.
fn carrier_down(port: &Port) -> String {
    format!(
        "[rates]\ndefault = '0.0420'\n[[carriers]]\nname = 'away'\nkind = 'smpp'\nhost = '127.0.0.1'\n\
         port = {}\nsystem_id = 'x'\n[[routes]]\nprefix = ''\ncarriers = ['away']\n",
        port.number
    )
}

#[test]
fn messages_are_listed_shown_and_cancelled() {
    let port = Port::reserve();
    let server = Server::with(&carrier_down(&port));
    let live = server.live_key("ann@example.com", "1");
    let id = server.accepted(&live, &hello("+447700900123"));
    let test = server.stdout(&["key", "create", "--account", "2"]);
    let other = server.accepted(&test, &hello("+447700900001"));
    server.wait_until_ended(&test, &other);
    let ann = ["--account", "2"];
    let list = |more: &[&str]| server.list(&[&["message", "list"], &ann[..], more].concat());
    let ids = |all: &[Value]| all.iter().map(|m| m["id"].clone()).collect::<Vec<_>>();
    assert_eq!(ids(&list(&["--live"])), [json!(id)]);
    assert_eq!(ids(&list(&["--status", "FAILED", "--recipient", "+447700900001"])), [json!(other)]);
    assert_eq!(list(&["--reference", "none"]).len(), 0);
    // As the API shows it, in either mode.
    for (key, id) in [(&live, &id), (&test, &other)] {
        let shown = server.json(&[&["message", "show", id], &ann[..]].concat());
        assert_eq!(shown, server.message(key, id).json());
    }
    let cancel = |id: &str| [&["message", "cancel", id], &ann[..]].concat().join(" ");
    let cancelled = server.json(&cancel(&id).split(' ').collect::<Vec<_>>());
    assert_eq!(
        (&cancelled["status"], &cancelled["price"]),
        (&json!("CANCELLED"), &json!("0.0000"))
    );
    assert_eq!(server.message(&live, &id).json()["status"], "CANCELLED");
    let late = server.fails(&cancel(&other).split(' ').collect::<Vec<_>>());
    assert!(late.contains("cannot be cancelled: The message has already ended"), "{late}");
    let (code, stdout, _) = server.run_text(&[&["message", "show", &id], &ann[..]].concat());
    assert!(code == Some(0) && stdout.contains("status            CANCELLED\n"), "{stdout}");
    let unknown = server.fails(&["message", "show", &id, "--account", "1"]);
    assert!(unknown.contains("account 1 has no message"), "{unknown}");
    let (code, _, why) = server.run_text(&["message", "show", "abc", "--account", "1"]);
    assert!(code == Some(2) && why.contains("not the ID of a message"), "{why}");
    server.check();
}

#[test]
fn opt_outs_are_added_listed_and_removed() {
    let server = Server::start();
    let run =
        |what: &str, more: &[&str]| server.json(&[&["optout", what], more, &["--live"]].concat());
    let number = "447700900123";
    assert_eq!(
        run("add", &["+44 7700 900123", "--note", "by phone"]),
        json!({ "number": number, "added": true })
    );
    assert_eq!(run("add", &[number]), json!({ "number": number, "added": false }));
    let all = run("list", &[]);
    assert_eq!(
        all,
        json!([{ "number": number, "source": "api", "inboundMessageId": null, "originator": null,
                 "note": "by phone", "createdAt": all[0]["createdAt"] }])
    );
    assert_eq!(server.list(&["optout", "list", "--test"]).len(), 0);
    assert_eq!(run("remove", &[number]), json!({ "number": number, "removed": true }));
    assert_eq!(run("list", &[]), json!([]));
    let why = server.fails(&["optout", "remove", number, "--live"]);
    assert!(why.contains("+447700900123 is not on the opt-out list"), "{why}");
    // A number on the wrong list protects nobody, so the mode has no default.
    assert_eq!(server.run(&["optout", "add", number]).status.code(), Some(2));
}
