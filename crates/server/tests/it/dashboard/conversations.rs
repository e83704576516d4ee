//! Conversations: their order, replies and answers.

use crate::support::browser::{Browser, Page, attribute, tags};
use crate::support::server::Server;
use crate::support::wait::eventually;
use serde_json::{Value, json};

const ANN: &str = "447700900123";
const BOB: &str = "447700900456";

/// Returns the body of a message that can be replied to.
fn hello(recipient: &str) -> Value {
    json!({ "originator": "447700900555", "recipient": recipient, "text": "Hello" })
}

/// Returns the numbers in the list.
fn numbers(page: &Page) -> Vec<String> {
    let ids = tags(&page.text(), "li").into_iter().filter_map(|item| attribute(&item, "id"));
    ids.filter_map(|id| id.strip_prefix("p-").map(str::to_owned)).collect()
}

/// Sends a text from the virtual handset.
fn reply(browser: &Browser<'_>, number: &str, text: &str) {
    let phone = browser.open(&format!("/phone/{number}"));
    let sent = browser.send(&phone, &format!("/phone/{number}/reply"), &[("reply", text)]);
    assert_eq!(sent.response.status, 200, "{}", sent.text());
}

#[test]
fn the_latest_conversation_comes_first() {
    let server = Server::start();
    let (key, browser) = (server.key(), Browser::of_operator(&server));
    assert!(browser.open("/conversations").contains("No conversations yet"));
    for number in [ANN, BOB] {
        server.wait_until_ended(&key, &server.accepted(&key, &hello(number)));
    }
    // Messages alone are no conversation.
    assert!(browser.open("/conversations").contains("No conversations yet"));
    reply(&browser, BOB, "Here I am");
    eventually("Bob's conversation is in the list", || {
        (numbers(&browser.open("/conversations")) == [BOB]).then_some(())
    });
    reply(&browser, ANN, "I am here, too");
    let page = eventually("Ann's conversation is the latest", || {
        Some(browser.open("/conversations")).filter(|page| numbers(page) == [ANN, BOB])
    });
    assert!(page.contains("I am here, too") && page.contains("Unread"), "{}", page.text());
    assert_eq!(numbers(&browser.open("/conversations?number=0456")), [BOB]);
    assert_eq!(numbers(&browser.open("/conversations?number=999")), [""; 0]);
    let found = browser.open("/conversations?number=%2B44+7700+900456");
    assert_eq!(found.path, format!("/conversations/{BOB}"));
    let stranger = browser.open("/conversations/447700900999");
    assert!(stranger.contains("No messages with this number yet"), "{}", stranger.text());
    assert_eq!(browser.get("/conversations/nobody").status, 404);
    // Other accounts do not see the conversations.
    server.stdout(&["account", "create", "--email", "ann@example.com"]);
    let other = Browser::of(&server, "ann@example.com");
    assert!(other.open("/conversations").contains("No conversations yet"));
    assert!(!other.open(&format!("/conversations/{ANN}")).contains("I am here, too"));
}

#[test]
fn a_reply_can_be_answered_once() {
    let server = Server::start();
    let (key, browser) = (server.key(), Browser::of_operator(&server));
    server.wait_until_ended(&key, &server.accepted(&key, &hello(ANN)));
    let path = format!("/conversations/{ANN}");
    let before = browser.open(&path);
    assert!(
        before.contains("Replying as +447700900555") && !before.contains("Recipient: "),
        "{}",
        before.text()
    );
    reply(&browser, ANN, "Is it <b>open</b>?");
    let page = eventually("the reply is on the page", || {
        Some(browser.open(&path))
            .filter(|page| page.contains("Recipient: </span>Is it <b>open</b>?"))
    });
    let (action, fields) = (format!("{path}/reply"), [("text", "Until nine ✓")]);
    for _ in 0..2 {
        let answered = browser.send(&page, &action, &fields);
        assert_eq!((answered.path.as_str(), answered.response.status), (path.as_str(), 200));
        assert_eq!(answered.text().matches("You: </span>Until nine ✓").count(), 1);
    }
    let all = server.ask(&crate::support::http::Request::get("/v1/messages").key(&key)).json();
    let (newest, count) = (&all["data"][0], all["data"].as_array().unwrap().len());
    assert_eq!((newest["originator"].as_str(), count), (Some("447700900555"), 2), "{all}");
    // The same form with another text is rejected, and does not repeat the first message.
    let other = browser.send(&page, &action, &[("text", "Until ten")]);
    assert!(
        other.response.status == 422 && other.contains("This form was already submitted"),
        "{}",
        other.text()
    );
    assert!(other.contains(">Until ten</textarea>"));
    let empty = browser.send(&page, &action, &[("text", "  ")]);
    assert!(empty.response.status == 422 && empty.contains("The text must not be empty."));
    let nobody = browser.send(&page, &action, &[("from", "")]);
    assert_eq!(nobody.response.status, 422);
}

#[test]
fn a_recipient_who_opted_out_cannot_be_answered() {
    let server = Server::start();
    let (key, browser) = (server.key(), Browser::of_operator(&server));
    server.wait_until_ended(&key, &server.accepted(&key, &hello(ANN)));
    let path = format!("/conversations/{ANN}");
    let page = browser.open(&path);
    reply(&browser, ANN, "stop");
    let out = eventually("the recipient has opted out", || {
        // The messages are read before the opt-out, so a page may show one without the other.
        Some(browser.open(&path)).filter(|page| {
            page.contains("This recipient has opted out") && page.contains("Keyword STOP")
        })
    });
    assert!(!out.text().contains(&format!("{path}/reply\" class")), "{}", out.text());
    // A form that was opened before is rejected with a reason.
    let refused = browser.send(&page, &format!("{path}/reply"), &[("text", "But why?")]);
    assert!(
        refused.response.status == 422
            && refused.contains("opted out (STOP), so the message was not sent"),
        "{}",
        refused.text()
    );
}

#[test]
fn a_conversation_has_pages() {
    let server = Server::start();
    let (key, browser) = (server.key(), Browser::of_operator(&server));
    let mut texts: Vec<_> = (0..102).map(|n| format!("Text number {n:03}")).collect();
    for text in &texts {
        let mut body = hello(ANN);
        body["text"] = text.as_str().into();
        server.accepted(&key, &body);
    }
    let texts_of = |page: &Page| {
        let html = page.text();
        let all = html.split("You: </span>").skip(1);
        all.map(|rest| rest.split('<').next().unwrap().to_owned()).collect::<Vec<_>>()
    };
    let page = browser.open(&format!("/conversations/{ANN}"));
    let newest = texts.split_off(2);
    assert_eq!(texts_of(&page), newest);
    let html = page.text();
    let earlier = html.split("<a ").find(|link| link.contains(">Earlier messages</a>")).unwrap();
    let earlier = browser.open(&attribute(earlier, "href").unwrap());
    assert_eq!(texts_of(&earlier), texts);
    assert!(earlier.contains("Back to the latest"));
}
