//! What a user meets beyond single pages: dialogs, failed requests, live updates, long texts and links.

use crate::support::browser::{Browser, path_of};
use crate::support::chromium::Chromium;
use crate::support::fixtures::DEMO;
use crate::support::server::Server;
use crate::support::wait::{TIMEOUT, within};
use serde_json::json;

/// The most sizes of text in use, and the weights.
const SIZES: usize = 6;
const WEIGHTS: [&str; 3] = ["400", "500", "600"];
/// Returns the size and weight of each visible text.
const TEXTS: &str = "const seen = new Set();
    for (const node of document.querySelectorAll('body *')) {
        const own = [...node.childNodes].some((c) => c.nodeType === 3 && c.textContent.trim());
        if (!own || !node.checkVisibility()) continue;
        const { fontSize, fontWeight } = getComputedStyle(node);
        seen.add(`${fontSize} ${fontWeight}`);
    }
    return [...seen];";
/// Texts that break layouts: a word without a break, right to left, and emoji.
const LONG: [&str; 3] = [
    "WWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWW",
    "مفتاح التطبيق الرئيسي الطويل جدا للمتجر",
    "👩‍👩‍👧‍👦👍🏽🇸🇬 shop 👩‍👩‍👧‍👦👍🏽🇸🇬",
];
const FOCUSED: &str = "return document.activeElement.textContent.trim()";

/// Starts a server with a signed-in browser.
fn signed_in(config: &str) -> (Server, Chromium) {
    let server = Server::with(config);
    server.welcome();
    let chromium = Chromium::start(&format!("http://{}", server.address()));
    chromium.widen(1_440, 900);
    chromium.open(&path_of(&server.stdout(&["account", "link", "--email", DEMO])));
    chromium.press("Sign in");
    chromium.arrives("/phone");
    (server, chromium)
}

/// Waits until a script returns true.
fn holds(chromium: &Chromium, what: &str, script: &str) {
    let held = within(TIMEOUT, || (chromium.run(script) == true).then_some(()));
    assert!(held.is_some(), "{what}: {}\n{}", chromium.place(), chromium.text());
}

#[test]
fn a_confirmation_keeps_the_focus_and_ends_with_escape() {
    let (server, chromium) = signed_in("");
    server.key();
    chromium.open("/settings/api-keys");
    let open = "return document.querySelector('dialog[open]') !== null";
    let revoke = "//main//tbody//summary[contains(., 'Revoke')]";
    chromium.press_at(revoke);
    holds(&chromium, "the dialog is open", open);
    assert_eq!(chromium.run(FOCUSED), "Cancel");
    let role = "return document.querySelector('dialog[open]').computedRole ?? 'alertdialog'";
    assert_eq!(chromium.run(role), "alertdialog");
    // The rest of the page is inert.
    let inside = "return document.querySelector('dialog[open]').contains(document.activeElement)";
    assert_eq!(chromium.run(inside), true);
    chromium.escape();
    holds(&chromium, "the dialog is closed", &open.replace("!==", "==="));
    let focused = chromium.run(FOCUSED);
    assert!(focused.as_str().unwrap().starts_with("Revoke"), "{focused}");
    chromium.press_at(revoke);
    chromium.press("Cancel");
    holds(&chromium, "the dialog is closed again", &open.replace("!==", "==="));
    assert_eq!(chromium.complaints(), Vec::<String>::new());
}

