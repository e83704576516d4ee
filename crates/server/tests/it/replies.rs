//! Replies: what people write arrives whole, once, with whose it is, and their one word is obeyed.

use crate::database::{Engine, each_engine};
use crate::http::Request;
use crate::live::balance;
use crate::patience::eventually;
use crate::send_sms::hello;
use crate::server::Server;
use crate::sink::Sink;
use crate::smsc::Smsc;
use crate::webhooks;
use crate::wrong_input::problem;
use serde_json::{Value, json};

each_engine!(replies: a_stop_of_a_virtual_handset_is_obeyed_in_test_mode_only
    test_replies_find_their_account replies_arrive_whole start_undoes_stop_and_help_only_tells
    a_stop_that_takes_effect_is_confirmed_once a_number_brings_what_was_written_to_it_before
    a_stop_to_a_number_of_nobody_holds_for_who_gets_it
    the_smsc_keeps_a_reply_while_the_database_is_away);

const DEMO: &str = "demo@localhost";
const ANN: &str = "447700900123";
const US: &str = "447700900555";
const OURS: &str = "[[numbers]]\nnumber = '447700900555'\naccount = 'ann@example.com'\n";
const LISTED: &str = "/v1/optout-lists/default/numbers";
const INBOUND: &str = "/v1/inbound-messages";

pub(crate) fn get(server: &Server, key: &str, path: &str) -> Value {
    let answer = server.ask(&Request::get(path).key(key));
    assert_eq!(answer.status, 200, "{path}: {}", answer.text());
    answer.json()
}

/// What a list at this address shows.
pub(crate) fn data(server: &Server, key: &str, path: &str) -> Vec<Value> {
    get(server, key, path)["data"].as_array().unwrap().clone()
}

/// What has come in as soon as there is so much of it; what came in the same millisecond in any order.
fn heard(server: &Server, key: &str, count: usize) -> Vec<Value> {
    eventually(&format!("{count} messages came in"), || {
        Some(data(server, key, INBOUND)).filter(|all| all.len() >= count)
    })
}

/// The one that says this, as soon as it has come in.
fn heard_saying(server: &Server, key: &str, text: &str) -> Value {
    eventually(&format!("it came in: {text}"), || {
        data(server, key, INBOUND).into_iter().find(|m| m["text"] == text)
    })
}

fn texts(messages: &[Value]) -> Vec<String> {
    let text = |m: &Value| m["text"].as_str().unwrap().to_owned();
    let mut texts: Vec<_> = messages.iter().map(text).collect();
    texts.sort_unstable();
    texts
}

/// From our number, as only a configured one can be written to.
fn from_us(text: &str) -> Value {
    json!({ "originator": US, "recipient": ANN, "text": text })
}

/// A carrier, and a server whose account Ann has this number of ours.
fn live(engine: Engine, more: &str) -> (Smsc, Server, String) {
    let smsc = Smsc::start(&[]);
    let private = "[webhooks]\nallow_private = ['127.0.0.1/32']\n";
    let mut server = Server::new(engine, &format!("{}{OURS}{private}{more}", smsc.config(10)));
    let key = server.live_key("ann@example.com", "10.00");
    server.launch();
    server.await_ready();
    (smsc, server, key)
}

fn a_stop_of_a_virtual_handset_is_obeyed_in_test_mode_only(engine: Engine) {
    let (server, sink) = (webhooks::server(engine), Sink::start());
    let key = server.key();
    let live = server.told(&["key", "create", "--account", DEMO, "--live"]);
    webhooks::add(&server, &sink.url("/"), &["--events", "message.received"]);
    webhooks::add(&server, &sink.url("/live"), &["--live", "--events", "message.received"]);
    let id = server.accepted(&key, &hello("+447700900009"));
    let event = sink.has(1)[0].json();
    let shown = heard(&server, &key, 1).remove(0);
    let field = |name: &str| shown[name].clone();
    let expected = json!({
        "id": field("id"), "from": "447700900009", "to": "Shop", "text": "STOP",
        "receivedAt": field("receivedAt"), "inReplyTo": id, "keyword": "STOP", "mode": "test",
        "complete": true,
    });
    assert_eq!(shown, expected);
    let path = format!("/v1/inbound-messages/{}", shown["id"].as_str().unwrap());
    assert_eq!(get(&server, &key, &path), expected);
    let mut told = expected;
    told["textTruncated"] = json!(false);
    assert_eq!((&event["type"], &event["data"]), (&json!("message.received"), &told));
    assert_eq!(event["timestamp"], shown["receivedAt"]);
    let evidence = json!([{
        "number": "447700900009", "source": "reply", "inboundMessageId": shown["id"],
        "originator": "Shop", "note": null, "createdAt": shown["receivedAt"],
    }]);
    assert_eq!(get(&server, &key, LISTED), json!({ "data": evidence, "nextCursor": null }));
    problem(&server.post(&key, &hello("+447700900009")), 403, "recipient_opted_out");
    let mut anyway = hello("+447700900009");
    anyway["blockOptout"] = json!(false);
    let anyway = server.accepted(&key, &anyway);
    assert_eq!(server.ended(&key, &anyway)["status"], "DELIVERED");
    // A second STOP is told, and the first one stays the evidence.
    let heard = heard(&server, &key, 2);
    assert!(heard.iter().any(|m| m["inReplyTo"] == anyway.as_str()), "{heard:?}");
    assert_eq!(json!(data(&server, &key, LISTED)), evidence);
    // The live world has heard nothing of it.
    for path in [LISTED, INBOUND] {
        assert_eq!(get(&server, &live, path), json!({ "data": [], "nextCursor": null }));
    }
    problem(&server.ask(&Request::get(&path).key(&live)), 404, "not_found");
    assert!(sink.has(2).iter().all(|r| r.path == "/"));
    server.check();
}

