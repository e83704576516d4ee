//! The composer: it counts, asks before it costs, and sends once.

use crate::browser::{Browser, Page, form};
use crate::database::{Engine, each_engine};
use crate::http::Request;
use crate::live::{balance, pretending};
use crate::server::Server;

each_engine!(dashboard_send: a_text_is_counted what_forces_ucs2_is_named_and_can_be_said_plainly
    a_test_message_is_sent_once what_is_wrong_stands_beside_its_field a_live_message_is_sent_at_a_price_that_was_seen
    who_opted_out_is_written_to_only_on_purpose who_looks_on_sends_nothing);

const ANN: &str = "+447700900123";
const OWNER: &str = "ann@example.com";

fn count(browser: &Browser<'_>, page: &Page, text: &str) -> String {
    let csrf = page.csrf();
    let fields = [("csrf", csrf.as_str()), ("recipient", ANN), ("text", text)];
    let request = form("/send/count", &fields).header("Origin", "http://test");
    let answer = browser.ask(request.header("HX-Request", "true"));
    assert_eq!(answer.status, 200, "{}", answer.text());
    assert!(!answer.text().contains("<html"), "only a piece of the page");
    answer.text()
}

fn a_text_is_counted(engine: Engine) {
    let server = Server::start(engine);
    let browser = Browser::greeted(&server);
    let page = browser.open("/send");
    for (text, words) in [
        ("", &["GSM_7", ">0<", "0 places taken, 160 left."][..]),
        ("Hello", &["GSM_7", ">5<", "5 places taken, 155 left.", "Free"]),
        ("1 € [x]", &[">7<", "10 places taken, 150 left.", "3 of [ ]", "count twice"]),
        (&"a".repeat(161), &[">161<", ">2<", "145 left of the last part."]),
        ("Привет", &["UCS_2", ">6<", "64 left.", "U+041F"]),
        ("👋", &["UCS_2", ">1<", "2 places taken", "1 emoji or rare signs"]),
    ] {
        let counted = count(&browser, &page, text);
        for words in words {
            assert!(counted.contains(words), "{text}: {words}: {counted}");
        }
    }
    // Who has no script gets the whole page, with all that was typed.
    let whole =
        browser.send(&page, "/send", &[("recipient", ANN), ("originator", "Shop"), ("text", "")]);
    let fields = [("recipient", ANN), ("originator", "Sho"), ("text", "Hello")];
    let csrf = whole.csrf();
    let counted = browser.post("/send/count", &[&[("csrf", csrf.as_str())], &fields[..]].concat());
    assert_eq!(counted.status, 200);
    assert!(counted.text().contains("value=\"Sho\"") && counted.text().contains("155 left."));
}

fn what_forces_ucs2_is_named_and_can_be_said_plainly(engine: Engine) {
    let server = Server::start(engine);
    let browser = Browser::greeted(&server);
    let page = browser.open("/send");
    let counted = count(&browser, &page, "It’s “open” – <now>… 😀");
    for words in [
        "<mark class=\"ucs2\" title=\"right single quotation mark (U+2019)\">’</mark>",
        "left double quotation mark (U+201C)",
        "en dash (U+2013)",
        "ellipsis (U+2026)",
        "U+1F600",
        "→ ...",
        "a part holds 70 characters and not 160",
        "&#60;now&#62;",
        "/send/plain",
    ] {
        assert!(counted.contains(words), "{words}: {counted}");
    }
    let long = format!("“{}”", "a".repeat(100));
    assert!(count(&browser, &page, &long).contains("it would be 1 part and not 2"));
    let csrf = page.csrf();
    let fields = [("csrf", csrf.as_str()), ("recipient", ANN), ("text", "It’s\u{a0}“open”…")];
    let plain = browser.post("/send/plain", &fields).text();
    assert!(
        plain.contains(">It&#39;s &#34;open&#34;...</textarea>") && plain.contains("GSM_7"),
        "{plain}"
    );
    assert!(!count(&browser, &page, "Привет").contains("/send/plain"));
}

fn a_test_message_is_sent_once(engine: Engine) {
    let server = Server::start(engine);
    let browser = Browser::greeted(&server);
    let page = browser.open("/send?recipient=%2B447700900123");
    let fields = [
        ("originator", "Shop"),
        ("text", "One\r\nmore"),
        ("reference", "order 7"),
        ("validity", "3600"),
        ("maxParts", "1"),
    ];
    for _ in 0..2 {
        let sent = browser.send(&page, "/send", &fields);
        assert_eq!(sent.path, "/phone/447700900123", "{}", sent.text());
        assert!(sent.says("One\nmore"));
    }
    let all = server.ask(&Request::get("/v1/messages").key(&server.key())).json();
    let message = &all["data"][0];
    assert_eq!(all["data"].as_array().unwrap().len(), 1);
    assert_eq!(
        (message["text"].as_str(), message["reference"].as_str()),
        (Some("One\nmore"), Some("order 7"))
    );
    assert!(browser.open("/send").says("value=\"Shop\""), "the last sender is proposed");
    let other = browser.send(&page, "/send", &[("originator", "Shop"), ("text", "Something else")]);
    assert!(
        other.answer.status == 422 && other.says("This form was sent before"),
        "{}",
        other.text()
    );
    let again = browser.send(&other, "/send", &[]);
    assert_eq!(again.path, "/phone/447700900123", "{}", again.text());
}