#[test]
fn a_failed_request_shows_a_message() {
    let (server, chromium) = signed_in("");
    chromium.press("Send test message");
    chromium.arrives("/phone/447700900123");
    chromium.sees("Delivered");
    // Another tab switches the mode: the form is refused, in words.
    let other = Browser::of(&server, DEMO);
    let session = chromium.devtools("Network.getAllCookies", &json!({}));
    let session = session["cookies"].as_array().unwrap().iter();
    let session = session.clone().find(|c| c["name"] == "heliograph").unwrap();
    other.set_cookie("heliograph", session["value"].as_str().unwrap());
    let page = other.open("/overview");
    other.send(&page, "/mode", &[("mode", "live")]);
    chromium.fill("reply", "Hello?");
    chromium.enter("reply");
    chromium.sees("You switched account or mode in another tab");
    let typed = "return document.getElementById('reply').value";
    assert_eq!(chromium.run(typed), "Hello?");
    // And without a connection.
    chromium.press_at("//button[@aria-label='Dismiss']");
    let offline = json!({ "offline": true, "latency": 0, "downloadThroughput": -1,
                          "uploadThroughput": -1 });
    chromium.devtools("Network.enable", &json!({}));
    chromium.devtools("Network.emulateNetworkConditions", &offline);
    chromium.enter("reply");
    chromium.sees("The server cannot be reached");
    assert_eq!(chromium.run(typed), "Hello?");
}

#[test]
fn live_updates_wait_for_unsent_text_and_errors() {
    let (server, chromium) = signed_in("");
    chromium.press("Send test message");
    chromium.arrives("/phone/447700900123");
    chromium.sees("Delivered");
    let key = server.key();
    let send = |text: &str| {
        let body =
            json!({ "originator": "447700900800", "recipient": "447700900123", "text": text });
        server.accepted(&key, &body)
    };
    // An error of a form stays while messages arrive, and its text is in its own field.
    chromium.press("Send a test message");
    chromium.fill("recipient", "abc");
    chromium.press_at("//form[@action='/phone/send']//button");
    chromium.sees("is not allowed in a phone number");
    assert_eq!(chromium.run("return document.getElementById('reply').value"), "");
    chromium.run(
        "window.changes = 0;
         document.addEventListener('htmx:beforeRequest', () => { window.changes += 1 })",
    );
    let id = send("the first");
    server.wait_until_ended(&key, &id);
    holds(&chromium, "the page is told of changes", "return window.changes > 0");
    chromium.sees("is not allowed in a phone number");
    // Unsent text delays updates, until it is gone.
    chromium.open("/phone/447700900123");
    chromium.sees("the first");
    chromium.fill("reply", "half a sen");
    let id = send("the second");
    server.wait_until_ended(&key, &id);
    assert_eq!(chromium.run("return document.getElementById('reply').value"), "half a sen");
    assert!(!chromium.text().contains("the second"), "{}", chromium.text());
    chromium.run(
        "const field = document.getElementById('reply'); field.value = '';
         field.dispatchEvent(new Event('input', { bubbles: true }))",
    );
    chromium.sees("the second");
}

