//! API keys.

use crate::support::api::{hello, problem};
use crate::support::browser::{Browser, Page};
use crate::support::fixtures::DEMO;
use crate::support::server::Server;

const KEYS: &str = "/settings/api-keys";

/// Returns the API key on a page.
fn shown(page: &Page) -> Option<String> {
    let html = page.text();
    let (_, rest) = html.split_once("id=\"key\">")?;
    Some(rest.split('<').next()?.to_owned())
}

#[test]
fn a_key_is_created_once_used_and_revoked() {
    let mut server = Server::start();
    let first_key = server.key();
    let (key, id) = {
        let browser = Browser::of_operator(&server);
        let page = browser.open(KEYS);
        assert!(page.contains("first key") && page.contains("Never"), "{}", page.text());
        let made = browser.send(&page, KEYS, &[("name", "till <1>")]);
        assert_eq!((made.response.status, made.path.as_str()), (200, KEYS));
        let key = shown(&made).unwrap();
        assert!(
            made.contains(&format!("Authorization: Bearer {key}")) && made.contains("till <1>")
        );
        // A reload sends the form again: no key is created or shown.
        let again = browser.send(&page, KEYS, &[("name", "till <1>")]);
        assert!(again.contains("already created") && shown(&again).is_none());
        assert!(!browser.open(KEYS).contains(&key));
        let all = server.list(&["key", "list", "--account", DEMO]);
        assert_eq!(all.len(), 2);
        let made = all.iter().find(|k| k["name"] == "till <1>").unwrap();
        assert_eq!(made["mode"], "test");
        assert_eq!(made["scopes"].as_array().unwrap().len(), 3);
        server.accepted(&key, &hello("+447700900123"));
        (key, made["id"].as_str().unwrap().to_owned())
    };
    // A node stores the last uses of keys before it ends.
    assert!(server.stop().success());
    server.launch();
    server.wait_until_ready();
    let used = server.list(&["key", "list", "--account", DEMO]);
    let used = used.iter().find(|k| k["id"] == id.as_str()).unwrap();
    assert!(used["lastUsedAt"].is_string(), "{used}");
    let browser = Browser::of(&server, DEMO);
    let page = browser.open(KEYS);
    assert!(page.contains("Just now"), "{}", page.text());
    server.accepted(&key, &hello("+447700900123"));
    for _ in 0..2 {
        let fields = [("csrf", page.csrf()), ("id", id.clone())];
        let fields: Vec<_> = fields.iter().map(|(n, v)| (*n, v.as_str())).collect();
        let done = browser.post("/settings/api-keys/revoke", &fields);
        assert_eq!(done.header("location"), Some("/settings/api-keys?done=revoked"));
        problem(&server.post(&key, &hello("+447700900123")), 401, "unauthenticated");
    }
    let page = browser.open("/settings/api-keys?done=revoked");
    assert!(page.contains("API key revoked") && page.contains("Revoked<span"), "{}", page.text());
    server.accepted(&first_key, &hello("+447700900123"));
    let done = "SELECT count(*) FROM audit WHERE action IN ('api_key_created', 'api_key_revoked')";
    // One entry for the first key, and one for each form.
    assert_eq!(server.database.number(done), 3);
}

#[test]
fn errors_of_a_new_key_are_next_to_their_fields() {
    let server = Server::start();
    let browser = Browser::of_operator(&server);
    let page = browser.open(KEYS);
    let fields =
        [("csrf", page.csrf()), ("idempotency_key", "x".to_owned()), ("name", "a".repeat(101))];
    let fields: Vec<_> = fields.iter().map(|(n, v)| (*n, v.as_str())).collect();
    let response = browser.post(KEYS, &fields);
    assert_eq!(response.status, 422);
    let text = response.text();
    assert!(text.contains("must not exceed 100 characters") && text.contains("Select at least"));
    assert!(text.contains(&"a".repeat(101)), "the entered name is lost");
    let neither = [("name", "shop"), ("mode", "both"), ("scope", "send")];
    let neither = browser.send(&page, KEYS, &neither);
    assert!(neither.response.status == 422 && neither.contains("Select test or live"));
    // A live key can be created in test mode, and is listed with its mode.
    let live = browser.send(&page, KEYS, &[("name", "shop"), ("mode", "live"), ("scope", "send")]);
    assert!(shown(&live).unwrap().starts_with("hg_live_"));
    let all = server.list(&["key", "list", "--account", DEMO]);
    assert_eq!(all.iter().filter(|k| k["mode"] == "live").count(), 1);
}
