//! Conversations: the latest first, with replies that come and answers that go.

use crate::browser::{Browser, Page, attribute, tags};
use crate::database::{Engine, each_engine};
use crate::patience::eventually;
use crate::send_sms::hello;
use crate::server::Server;

each_engine!(dashboard_conversations: whoever_was_heard_or_written_to_last_comes_first
    a_reply_arrives_and_is_answered who_opted_out_is_not_answered a_talk_goes_back_page_by_page);

const ANN: &str = "447700900123";
const BOB: &str = "447700900456";

/// The numbers in the list.
fn people(page: &Page) -> Vec<String> {
    let ids = tags(&page.text(), "li").into_iter().filter_map(|item| attribute(&item, "id"));
    ids.filter_map(|id| id.strip_prefix("p-").map(str::to_owned)).collect()
}

/// Types a text on a handset.
fn reply(browser: &Browser<'_>, number: &str, text: &str) {
    let phone = browser.open(&format!("/phone/{number}"));
    let sent = browser.send(&phone, &format!("/phone/{number}/reply"), &[("text", text)]);
    assert_eq!(sent.answer.status, 200, "{}", sent.text());
}

fn whoever_was_heard_or_written_to_last_comes_first(engine: Engine) {
    let server = Server::start(engine);
    let (key, browser) = (server.key(), Browser::greeted(&server));
    assert!(browser.open("/conversations").says("Nobody has written yet"));
    for number in [ANN, BOB] {
        server.ended(&key, &server.accepted(&key, &hello(number)));
    }
    assert_eq!(people(&browser.open("/conversations")), [BOB, ANN]);
    reply(&browser, ANN, "I am here, too");
    let page = eventually("Ann is the latest", || {
        Some(browser.open("/conversations")).filter(|page| people(page) == [ANN, BOB])
    });
    assert!(page.says("I am here, too") && page.says("You: "), "{}", page.text());
    assert_eq!(people(&browser.open("/conversations?number=0456")), [BOB]);
    assert_eq!(people(&browser.open("/conversations?number=999")), [""; 0]);
    let found = browser.open("/conversations?number=%2B44+7700+900456");
    assert_eq!(found.path, format!("/conversations/{BOB}"));
    let stranger = browser.open("/conversations/447700900999");
    assert!(stranger.says("Nothing was said with this number yet"), "{}", stranger.text());
    assert_eq!(browser.get("/conversations/nobody").status, 404);
    // Nobody else sees them.
    server.told(&["account", "create", "--email", "ann@example.com"]);
    let other = Browser::of(&server, "ann@example.com");
    assert!(other.open("/conversations").says("Nobody has written yet"));
    assert!(!other.open(&format!("/conversations/{ANN}")).says("I am here, too"));
}

fn a_reply_arrives_and_is_answered(engine: Engine) {
    let server = Server::start(engine);
    let (key, browser) = (server.key(), Browser::greeted(&server));
    let mut first = hello(ANN);
    first["originator"] = "Shop".into();
    server.ended(&key, &server.accepted(&key, &first));
    let path = format!("/conversations/{ANN}");
    let before = browser.open(&path);
    assert!(before.says("as Shop") && !before.says("They wrote"), "{}", before.text());
    reply(&browser, ANN, "Is it <b>open</b>?");
    let page = eventually("the reply is there", || {
        Some(browser.open(&path)).filter(|page| page.says("They wrote: </span>Is it <b>open</b>?"))
    });
    let (action, fields) = (format!("{path}/reply"), [("text", "Until nine ✓")]);
    for _ in 0..2 {
        let answered = browser.send(&page, &action, &fields);
        assert_eq!((answered.path.as_str(), answered.answer.status), (path.as_str(), 200));
        assert_eq!(answered.text().matches("You wrote: </span>Until nine ✓").count(), 1);
    }
    let all = server.ask(&crate::http::Request::get("/v1/messages").key(&key)).json();
    let (newest, count) = (&all["data"][0], all["data"].as_array().unwrap().len());
    assert_eq!((newest["originator"].as_str(), count), (Some("Shop"), 2), "{all}");
    // The same form with other words is another message, or none: never the first one in silence.
    let other = browser.send(&page, &action, &[("text", "Until ten")]);
    assert!(
        other.answer.status == 422 && other.says("This form was sent before"),
        "{}",
        other.text()
    );
    assert!(other.says(">Until ten</textarea>"));
    let empty = browser.send(&page, &action, &[("text", "  ")]);
    assert!(empty.answer.status == 422 && empty.says("The text must hold at least one character."));
    let nobody = browser.send(&page, &action, &[("from", "")]);
    assert_eq!(nobody.answer.status, 422);
}

fn who_opted_out_is_not_answered(engine: Engine) {
    let server = Server::start(engine);
    let (key, browser) = (server.key(), Browser::greeted(&server));
    server.ended(&key, &server.accepted(&key, &hello(ANN)));
    let path = format!("/conversations/{ANN}");
    let page = browser.open(&path);
    reply(&browser, ANN, "stop");
    let out = eventually("they are out", || {
        Some(browser.open(&path)).filter(|page| page.says("This person has opted out"))
    });
    assert!(
        out.says("understood as STOP") && !out.text().contains(&format!("{path}/reply\" class")),
        "{}",
        out.text()
    );
    // A form that was open before is refused in words.
    let refused = browser.send(&page, &format!("{path}/reply"), &[("text", "But why?")]);
    assert!(
        refused.answer.status == 422 && refused.says("opted out (STOP), so nothing was sent"),
        "{}",
        refused.text()
    );
}

fn a_talk_goes_back_page_by_page(engine: Engine) {
    let server = Server::start(engine);
    let (key, browser) = (server.key(), Browser::greeted(&server));
    let mut texts: Vec<_> = (0..102).map(|n| format!("Text number {n:03}")).collect();
    for text in &texts {
        let mut body = hello(ANN);
        body["text"] = text.as_str().into();
        server.accepted(&key, &body);
    }
    let said = |page: &Page| {
        let html = page.text();
        let all = html.split("You wrote: </span>").skip(1);
        all.map(|rest| rest.split('<').next().unwrap().to_owned()).collect::<Vec<_>>()
    };
    let page = browser.open(&format!("/conversations/{ANN}"));
    let newest = texts.split_off(2);
    assert_eq!(said(&page), newest);
    let html = page.text();
    let earlier = html.split("<a ").find(|link| link.contains(">Earlier</a>")).unwrap();
    let earlier = browser.open(&attribute(earlier, "href").unwrap());
    assert_eq!(said(&earlier), texts);
    assert!(earlier.says("Back to the latest"));
}