/// One originator, one handset, and two who write to it at the same time.
fn test_replies_find_their_account(engine: Engine) {
    let server = Server::start(engine);
    let account = |email: &str| {
        server.told(&["account", "create", "--email", email]);
        server.told(&["key", "create", "--account", email, "--test"])
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
        let heard = heard(&server, key, 5);
        assert_eq!(heard.len(), 5);
        assert!(heard.iter().all(|m| ids.contains(&m["inReplyTo"])), "{heard:?}");
        let list = data(&server, key, LISTED);
        assert_eq!(list.len(), 1);
        assert!(heard.iter().any(|m| m["id"] == list[0]["inboundMessageId"]), "{list:?}");
        let path = format!("/v1/inbound-messages/{}", heard[0]["id"].as_str().unwrap());
        problem(&server.ask(&Request::get(&path).key(other)), 404, "not_found");
    }
    assert!([LISTED, INBOUND].iter().all(|p| data(&server, &silent, p).is_empty()));
    assert_eq!(server.database.number("SELECT count(*) FROM inbound_messages"), 10);
}

fn replies_arrive_whole(engine: Engine) {
    let (smsc, server, key) = live(engine, "");
    let all = [
        ("Yes, £5 [please] €\r\n@ Ünder_Δ".to_owned(), 1),
        ("Да, пожалуйста: 日本 🚀".to_owned(), 1),
        ("Three parts, €uro and all. ".repeat(15), 3),
        ("日本🚀".repeat(40), 3),
    ];
    for (text, parts) in &all {
        let before = smsc.taken_replies().len();
        smsc.reply(ANN, US, text);
        let last = heard_saying(&server, &key, text);
        let about = ["from", "to", "text", "keyword", "inReplyTo", "mode", "complete"];
        let told = about.map(|field| last[field].clone());
        assert_eq!(json!(told), json!([ANN, US, text, null, null, "live", true]));
        let taken = eventually("all parts are acknowledged", || {
            Some(smsc.taken_replies()).filter(|all| all.len() == before + parts)
        });
        assert_eq!(taken[before..].concat(), *text);
    }
    // To somebody whom we have written to: what it answers is known.
    let id = server.accepted(&key, &from_us("When?"));
    server.ended(&key, &id);
    smsc.reply(ANN, US, "Tomorrow");
    let last = heard_saying(&server, &key, "Tomorrow");
    assert_eq!(last["inReplyTo"], id.as_str());
    // The newest first, page by page.
    let page = get(&server, &key, "/v1/inbound-messages?limit=3");
    assert_eq!((page["data"].as_array().unwrap().len(), &page["data"][0]), (3, &last));
    let cursor = page["nextCursor"].as_str().unwrap();
    let rest = get(&server, &key, &format!("/v1/inbound-messages?limit=3&cursor={cursor}"));
    assert_eq!((rest["data"].as_array().unwrap().len(), &rest["nextCursor"]), (2, &Value::Null));
    let pages = [&page, &rest].map(|page| page["data"].as_array().unwrap().clone()).concat();
    assert_eq!(texts(&pages), texts(&heard(&server, &key, 5)));
    server.check();
}

fn start_undoes_stop_and_help_only_tells(engine: Engine) {
    let (smsc, server, key) = live(engine, "");
    let id = server.accepted(&key, &from_us("Hello"));
    server.ended(&key, &id);
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
        let last = heard_saying(&server, &key, text);
        assert_eq!(last["keyword"], keyword, "{text}");
        assert_eq!((on_list(), &last["inReplyTo"]), (listed, &json!(id)), "{text}");
        let status = if listed { 403 } else { 200 };
        let mut dry = from_us("Hello");
        dry["dryRun"] = json!(true);
        assert_eq!(server.post(&key, &dry).status, status, "{text}");
    }
    // Nobody was answered: nothing was set up.
    assert_eq!(smsc.handset(ANN), ["Hello"]);
    assert_eq!(server.database.number("SELECT count(*) FROM messages"), 1);
}

