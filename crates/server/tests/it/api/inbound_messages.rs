//! Inbound messages: assembled once, assigned to an account, with keywords obeyed.

use crate::support::api::{data, get, hello, problem};
use crate::support::billing::balance;
use crate::support::http::Request;
use crate::support::server::Server;
use crate::support::smsc::Smsc;
use crate::support::wait::eventually;
use crate::support::webhook_sink::WebhookSink;
use crate::support::webhooks;
use serde_json::{Value, json};

const DEMO: &str = "demo@localhost";
const ANN: &str = "447700900123";
const US: &str = "447700900555";
const OURS: &str = "[[numbers]]\nnumber = '447700900555'\naccount = 'ann@example.com'\n";
const LISTED: &str = "/v1/optout-lists/default/numbers";
const INBOUND: &str = "/v1/inbound-messages";

/// Waits for `count` inbound messages; those of the same millisecond are in any order.
fn wait_for_inbound(server: &Server, key: &str, count: usize) -> Vec<Value> {
    eventually(&format!("{count} inbound messages"), || {
        Some(data(server, key, INBOUND)).filter(|all| all.len() >= count)
    })
}

/// Waits for the inbound message with this text.
fn wait_for_text(server: &Server, key: &str, text: &str) -> Value {
    eventually(&format!("inbound message {text}"), || {
        data(server, key, INBOUND).into_iter().find(|m| m["text"] == text)
    })
}

fn texts(messages: &[Value]) -> Vec<String> {
    let text = |m: &Value| m["text"].as_str().unwrap().to_owned();
    let mut texts: Vec<_> = messages.iter().map(text).collect();
    texts.sort_unstable();
    texts
}

/// A message from the configured number, the only originator that recipients can reply to.
fn from_us(text: &str) -> Value {
    json!({ "originator": US, "recipient": ANN, "text": text })
}

/// Starts a carrier, and a server that assigns the configured number to Ann's account.
fn live(more: &str) -> (Smsc, Server, String) {
    let smsc = Smsc::start(&[]);
    let private = "[webhooks]\nallow_private = ['127.0.0.1/32']\n";
    let mut server = Server::new(&format!("{}{OURS}{private}{more}", smsc.config(10)));
    let key = server.live_key("ann@example.com", "10.00");
    server.launch();
    server.wait_until_ready();
    (smsc, server, key)
}

#[test]
fn stop_from_a_virtual_handset_affects_test_mode_only() {
    let (server, sink) = (webhooks::server(), WebhookSink::start());
    let key = server.key();
    let live = server.stdout(&["key", "create", "--account", DEMO, "--live"]);
    webhooks::add(&server, &sink.url("/"), &["--events", "message.received"]);
    webhooks::add(&server, &sink.url("/live"), &["--live", "--events", "message.received"]);
    let id = server.accepted(&key, &hello("+447700900009"));
    let event = sink.wait_for(1)[0].json();
    let message = wait_for_inbound(&server, &key, 1).remove(0);
    let field = |name: &str| message[name].clone();
    let expected = json!({
        "id": field("id"), "from": "447700900009", "to": "Shop", "text": "STOP",
        "receivedAt": field("receivedAt"), "inReplyTo": id, "keyword": "STOP", "mode": "test",
        "complete": true,
    });
    assert_eq!(message, expected);
    let path = format!("/v1/inbound-messages/{}", message["id"].as_str().unwrap());
    assert_eq!(get(&server, &key, &path), expected);
    let mut fields = expected;
    fields["textTruncated"] = json!(false);
    assert_eq!((&event["type"], &event["data"]), (&json!("message.received"), &fields));
    assert_eq!(event["timestamp"], message["receivedAt"]);
    let evidence = json!([{
        "number": "447700900009", "source": "reply", "inboundMessageId": message["id"],
        "originator": "Shop", "note": null, "createdAt": message["receivedAt"],
    }]);
    assert_eq!(get(&server, &key, LISTED), json!({ "data": evidence, "nextCursor": null }));
    problem(&server.post(&key, &hello("+447700900009")), 403, "recipient_opted_out");
    let mut anyway = hello("+447700900009");
    anyway["blockOptout"] = json!(false);
    let anyway = server.accepted(&key, &anyway);
    assert_eq!(server.wait_until_ended(&key, &anyway)["status"], "DELIVERED");
    // A second STOP is stored as a message, but the first one remains the evidence.
    let messages = wait_for_inbound(&server, &key, 2);
    assert!(messages.iter().any(|m| m["inReplyTo"] == anyway.as_str()), "{messages:?}");
    assert_eq!(json!(data(&server, &key, LISTED)), evidence);
    // Live mode has no messages and no opt-outs.
    for path in [LISTED, INBOUND] {
        assert_eq!(get(&server, &live, path), json!({ "data": [], "nextCursor": null }));
    }
    problem(&server.ask(&Request::get(&path).key(&live)), 404, "not_found");
    assert!(sink.wait_for(2).iter().all(|r| r.path == "/"));
    server.check();
}

