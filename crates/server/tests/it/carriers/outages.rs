//! Outages of the SMSC, and lost responses.

use crate::support::api::hello;
use crate::support::outages::{delivered_once, send_all};
use crate::support::server::Server;
use crate::support::smsc::Smsc;
use crate::support::wait::eventually;
use serde_json::{Value, json};

#[test]
fn messages_wait_while_the_smsc_is_down() {
    let mut smsc = Smsc::start(&[]);
    let server = Server::with(&smsc.config(10));
    let key = server.live_key("ann@example.com", "0");
    let mut ids = send_all(&server, &key, 100..103);
    ids.iter().for_each(|id| drop(server.wait_until_ended(&key, id)));
    smsc.kill();
    eventually("the server notices the lost connection", || {
        server.log().contains("bind lost").then_some(())
    });
    let waiting = send_all(&server, &key, 200..260);
    // The messages stay queued while there is no SMSC.
    for id in &waiting {
        let message = server.message(&key, id).json();
        assert_eq!((&message["status"], &message["inDoubt"]), (&json!("QUEUED"), &json!(false)));
    }
    assert_eq!(server.database.number("SELECT count(*) FROM queue"), 60);
    smsc.restart();
    ids.extend(waiting);
    delivered_once(&server, &smsc, &key, &ids);
}

/// The SMSC accepts two messages, and closes the connection within its response to the second.
#[test]
fn a_lost_response_marks_a_possible_duplicate() {
    let mut smsc = Smsc::start(&["--disconnect-every", "2"]);
    let server = Server::with(&format!("[rates]\ndefault = '0.04'\n{}", smsc.config(10)));
    let key = server.live_key("ann@example.com", "1.00");
    let flags =
        |m: &Value| ["status", "inDoubt", "possibleDuplicate", "price"].map(|f| m[f].clone());
    let first = server.wait_until_ended(&key, &server.accepted(&key, &hello("447700900123")));
    assert_eq!(flags(&first), [json!("DELIVERED"), json!(false), json!(false), json!("0.0400")]);
    let second = server.accepted(&key, &hello("447700900124"));
    eventually("both messages are submitted", || (smsc.accepted().len() == 2).then_some(()));
    smsc.kill();
    let doubt = eventually("the second message is in doubt", || {
        let message = server.message(&key, &second).json();
        (message["inDoubt"] == true).then_some(message)
    });
    assert_eq!(flags(&doubt), [json!("QUEUED"), json!(true), json!(true), json!("0.0400")]);
    smsc.restart();
    let last = server.wait_until_ended(&key, &second);
    assert_eq!(flags(&last), [json!("DELIVERED"), json!(false), json!(true), json!("0.0400")]);
    let numbers =
        smsc.journal().into_iter().filter(|e| e.event == "accepted").map(|e| e.destination);
    let numbers: Vec<_> = numbers.collect();
    assert_eq!(numbers, ["447700900123", "447700900124", "447700900124"]);
    let accounts = server.stdout(&["account", "list"]);
    assert!(accounts.contains("ann@example.com\t0.9200 EUR\t0.0000 EUR"), "{accounts}");
    server.check();
}
