//! The composer: counts, confirms a price, and sends once.

use crate::support::billing::{balance, start_with_prices};
use crate::support::browser::{Browser, Page, form};
use crate::support::http::Request;
use crate::support::server::Server;

const ANN: &str = "+447700900123";
const OWNER: &str = "ann@example.com";

fn count(browser: &Browser<'_>, page: &Page, text: &str) -> String {
    let csrf = page.csrf();
    let fields = [("csrf", csrf.as_str()), ("recipient", ANN), ("text", text)];
    let request = form("/send/count", &fields).header("Origin", "http://test");
    let response = browser.ask(request.header("HX-Request", "true"));
    assert_eq!(response.status, 200, "{}", response.text());
    assert!(!response.text().contains("<html"), "a part of the page only");
    response.text()
}

#[test]
fn characters_and_segments_are_counted() {
    let server = Server::start();
    let browser = Browser::of_operator(&server);
    let page = browser.open("/send");
    for (text, words) in [
        ("", &["GSM-7", ">0<", "160 characters left."][..]),
        ("Hello", &["GSM-7", ">5<", "155 characters left.", "Free"]),
        ("1 € [x]", &[">7<", "150 characters left.", "3 of [ ]", "count as two"]),
        (&"a".repeat(161), &[">161<", ">2<", "145 characters left in segment 2."]),
        ("Привет", &["UCS-2", ">6<", "64 characters left.", "<mark class=\"ucs2\">П</mark>"]),
        ("👋", &["UCS-2", ">1<", "68 characters left.", "1 emoji or rare characters"]),
    ] {
        let counted = count(&browser, &page, text);
        for words in words {
            assert!(counted.contains(words), "{text}: {words}: {counted}");
        }
    }
    // Without JavaScript the response is the whole page, with the entered values.
    let whole =
        browser.send(&page, "/send", &[("recipient", ANN), ("originator", "Shop"), ("text", "")]);
    let fields = [("recipient", ANN), ("originator", "Sho"), ("text", "Hello")];
    let csrf = whole.csrf();
    let counted = browser.post("/send/count", &[&[("csrf", csrf.as_str())], &fields[..]].concat());
    assert_eq!(counted.status, 200);
    assert!(
        counted.text().contains("value=\"Sho\"") && counted.text().contains("155 characters left.")
    );
}

#[test]
fn special_characters_are_listed_and_can_be_replaced() {
    let server = Server::start();
    let browser = Browser::of_operator(&server);
    let page = browser.open("/send");
    let counted = count(&browser, &page, "It’s “open” – <now>… 😀");
    for words in [
        "<mark class=\"ucs2\" title=\"right single quotation mark\">’</mark>",
        "left double quotation mark",
        "en dash",
        "ellipsis",
        "<mark class=\"ucs2\">😀</mark>",
        "→ ...",
        "a segment holds 70 characters instead of 160",
        "&#60;now&#62;",
        "/send/plain",
    ] {
        assert!(counted.contains(words), "{words}: {counted}");
    }
    let long = format!("“{}”", "a".repeat(100));
    assert!(count(&browser, &page, &long).contains("would need 1 segment instead of 2"));
    let csrf = page.csrf();
    let fields = [("csrf", csrf.as_str()), ("recipient", ANN), ("text", "It’s\u{a0}“open”…")];
    let plain = browser.post("/send/plain", &fields).text();
    assert!(
        plain.contains(">It&#39;s &#34;open&#34;...</textarea>") && plain.contains("GSM-7"),
        "{plain}"
    );
    assert!(!count(&browser, &page, "Привет").contains("/send/plain"));
}

#[test]
fn a_test_message_is_sent_once() {
    let server = Server::start();
    let browser = Browser::of_operator(&server);
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
        assert!(sent.contains("One\nmore"));
    }
    let all = server.ask(&Request::get("/v1/messages").key(&server.key())).json();
    let message = &all["data"][0];
    assert_eq!(all["data"].as_array().unwrap().len(), 1);
    assert_eq!(
        (message["text"].as_str(), message["reference"].as_str()),
        (Some("One\nmore"), Some("order 7"))
    );
    assert!(browser.open("/send").contains("value=\"Shop\""), "the last sender is the default");
    let other = browser.send(&page, "/send", &[("originator", "Shop"), ("text", "Something else")]);
    assert!(
        other.response.status == 422 && other.contains("This form was already submitted"),
        "{}",
        other.text()
    );
    let again = browser.send(&other, "/send", &[]);
    assert_eq!(again.path, "/phone/447700900123", "{}", again.text());
}