/// Two accounts write to one handset from the same originator at the same time.
#[test]
fn test_replies_are_assigned_to_the_right_account() {
    let server = Server::start();
    let account = |email: &str| {
        server.stdout(&["account", "create", "--email", email]);
        server.stdout(&["key", "create", "--account", email, "--test"])
    };
    let keys = [server.key(), account("ann@example.com")];
    let silent = account("bob@example.com");
    let mut body = hello("+447700900009");
    body["blockOptout"] = json!(false);
    let mut ids = [Vec::new(), Vec::new()];
    for _ in 0..5 {
        for (key, ids) in keys.iter().zip(&mut ids) {
            ids.push(json!(server.accepted(key, &body)));
        }
    }
    for ((key, ids), other) in keys.iter().zip(&ids).zip(keys.iter().rev()) {
        let messages = wait_for_inbound(&server, key, 5);
        assert_eq!(messages.len(), 5);
        assert!(messages.iter().all(|m| ids.contains(&m["inReplyTo"])), "{messages:?}");
        let list = data(&server, key, LISTED);
        assert_eq!(list.len(), 1);
        assert!(messages.iter().any(|m| m["id"] == list[0]["inboundMessageId"]), "{list:?}");
        let path = format!("/v1/inbound-messages/{}", messages[0]["id"].as_str().unwrap());
        problem(&server.ask(&Request::get(&path).key(other)), 404, "not_found");
    }
    assert!([LISTED, INBOUND].iter().all(|p| data(&server, &silent, p).is_empty()));
    assert_eq!(server.database.number("SELECT count(*) FROM inbound_messages"), 10);
}

#[test]
fn long_replies_are_reassembled() {
    let (smsc, server, key) = live("");
    let all = [
        ("Yes, £5 [please] €\r\n@ Ünder_Δ".to_owned(), 1),
        ("Да, пожалуйста: 日本 🚀".to_owned(), 1),
        ("Three parts, €uro and all. ".repeat(15), 3),
        ("日本🚀".repeat(40), 3),
    ];
    for (text, parts) in &all {
        let before = smsc.taken_replies().len();
        smsc.reply(ANN, US, text);
        let last = wait_for_text(&server, &key, text);
        let about = ["from", "to", "text", "keyword", "inReplyTo", "mode", "complete"];
        let fields = about.map(|field| last[field].clone());
        assert_eq!(json!(fields), json!([ANN, US, text, null, null, "live", true]));
        let taken = eventually("all parts are acknowledged", || {
            Some(smsc.taken_replies()).filter(|all| all.len() == before + parts)
        });
        assert_eq!(taken[before..].concat(), *text);
    }
    // A reply to an earlier message refers to it.
    let id = server.accepted(&key, &from_us("When?"));
    server.wait_until_ended(&key, &id);
    smsc.reply(ANN, US, "Tomorrow");
    let last = wait_for_text(&server, &key, "Tomorrow");
    assert_eq!(last["inReplyTo"], id.as_str());
    // The list has pages, newest first.
    let page = get(&server, &key, "/v1/inbound-messages?limit=3");
    assert_eq!((page["data"].as_array().unwrap().len(), &page["data"][0]), (3, &last));
    let cursor = page["nextCursor"].as_str().unwrap();
    let rest = get(&server, &key, &format!("/v1/inbound-messages?limit=3&cursor={cursor}"));
    assert_eq!((rest["data"].as_array().unwrap().len(), &rest["nextCursor"]), (2, &Value::Null));
    let pages = [&page, &rest].map(|page| page["data"].as_array().unwrap().clone()).concat();
    assert_eq!(texts(&pages), texts(&wait_for_inbound(&server, &key, 5)));
    server.check();
}

#[test]
fn start_undoes_stop_and_help_changes_nothing() {
    let (smsc, server, key) = live("");
    let id = server.accepted(&key, &from_us("Hello"));
    server.wait_until_ended(&key, &id);
    let on_list = || !data(&server, &key, LISTED).is_empty();
    for (text, keyword, listed) in [
        ("Please stop", Value::Null, false),
        (" \"Stop!\" ", json!("STOP"), true),
        ("help?", json!("HELP"), true),
        ("Arrêt", json!("STOP"), true),
        ("don't start", Value::Null, true),
        ("unstop", json!("START"), false),
        ("START", json!("START"), false),
        ("Info", json!("HELP"), false),
    ] {
        smsc.reply(ANN, US, text);
        let last = wait_for_text(&server, &key, text);
        assert_eq!(last["keyword"], keyword, "{text}");
        assert_eq!((on_list(), &last["inReplyTo"]), (listed, &json!(id)), "{text}");
        let status = if listed { 403 } else { 200 };
        let mut dry = from_us("Hello");
        dry["dryRun"] = json!(true);
        assert_eq!(server.post(&key, &dry).status, status, "{text}");
    }
    // There are no automatic answers, because none are configured.
    assert_eq!(smsc.handset(ANN), ["Hello"]);
    assert_eq!(server.database.number("SELECT count(*) FROM messages"), 1);
}