fn a_stop_that_takes_effect_is_confirmed_once(engine: Engine) {
    let answers = "[optouts]\nstop_reply = 'No more.'\nstart_reply = 'More.'\n\
                   help_reply = 'We are Shop.'\n[rates]\ndefault = '0.05'\n";
    let (smsc, server, key) = live(engine, answers);
    let said = ["STOP", "Stop.", "HELP", "START", "Start"];
    for (n, text) in said.iter().enumerate() {
        smsc.reply(ANN, US, text);
        heard(&server, &key, n + 1);
    }
    let shown = eventually("the confirmations are there", || {
        Some(smsc.handset(ANN)).filter(|texts| texts.len() >= 3)
    });
    assert_eq!(shown, ["No more.", "We are Shop.", "More."]);
    eventually("they are charged", || {
        (balance(&server, "ann@example.com") == ("9.8500".to_owned(), "0.0000".to_owned()))
            .then_some(())
    });
    assert_eq!(server.database.number("SELECT count(*) FROM messages"), 3);
    server.check();
}

fn a_number_brings_what_was_written_to_it_before(engine: Engine) {
    let smsc = Smsc::start(&[]);
    let mut server = Server::new(engine, &smsc.config(10));
    let key = server.live_key("ann@example.com", "0");
    let other = server.live_key("bob@example.com", "0");
    server.launch();
    server.await_ready();
    smsc.reply(ANN, US, "Anybody there?");
    smsc.reply(ANN, "447700900556", "Or there?");
    eventually("both are kept", || (smsc.taken_replies().len() == 2).then_some(()));
    assert!([&key, &other].iter().all(|k| data(&server, k, INBOUND).is_empty()));
    assert!(server.stop().success());
    reconfigure(&server, &format!("{}{OURS}", smsc.config(10)));
    server.launch();
    server.await_ready();
    let mine = heard(&server, &key, 1);
    assert_eq!((mine.len(), &mine[0]["text"]), (1, &json!("Anybody there?")));
    assert!(data(&server, &other, INBOUND).is_empty());
    smsc.reply(ANN, US, "At last");
    heard_saying(&server, &key, "At last");
    assert_eq!(server.database.number("SELECT count(*) FROM inbound_messages"), 3);
}

fn a_stop_to_a_number_of_nobody_holds_for_who_gets_it(engine: Engine) {
    let smsc = Smsc::start(&[]);
    let mut server = Server::new(engine, &smsc.config(10));
    let key = server.live_key("ann@example.com", "0");
    server.launch();
    server.await_ready();
    let id = server.accepted(&key, &from_us("Hello"));
    server.ended(&key, &id);
    for (n, (from, text)) in
        [(ANN, "STOP"), ("447700900124", "STOP"), ("447700900124", "START")].iter().enumerate()
    {
        smsc.reply(from, US, text);
        eventually("it is kept", || (smsc.taken_replies().len() == n + 1).then_some(()));
    }
    assert!(server.stop().success());
    reconfigure(&server, &format!("{}{OURS}", smsc.config(10)));
    server.launch();
    server.await_ready();
    let first = heard(&server, &key, 3).into_iter().find(|m| m["from"] == ANN).unwrap();
    let list = data(&server, &key, LISTED);
    assert_eq!((list.len(), &list[0]["inboundMessageId"]), (1, &first["id"]), "{list:?}");
    problem(&server.post(&key, &from_us("Again")), 403, "recipient_opted_out");
}

fn reconfigure(server: &Server, config: &str) {
    std::fs::write(server.home.path().join("heliograph.toml"), config).unwrap();
}

fn the_smsc_keeps_a_reply_while_the_database_is_away(engine: Engine) {
    let (smsc, server, key) = live(engine, "");
    smsc.reply(ANN, US, "Before");
    heard(&server, &key, 1);
    server.database.away(|| {
        smsc.reply(ANN, US, "Meanwhile");
        eventually("it is declined", || server.log().contains("news has to wait").then_some(()));
        assert_eq!(smsc.taken_replies(), ["Before"]);
    });
    heard(&server, &key, 2);
    smsc.reply(ANN, US, "After");
    assert_eq!(texts(&heard(&server, &key, 3)), ["After", "Before", "Meanwhile"]);
    eventually("each is taken once", || {
        (smsc.taken_replies() == ["Before", "Meanwhile", "After"]).then_some(())
    });
}
