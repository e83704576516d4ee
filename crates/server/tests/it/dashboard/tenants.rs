//! Isolation of accounts on all pages and forms, and protection from forged requests.

use crate::support::browser::{Browser, form, form_with_files};
use crate::support::crawler::{Crawl, Form, Route, routes};
use crate::support::fixtures::{DEMO, Fixtures};
use crate::support::http::{HttpResponse, Request};
use std::collections::BTreeSet;

const ANN: &str = "ann@example.com";
const BOB: &str = "bob@example.com";
const MARK: &str = "of-bob";
/// Paths with a secret, which no page links to, and the form that only people have who need to confirm
/// their address.
const BY_SECRET: [&str; 7] = [
    "/confirm/{token}",
    "/settings/security/confirmation",
    "/sign-in/{link}",
    "/sign-in/code/{link}",
    "/join/{token}",
    "/join/{token}/sign-up",
    "/reset/{token}",
];
/// Pages for visitors without a session.
const PUBLIC: [&str; 3] = ["/sign-in", "/sign-up", "/reset"];
/// Forms about the user's own session, which every role may send.
const OWN: [&str; 3] = ["/account", "/mode", "/sign-out"];

/// Creates two accounts; Bob's has objects of all kinds.
fn two_accounts() -> Fixtures {
    let fixtures = Fixtures::new();
    fixtures.open(ANN);
    fixtures.open(BOB);
    fixtures.fill(BOB, MARK);
    fixtures
}

fn is_own(action: &str) -> bool {
    OWN.contains(&action) || action.starts_with("/settings/security")
}

/// The other tests depend on pages and forms being found.
#[test]
fn every_page_and_form_is_found() {
    let fixtures = Fixtures::new();
    fixtures.fill(DEMO, MARK);
    fixtures.open(ANN);
    fixtures.add_member(DEMO, ANN, 1);
    let (server, routes) = (&fixtures.server, routes(&fixtures.server));
    let mut crawls = vec![Crawl::both_modes(&Browser::new(server), &routes)];
    crawls.push(Crawl::both_modes(&Browser::of(server, DEMO), &routes));
    // The setup of two-factor authentication, and after it.
    let ann = Browser::of(server, ANN);
    let mut security = ann.open("/settings/security");
    let password = [("password", "four quite ordinary words")];
    security = ann.send(&security, "/settings/security/password", &password);
    let begun = [("begin_password", password[0].1)];
    ann.send(&security, "/settings/security/two-factor", &begun);
    crawls.push(Crawl::single(security));
    // A text with special characters, which has more forms.
    let text = [("recipient", ""), ("text", "“Hello”")];
    crawls.push(Crawl::single(ann.send(&ann.open("/send"), "/send", &text)));
    crawls.push(Crawl::both_modes(&ann, &routes));
    let has = format!("UPDATE users SET totp_step = 1 WHERE email = '{ANN}'");
    server.database.change(&has);
    crawls.push(Crawl::both_modes(&ann, &routes));
    let read: BTreeSet<_> = crawls.iter().flat_map(|crawl| crawl.pages.keys()).collect();
    let sent: BTreeSet<_> = crawls.iter().flat_map(|s| &s.forms).map(|f| &f.action).collect();
    let missing = |route: &&Route| {
        let found = |addresses: &BTreeSet<&String>| addresses.iter().any(|a| route.matches(a));
        let elsewhere = route.path == "/" || BY_SECRET.contains(&route.path.as_str());
        !elsewhere && (route.reads && !found(&read) || route.posts && !found(&sent))
    };
    let missing: Vec<_> = routes.iter().filter(missing).collect();
    assert!(missing.is_empty(), "no page links to {missing:?}, only to {read:?} {sent:?}");
}

#[test]
fn no_page_shows_another_account() {
    let fixtures = two_accounts();
    let (server, routes) = (&fixtures.server, routes(&fixtures.server));
    let (ann, bob) = (Browser::of(server, ANN), Browser::of(server, BOB));
    let crawl = Crawl::both_modes(&bob, &routes);
    let marked = crawl.pages.values().filter(|page| page.text().contains(MARK)).count();
    assert!(marked >= 1, "Bob's own pages do not contain the mark");
    for (address, theirs) in crawl.pages.iter().filter(|(a, _)| !a.starts_with("/operator")) {
        assert_eq!(theirs.response.status, 200, "{address}");
        let response = ann.get(address);
        let shown = response.text();
        assert!(!shown.contains(MARK) && !shown.contains(BOB), "{address}: {shown}");
        let route = routes.iter().find(|r| r.matches(address)).unwrap();
        let expected = if route.has_id() { 404 } else { 200 };
        assert_eq!(response.status, expected, "{address}");
        let stranger = Browser::new(server).get(address);
        let location = stranger.header("location").unwrap_or_default();
        let public = PUBLIC.contains(&route.path.as_str());
        assert!(public || location.starts_with("/sign-in?next="), "{address}: {location}");
    }
    let operators: Vec<_> = routes.iter().filter(|r| r.path.starts_with("/operator")).collect();
    for route in operators.iter().filter(|r| r.reads) {
        let response = bob.get(&route.path);
        assert!([403, 404].contains(&response.status), "{}: {}", route.path, response.status);
    }
}