#[test]
fn automatic_answers_are_sent_once() {
    let config = "[optouts]\nstop_reply = 'No more.'\nstart_reply = 'More.'\n\
                   help_reply = 'We are Shop.'\n[rates]\ndefault = '0.05'\n";
    let (smsc, server, key) = live(config);
    let words = ["STOP", "Stop.", "HELP", "START", "Start"];
    for (n, text) in words.iter().enumerate() {
        smsc.reply(ANN, US, text);
        wait_for_inbound(&server, &key, n + 1);
    }
    let received = eventually("the confirmations have arrived", || {
        Some(smsc.handset(ANN)).filter(|texts| texts.len() >= 3)
    });
    assert_eq!(received, ["No more.", "We are Shop.", "More."]);
    eventually("the confirmations are charged", || {
        (balance(&server, "ann@example.com") == ("9.8500".to_owned(), "0.0000".to_owned()))
            .then_some(())
    });
    assert_eq!(server.database.number("SELECT count(*) FROM messages"), 3);
    server.check();
}

#[test]
fn an_assigned_number_brings_its_earlier_messages() {
    let smsc = Smsc::start(&[]);
    let mut server = Server::new(&smsc.config(10));
    let key = server.live_key("ann@example.com", "0");
    let other = server.live_key("bob@example.com", "0");
    server.launch();
    server.wait_until_ready();
    smsc.reply(ANN, US, "Anybody there?");
    smsc.reply(ANN, "447700900556", "Or there?");
    eventually("both messages are stored", || (smsc.taken_replies().len() == 2).then_some(()));
    assert!([&key, &other].iter().all(|k| data(&server, k, INBOUND).is_empty()));
    assert!(server.stop().success());
    reconfigure(&server, &format!("{}{OURS}", smsc.config(10)));
    server.launch();
    server.wait_until_ready();
    let mine = wait_for_inbound(&server, &key, 1);
    assert_eq!((mine.len(), &mine[0]["text"]), (1, &json!("Anybody there?")));
    assert!(data(&server, &other, INBOUND).is_empty());
    smsc.reply(ANN, US, "At last");
    wait_for_text(&server, &key, "At last");
    assert_eq!(server.database.number("SELECT count(*) FROM inbound_messages"), 3);
}

#[test]
fn stop_to_an_unassigned_number_holds_after_assignment() {
    let smsc = Smsc::start(&[]);
    let mut server = Server::new(&smsc.config(10));
    let key = server.live_key("ann@example.com", "0");
    server.launch();
    server.wait_until_ready();
    let id = server.accepted(&key, &from_us("Hello"));
    server.wait_until_ended(&key, &id);
    for (n, (from, text)) in
        [(ANN, "STOP"), ("447700900124", "STOP"), ("447700900124", "START")].iter().enumerate()
    {
        smsc.reply(from, US, text);
        eventually("the message is stored", || (smsc.taken_replies().len() == n + 1).then_some(()));
    }
    assert!(server.stop().success());
    reconfigure(&server, &format!("{}{OURS}", smsc.config(10)));
    server.launch();
    server.wait_until_ready();
    let first = wait_for_inbound(&server, &key, 3).into_iter().find(|m| m["from"] == ANN).unwrap();
    let list = data(&server, &key, LISTED);
    assert_eq!((list.len(), &list[0]["inboundMessageId"]), (1, &first["id"]), "{list:?}");
    problem(&server.post(&key, &from_us("Again")), 403, "recipient_opted_out");
}

fn reconfigure(server: &Server, config: &str) {
    std::fs::write(server.home.path().join("heliograph.toml"), config).unwrap();
}

#[test]
fn the_smsc_keeps_a_reply_while_the_database_is_down() {
    let (smsc, server, key) = live("");
    smsc.reply(ANN, US, "Before");
    wait_for_inbound(&server, &key, 1);
    server.database.while_unavailable(|| {
        smsc.reply(ANN, US, "Meanwhile");
        eventually("the reply is rejected", || {
            server.log().contains("failed to commit carrier events").then_some(())
        });
        assert_eq!(smsc.taken_replies(), ["Before"]);
    });
    wait_for_inbound(&server, &key, 2);
    smsc.reply(ANN, US, "After");
    assert_eq!(texts(&wait_for_inbound(&server, &key, 3)), ["After", "Before", "Meanwhile"]);
    eventually("each reply is accepted once", || {
        (smsc.taken_replies() == ["Before", "Meanwhile", "After"]).then_some(())
    });
}