#[test]
fn long_texts_do_not_break_the_layout() {
    let (server, chromium) = signed_in("[webhooks]\nallow_private = ['127.0.0.1/32']\n");
    for name in LONG {
        server.stdout(&["key", "create", "--account", DEMO, "--test", "--name", name]);
    }
    let long = format!("http://127.0.0.1/{}", "w".repeat(300));
    server.stdout(&["webhook", "add", "--account", DEMO, "--url", &long, "--test"]);
    let key = server.key();
    for (n, text) in LONG.iter().enumerate() {
        let body = json!({ "originator": "447700900800", "recipient": format!("44770090012{n}"),
                           "text": text, "reference": text });
        server.wait_until_ended(&key, &server.accepted(&key, &body));
    }
    let browser = Browser::of(&server, DEMO);
    for name in LONG {
        let page = browser.open("/optouts");
        browser.send(&page, "/optouts", &[("name", name)]);
    }
    for (n, text) in LONG.iter().enumerate() {
        let path = format!("/phone/44770090012{n}");
        browser.send(&browser.open(&path), &format!("{path}/reply"), &[("reply", text)]);
    }
    let message = browser.open("/messages").text();
    let message = message.split_once("href=\"/messages/").unwrap().1;
    let message = format!("/messages/{}", message.split('"').next().unwrap());
    let mut faults = Vec::new();
    for path in [
        "/overview",
        "/phone",
        "/messages",
        &message,
        "/conversations",
        "/conversations/447700900120",
        "/send?text=WWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWW&originator=Shop",
        "/optouts",
        "/settings/api-keys",
        "/settings/webhooks",
        "/settings/webhooks/1",
        "/settings/members",
        "/settings/audit-log",
        "/operator/accounts",
    ] {
        chromium.open(path);
        for (width, height) in [(1_440, 900), (360, 800)] {
            chromium.widen(width, height);
            let wide = chromium.run("return document.documentElement.scrollWidth");
            if wide.as_u64() > Some(width.into()) {
                faults.push(format!("{path} is {wide} wide at {width}"));
            }
        }
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

#[test]
fn pages_use_few_sizes_of_text() {
    let (_server, chromium) = signed_in("");
    let mut seen = std::collections::BTreeSet::new();
    for path in [
        "/overview",
        "/phone",
        "/messages",
        "/send",
        "/optouts",
        "/settings/api-keys",
        "/settings/webhooks",
        "/settings/members",
        "/settings/security",
        "/settings/audit-log",
        "/operator/carriers",
        "/operator/queue",
        "/operator/accounts",
        "/nowhere",
    ] {
        chromium.open(path);
        let texts = chromium.run(TEXTS);
        let texts = texts.as_array().unwrap().iter().filter_map(|text| text.as_str());
        seen.extend(texts.map(str::to_owned));
    }
    let part = |n| seen.iter().filter_map(move |text| text.split(' ').nth(n));
    let sizes: std::collections::BTreeSet<_> = part(0).collect();
    assert!(sizes.len() <= SIZES, "{sizes:?}");
    assert!(part(1).all(|weight| WEIGHTS.contains(&weight)), "{seen:?}");
    holds(&chromium, "the font is loaded", "return document.fonts.check('15px Inter')");
    assert_eq!(chromium.asked_elsewhere(), Vec::<String>::new());
}

#[test]
fn fifty_messages_are_short_on_a_phone() {
    let (server, chromium) = signed_in("");
    let key = server.key();
    for n in 0..50 {
        let body = json!({ "originator": "Shop", "recipient": format!("4477009001{n:02}"),
                           "text": "Your order is on its way, and arrives tomorrow between 9 and 11." });
        server.accepted(&key, &body);
    }
    chromium.widen(360, 800);
    chromium.open("/messages");
    let high = chromium.run("return document.documentElement.scrollHeight");
    assert!(high.as_u64() < Some(4_500), "{high}");
}

/// The address names the mode, and a link shows the same to everyone.
#[test]
fn a_link_opens_in_its_mode() {
    let (server, chromium) = signed_in("");
    let key = server.key();
    let body = json!({ "originator": "Shop", "recipient": "447700900123", "text": "Hello" });
    let id = server.accepted(&key, &body);
    chromium.open("/messages");
    assert_eq!(chromium.address(), "/messages?mode=test");
    chromium.press_at("//button[@name='mode' and @value='live']");
    holds(&chromium, "live mode", "return document.documentElement.dataset.mode === 'live'");
    chromium.arrives("/messages");
    chromium.open(&format!("/messages/{id}"));
    chromium.sees("To +447700900123");
    assert_eq!(chromium.address(), format!("/messages/{id}?mode=test"));
    chromium.open("/overview?mode=live");
    assert_eq!(chromium.run("return document.documentElement.dataset.mode"), "live");
}

#[test]
fn the_browser_goes_back_to_a_rejected_form() {
    let (_server, chromium) = signed_in("");
    chromium.open("/send");
    chromium.fill("recipient", "abc");
    chromium.fill("originator", "Shop");
    chromium.fill("text", "Hello");
    chromium.press("Send test message");
    chromium.sees("is not allowed in a phone number");
    chromium.press("Overview");
    chromium.arrives("/overview");
    chromium.back();
    chromium.sees("is not allowed in a phone number");
}
