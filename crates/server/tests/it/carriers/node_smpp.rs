//! Replies from an SMSC of another project (node-smpp), through all layers.

use crate::support::http::Request;
use crate::support::process::Process;
use crate::support::server::Server;
use crate::support::wait::eventually;
use crate::support::webhook_sink::WebhookSink;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;

const EMAIL: &str = "ann@example.com";

/// Starts node-smpp as SMSC. It replies to each message in GSM-7, Latin-1 and UCS-2, and with three
/// shuffled parts.
fn node_smpp() -> (Process, u64) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../carrier/tests/peers");
    let node = Process::start(Command::new("node").arg("replies.mjs").current_dir(folder));
    let port = eventually("node-smpp listens", || {
        let line: Value = serde_json::from_str(node.stdout.text().lines().next()?).ok()?;
        line["port"].as_u64()
    });
    (node, port)
}

#[test]
fn replies_of_node_smpp_arrive() {
    let ((node, port), sink) = (node_smpp(), WebhookSink::start());
    let config = format!(
        "[[carriers]]\nname = 'node'\nkind = 'smpp'\nhost = '127.0.0.1'\nport = {port}\n\
         [[routes]]\nprefix = ''\ncarriers = ['node']\n\
         [[numbers]]\nnumber = '447700900000'\naccount = '{EMAIL}'\n\
         [webhooks]\nallow_private = ['127.0.0.1/32']\n"
    );
    let mut server = Server::new(&config);
    let key = server.live_key(EMAIL, "0");
    server.stdout(&[
        "webhook",
        "add",
        "--live",
        "--account",
        EMAIL,
        "--url",
        &sink.url("/"),
        "--events",
        "message.received",
    ]);
    server.launch();
    server.wait_until_ready();
    let sent =
        json!({ "originator": "447700900000", "recipient": "+447700900123", "text": "Well?" });
    let id = server.accepted(&key, &sent);
    let texts = BTreeSet::from([
        "GSM: {50} € é",
        "Latin-1: Grüße",
        "UCS-2: Да, 你好 😀",
        "Part one, two @ two, and three.",
    ]);
    let received = sink.wait_for(texts.len());
    let data: Vec<Value> = received.iter().map(|r| r.json()["data"].clone()).collect();
    assert_eq!(data.iter().map(|d| d["text"].as_str().unwrap()).collect::<BTreeSet<_>>(), texts);
    for d in &data {
        assert_eq!((&d["from"], &d["to"]), (&json!("447700900123"), &json!("447700900000")));
        assert_eq!(
            (&d["inReplyTo"], &d["mode"], &d["complete"]),
            (&json!(id), &json!("live"), &json!(true))
        );
    }
    // All parts are acknowledged, and the list has the same messages as the webhooks.
    eventually("all six parts are acknowledged", || {
        let lines = node.stdout.text();
        (lines.matches("\"event\":\"acknowledged\",\"status\":0").count() == 6).then_some(())
    });
    let listed = server.ask(&Request::get("/v1/inbound-messages").key(&key)).json();
    let listed = listed["data"].as_array().unwrap().iter().map(|m| m["text"].as_str().unwrap());
    assert_eq!(listed.collect::<BTreeSet<_>>(), texts);
    assert_eq!(sink.received().len(), texts.len());
    server.check();
}