fn what_is_wrong_stands_beside_its_field(engine: Engine) {
    let server = Server::start(engine);
    let browser = Browser::greeted(&server);
    let page = browser.open("/send");
    let good = [("recipient", ANN), ("originator", "Shop"), ("text", "Hello")];
    for (field, value, words) in [
        ("recipient", "07700900123", "The country code is missing"),
        ("recipient", "", "The number is empty"),
        ("originator", "Much too long a name", "The name is too long"),
        ("originator", "", "An originator can't be blank"),
        ("text", " ", "The text must hold at least one character."),
        ("reference", &"r".repeat(256), "This must be at most 255 characters."),
        ("validity", "59", "This must be from 60 to 259200."),
        ("validity", "soon", "This must be from 60 to 259200."),
        ("maxParts", "256", "This must be from 1 to 255."),
    ] {
        let fields: Vec<_> = good.iter().filter(|(name, _)| *name != field).copied().collect();
        let sent = browser.send(&page, "/send", &[&fields[..], &[(field, value)]].concat());
        assert_eq!(sent.answer.status, 422, "{field}: {value}");
        assert!(
            sent.says(words) && sent.says(&format!("id=\"{field}-error\"")),
            "{field}: {value}: {}",
            sent.text()
        );
        assert!(field == "text" || sent.says(">Hello</textarea>"), "what was typed stays");
    }
    let long = "a".repeat(161);
    let sent = browser.send(
        &page,
        "/send",
        &[&good[..2], &[("text", long.as_str()), ("maxParts", "1")]].concat(),
    );
    assert!(sent.says("The text needs 2 parts, 1 are allowed."), "{}", sent.text());
    let all =
        browser.send(&page, "/send", &[("recipient", "x"), ("originator", "<"), ("text", "")]);
    assert_eq!(all.text().matches("class=\"wrong\"").count(), 3, "all at once");
    assert_eq!(browser.post("/send", &good).status, 403, "no form of ours");
    assert_eq!(server.stored(), 0);
}

fn a_live_message_is_sent_at_a_price_that_was_seen(engine: Engine) {
    let server = pretending(engine);
    let key = server.live_key(OWNER, "0.06");
    let browser = Browser::of(&server, OWNER);
    browser.send(&browser.open("/send"), "/mode", &[("mode", "live")]);
    let page = browser.open("/send");
    let fields = [("recipient", ANN), ("originator", "Shop"), ("text", "Your <code> is 7")];
    let asked = browser.send(&page, "/send", &fields);
    assert!(
        asked.says("Send this message?") && asked.says("Send it for 0.0500 EUR"),
        "{}",
        asked.text()
    );
    // Another price than the one that was seen is asked about again.
    let forged = browser.send(&asked, "/send", &[("agreed", "0.0100 EUR")]);
    assert!(forged.says("Send it for 0.0500 EUR"), "{}", forged.text());
    assert_eq!(server.stored(), 0);
    for _ in 0..2 {
        let sent = browser.send(&asked, "/send", &[]);
        assert!(
            sent.path.starts_with("/messages/") && sent.says("Your <code> is 7"),
            "{}",
            sent.text()
        );
    }
    let all = server.ask(&Request::get("/v1/messages").key(&key)).json();
    assert_eq!(all["data"].as_array().unwrap().len(), 1);
    // What can't be paid is refused before anybody is asked.
    let broke = browser.send(&browser.open("/send"), "/send", &fields);
    assert!(
        broke.answer.status == 422 && broke.says("The balance does not cover this message"),
        "{}",
        broke.text()
    );
    let nowhere = [("recipient", "+14155552671"), fields[1], fields[2]];
    let nowhere = browser.send(&page, "/send", &nowhere);
    assert!(
        nowhere.answer.status == 422 && nowhere.says("No carrier takes messages for this number.")
    );
    assert_eq!(balance(&server, OWNER).0, "0.0100");
    server.check();
}

fn who_opted_out_is_written_to_only_on_purpose(engine: Engine) {
    let server = Server::start(engine);
    let browser = Browser::greeted(&server);
    let body = r#"{"number":"+447700900123"}"#;
    let request = Request::new("POST", "/v1/optout-lists/default/numbers").key(&server.key());
    server.ask(&request.header("Content-Type", "application/json").body(body));
    let page = browser.open("/send");
    assert!(count(&browser, &page, "Hello").contains("This person opted out"));
    let fields = [("recipient", ANN), ("originator", "Shop"), ("text", "Hello")];
    let refused = browser.send(&page, "/send", &fields);
    assert!(refused.answer.status == 422 && refused.says("opted out (STOP)"), "{}", refused.text());
    let sent = browser.send(&refused, "/send", &[("overrideOptout", "yes")]);
    assert_eq!(sent.path, "/phone/447700900123", "{}", sent.text());
}

fn who_looks_on_sends_nothing(engine: Engine) {
    let server = Server::start(engine);
    let browser = Browser::greeted(&server);
    let page = browser.open("/send");
    server.database.change("UPDATE memberships SET role = 3");
    assert_eq!(browser.get("/send").status, 403);
    let csrf = page.csrf();
    let fields =
        [("csrf", csrf.as_str()), ("recipient", ANN), ("originator", "Shop"), ("text", "Hello")];
    for action in ["/send", "/send/count", "/send/plain", "/conversations/447700900123/reply"] {
        let once = [("once", "01a1fd13-fdac-71b5-af6a-ef0fb5c1bcea"), ("from", "Shop")];
        let answer = browser.post(action, &[&fields[..], &once].concat());
        assert_eq!(answer.status, 403, "{action}: {}", answer.text());
    }
    for path in ["/messages", "/conversations"] {
        let page = browser.open(path);
        assert_eq!(page.answer.status, 200);
        assert!(!page.text().contains("href=\"/send\""), "{path}");
    }
    assert_eq!(server.stored(), 0);
}