#[test]
fn errors_are_next_to_their_fields() {
    let server = Server::start();
    let browser = Browser::of_operator(&server);
    let page = browser.open("/send");
    let good = [("recipient", ANN), ("originator", "Shop"), ("text", "Hello")];
    for (field, value, words) in [
        ("recipient", "07700900123", "The country code is missing"),
        ("recipient", "", "The number is empty"),
        ("originator", "Much too long a name", "The originator is too long"),
        ("originator", "", "An originator can't be blank"),
        ("text", " ", "The text must not be empty."),
        ("reference", &"r".repeat(256), "The reference must not exceed 255 characters."),
        ("validity", "59", "The value must be between 60 and 259200."),
        ("validity", "soon", "The value must be between 60 and 259200."),
        ("maxParts", "256", "The value must be between 1 and 255."),
    ] {
        let fields: Vec<_> = good.iter().filter(|(name, _)| *name != field).copied().collect();
        let sent = browser.send(&page, "/send", &[&fields[..], &[(field, value)]].concat());
        assert_eq!(sent.response.status, 422, "{field}: {value}");
        assert!(
            sent.contains(words) && sent.contains(&format!("id=\"{field}-error\"")),
            "{field}: {value}: {}",
            sent.text()
        );
        assert!(field == "text" || sent.contains(">Hello</textarea>"), "the entered text is kept");
    }
    let long = "a".repeat(161);
    let sent = browser.send(
        &page,
        "/send",
        &[&good[..2], &[("text", long.as_str()), ("maxParts", "1")]].concat(),
    );
    assert!(
        sent.contains("The text needs 2 segments, but at most 1 is allowed."),
        "{}",
        sent.text()
    );
    let all =
        browser.send(&page, "/send", &[("recipient", "x"), ("originator", "<"), ("text", "")]);
    assert_eq!(all.text().matches("class=\"wrong\"").count(), 3, "all errors at once");
    assert_eq!(browser.post("/send", &good).status, 403, "a form without a CSRF token");
    assert_eq!(server.stored(), 0);
}

#[test]
fn a_live_message_needs_a_confirmed_price() {
    let server = start_with_prices();
    let key = server.live_key(OWNER, "0.06");
    let browser = Browser::of(&server, OWNER);
    browser.send(&browser.open("/send"), "/mode", &[("mode", "live")]);
    let page = browser.open("/send");
    let fields = [("recipient", ANN), ("originator", "Shop"), ("text", "Your <code> is 7")];
    let asked = browser.send(&page, "/send", &fields);
    assert!(
        asked.contains("Send this message?") && asked.contains("Send for 0.0500 EUR"),
        "{}",
        asked.text()
    );
    // A price that differs from the confirmed price has to be confirmed again.
    let forged = browser.send(&asked, "/send", &[("agreed", "0.0100 EUR")]);
    assert!(forged.contains("Send for 0.0500 EUR"), "{}", forged.text());
    assert_eq!(server.stored(), 0);
    for _ in 0..2 {
        let sent = browser.send(&asked, "/send", &[]);
        assert!(
            sent.path.starts_with("/messages/") && sent.contains("Your <code> is 7"),
            "{}",
            sent.text()
        );
    }
    let all = server.ask(&Request::get("/v1/messages").key(&key)).json();
    assert_eq!(all["data"].as_array().unwrap().len(), 1);
    // A message over the balance is rejected before the confirmation.
    let broke = browser.send(&browser.open("/send"), "/send", &fields);
    assert!(
        broke.response.status == 422 && broke.contains("Insufficient balance"),
        "{}",
        broke.text()
    );
    let nowhere = [("recipient", "+14155552671"), fields[1], fields[2]];
    let nowhere = browser.send(&page, "/send", &nowhere);
    assert!(
        nowhere.response.status == 422
            && nowhere.contains("No carrier is configured for this number.")
    );
    assert_eq!(balance(&server, OWNER).0, "0.0100");
    server.check();
}

#[test]
fn a_recipient_who_opted_out_needs_an_override() {
    let server = Server::start();
    let browser = Browser::of_operator(&server);
    let body = r#"{"number":"+447700900123"}"#;
    let request = Request::new("POST", "/v1/optout-lists/default/numbers").key(&server.key());
    server.ask(&request.header("Content-Type", "application/json").body(body));
    let page = browser.open("/send");
    assert!(count(&browser, &page, "Hello").contains("This recipient has opted out"));
    let fields = [("recipient", ANN), ("originator", "Shop"), ("text", "Hello")];
    let refused = browser.send(&page, "/send", &fields);
    assert!(
        refused.response.status == 422 && refused.contains("opted out (STOP)"),
        "{}",
        refused.text()
    );
    let sent = browser.send(&refused, "/send", &[("overrideOptout", "yes")]);
    assert_eq!(sent.path, "/phone/447700900123", "{}", sent.text());
}

#[test]
fn a_viewer_cannot_send() {
    let server = Server::start();
    let browser = Browser::of_operator(&server);
    let page = browser.open("/send");
    server.database.change("UPDATE memberships SET role = 3");
    assert_eq!(browser.get("/send").status, 403);
    let csrf = page.csrf();
    let fields =
        [("csrf", csrf.as_str()), ("recipient", ANN), ("originator", "Shop"), ("text", "Hello")];
    for action in ["/send", "/send/count", "/send/plain", "/conversations/447700900123/reply"] {
        let once = [("idempotency_key", "01a1fd13-fdac-71b5-af6a-ef0fb5c1bcea"), ("from", "Shop")];
        let response = browser.post(action, &[&fields[..], &once].concat());
        assert_eq!(response.status, 403, "{action}: {}", response.text());
    }
    for path in ["/messages", "/conversations"] {
        let page = browser.open(path);
        assert_eq!(page.response.status, 200);
        assert!(!page.text().contains("href=\"/send\""), "{path}");
    }
    assert_eq!(server.stored(), 0);
}