#[test]
fn no_form_reaches_another_account() {
    let fixtures = two_accounts();
    let (server, routes) = (&fixtures.server, routes(&fixtures.server));
    let crawl = Crawl::both_modes(&Browser::of(server, BOB), &routes);
    assert!(crawl.forms.len() >= 5, "{:?}", crawl.forms);
    let before = fixtures.rows_of(BOB);
    for form in &crawl.forms {
        let ann = Browser::of(server, ANN);
        let csrf = ann.open("/phone").csrf();
        let response = send(&ann, form, Some(&csrf));
        let route = routes.iter().find(|r| r.matches(&form.action)).unwrap();
        assert!(!route.has_id() || response.status == 404, "{form:?}: {}", response.status);
        // A rejected form shows what it was sent.
        let sends_it = form.fields.iter().any(|(_, value)| value.contains(MARK));
        assert!(
            response.status < 500 && (sends_it || !response.text().contains(MARK)),
            "{form:?}: {}",
            response.text()
        );
    }
    assert_eq!(fixtures.rows_of(BOB), before);
    let ann = Browser::of(server, ANN);
    let account = fixtures.account(BOB).to_string();
    let csrf = ann.open("/phone").csrf();
    let response = ann.post("/account", &[("csrf", &csrf), ("account", &account)]);
    assert_eq!(response.status, 404);
    assert!(ann.open("/phone").contains(ANN));
    server.check();
}

#[test]
fn forged_forms_are_rejected() {
    let fixtures = two_accounts();
    let (server, routes) = (&fixtures.server, routes(&fixtures.server));
    let (ann, bob) = (Browser::of(server, ANN), Browser::of(server, BOB));
    let crawl = Crawl::both_modes(&bob, &routes);
    let csrf = ann.open("/phone").csrf();
    let before = fixtures.rows_of(BOB);
    for one in crawl.forms.iter().filter(|one| !PUBLIC.contains(&one.action.as_str())) {
        let good =
            one.fields.iter().find(|(name, _)| name == "csrf").map(|(_, value)| value.as_str());
        let stranger = send(&Browser::new(server), one, good);
        let location = stranger.header("location").unwrap_or_default();
        assert!(location.starts_with("/sign-in?next="), "{one:?}: {}", stranger.status);
        for wrong in [None, Some(""), Some("AAAA"), Some(csrf.as_str())] {
            assert_eq!(send(&bob, one, wrong).status, 403, "{wrong:?} {one:?}");
        }
        for (name, value) in [
            ("Origin", "https://evil.example"),
            ("Origin", "null"),
            ("Sec-Fetch-Site", "cross-site"),
            ("Sec-Fetch-Site", "same-site"),
        ] {
            let request = foreign(one, good).header(name, value);
            assert_eq!(bob.ask(request).status, 403, "{name}: {value} {one:?}");
        }
    }
    assert_eq!(fixtures.rows_of(BOB), before);
    for one in Crawl::both_modes(&Browser::new(server), &routes).forms {
        let request = foreign(&one, None).header("Origin", "https://evil.example");
        assert_eq!(Browser::new(server).ask(request).status, 403, "{one:?}");
    }
}

/// A form with this CSRF token, without headers about its origin.
fn foreign(one: &Form, csrf: Option<&str>) -> Request {
    let how = if one.files { form_with_files } else { form };
    how(&one.action, &one.with_csrf(csrf))
}

/// Sends a form with the origin of our own pages.
fn send(browser: &Browser<'_>, one: &Form, csrf: Option<&str>) -> HttpResponse {
    browser.ask(foreign(one, csrf).header("Origin", "http://test"))
}

#[test]
fn a_viewer_cannot_change_anything() {
    const VIC: &str = "vic@example.com";
    let fixtures = two_accounts();
    fixtures.open(VIC);
    let (server, account) = (&fixtures.server, fixtures.account(BOB).to_string());
    let crawl = Crawl::both_modes(&Browser::of(server, BOB), &routes(server));
    fixtures.add_member(VIC, BOB, 3);
    let vic = Browser::of(server, VIC);
    let csrf = vic.open("/phone").csrf();
    let moved = vic.post("/account", &[("csrf", &csrf), ("account", &account)]);
    assert_eq!(moved.status, 303, "{}", moved.text());
    let before = fixtures.rows_of(BOB);
    for form in crawl.forms.iter().filter(|form| !is_own(&form.action)) {
        let page = vic.open("/phone");
        assert!(page.contains(BOB), "{form:?}");
        let response = send(&vic, form, Some(&page.csrf()));
        assert!([200, 403, 404, 422].contains(&response.status), "{form:?}: {}", response.status);
    }
    assert_eq!(fixtures.rows_of(BOB), before);
}
