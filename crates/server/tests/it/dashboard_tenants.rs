//! Nothing on the dashboard reaches another account, nor does anything that did not come from its pages.

use crate::browser::{Browser, form, form_with_files};
use crate::database::{Engine, each_engine};
use crate::furnished::{DEMO, Furnished};
use crate::http::{Answer, Request};
use crate::site::{Form, Route, Site, routes};
use std::collections::BTreeSet;

each_engine!(dashboard_tenants: every_page_and_form_is_found no_page_shows_another_account
    no_form_reaches_another_account forms_from_elsewhere_do_nothing who_looks_on_changes_nothing);

const ANN: &str = "ann@example.com";
const BOB: &str = "bob@example.com";
const MARK: &str = "of-bob";
/// Reached by a link with a secret in it, and by what follows such a link.
const BY_SECRET: [&str; 5] = [
    "/sign-in/{link}",
    "/sign-in/code/{way}",
    "/join/{token}",
    "/join/{token}/anew",
    "/reset/{token}",
];
/// Where strangers come in.
const PUBLIC: [&str; 3] = ["/sign-in", "/sign-up", "/reset"];
/// What people do with their own session and for themselves, whatever their role is.
const OWN: [&str; 3] = ["/account", "/mode", "/sign-out"];

/// Two accounts, of which Bob's has everything.
fn both(engine: Engine) -> Furnished {
    let furnished = Furnished::new(engine);
    furnished.open(ANN);
    furnished.open(BOB);
    furnished.fill(BOB, MARK);
    furnished
}

fn is_own(action: &str) -> bool {
    OWN.contains(&action) || action.starts_with("/settings/security")
}

/// The other tests are about what is found here.
fn every_page_and_form_is_found(engine: Engine) {
    let furnished = Furnished::new(engine);
    furnished.fill(DEMO, MARK);
    furnished.open(ANN);
    furnished.let_in(DEMO, ANN, 1);
    let (server, routes) = (&furnished.server, routes(&furnished.server));
    let mut sites = vec![Site::of(&Browser::new(server), &routes)];
    sites.push(Site::of(&Browser::of(server, DEMO), &routes));
    // Somebody who begins with a second step, and then has it.
    let ann = Browser::of(server, ANN);
    let mut security = ann.open("/settings/security");
    let password = [("password", "four quite ordinary words")];
    security = ann.send(&security, "/settings/security/password", &password);
    let begun = [("begin_password", password[0].1)];
    ann.send(&security, "/settings/security/second-step", &begun);
    sites.push(Site::on(security));
    // A text whose quotation marks make it longer.
    let text = [("recipient", ""), ("text", "“Hello”")];
    sites.push(Site::on(ann.send(&ann.open("/send"), "/send", &text)));
    sites.push(Site::of(&ann, &routes));
    let has = format!("UPDATE users SET totp_step = 1 WHERE email = '{ANN}'");
    server.database.change(&has);
    sites.push(Site::of(&ann, &routes));
    let read: BTreeSet<_> = sites.iter().flat_map(|site| site.pages.keys()).collect();
    let sent: BTreeSet<_> = sites.iter().flat_map(|s| &s.forms).map(|f| &f.action).collect();
    let missing = |route: &&Route| {
        let found = |addresses: &BTreeSet<&String>| addresses.iter().any(|a| route.leads(a));
        let elsewhere = route.path == "/" || BY_SECRET.contains(&route.path.as_str());
        !elsewhere && (route.reads && !found(&read) || route.posts && !found(&sent))
    };
    let missing: Vec<_> = routes.iter().filter(missing).collect();
    assert!(missing.is_empty(), "nothing leads there: {missing:?}, only to {read:?} {sent:?}");
}

fn no_page_shows_another_account(engine: Engine) {
    let furnished = both(engine);
    let (server, routes) = (&furnished.server, routes(&furnished.server));
    let (ann, bob) = (Browser::of(server, ANN), Browser::of(server, BOB));
    let site = Site::of(&bob, &routes);
    let marked = site.pages.values().filter(|page| page.text().contains(MARK)).count();
    assert!(marked >= 1, "Bob's own pages show nothing of him");
    for (address, theirs) in site.pages.iter().filter(|(a, _)| !a.starts_with("/operator")) {
        assert_eq!(theirs.answer.status, 200, "{address}");
        let answer = ann.get(address);
        let shown = answer.text();
        assert!(!shown.contains(MARK) && !shown.contains(BOB), "{address}: {shown}");
        let route = routes.iter().find(|r| r.leads(address)).unwrap();
        let expected = if route.has_id() { 404 } else { 200 };
        assert_eq!(answer.status, expected, "{address}");
        let stranger = Browser::new(server).get(address);
        let location = stranger.header("location").unwrap_or_default();
        let public = PUBLIC.contains(&route.path.as_str());
        assert!(public || location.starts_with("/sign-in?next="), "{address}: {location}");
    }
    let operators: Vec<_> = routes.iter().filter(|r| r.path.starts_with("/operator")).collect();
    for route in operators.iter().filter(|r| r.reads) {
        let answer = bob.get(&route.path);
        assert!([403, 404].contains(&answer.status), "{}: {}", route.path, answer.status);
    }
}

fn no_form_reaches_another_account(engine: Engine) {
    let furnished = both(engine);
    let (server, routes) = (&furnished.server, routes(&furnished.server));
    let site = Site::of(&Browser::of(server, BOB), &routes);
    assert!(site.forms.len() >= 5, "{:?}", site.forms);
    let before = furnished.kept(BOB);
    for form in &site.forms {
        let ann = Browser::of(server, ANN);
        let csrf = ann.open("/phone").csrf();
        let answer = send(&ann, form, Some(&csrf));
        let route = routes.iter().find(|r| r.leads(&form.action)).unwrap();
        assert!(!route.has_id() || answer.status == 404, "{form:?}: {}", answer.status);
        assert!(
            answer.status < 500 && !answer.text().contains(MARK),
            "{form:?}: {}",
            answer.text()
        );
    }
    assert_eq!(furnished.kept(BOB), before);
    let ann = Browser::of(server, ANN);
    let account = furnished.account(BOB).to_string();
    let csrf = ann.open("/phone").csrf();
    let answer = ann.post("/account", &[("csrf", &csrf), ("account", &account)]);
    assert_eq!(answer.status, 404);
    assert!(ann.open("/phone").says(ANN));
    server.check();
}

fn forms_from_elsewhere_do_nothing(engine: Engine) {
    let furnished = both(engine);
    let (server, routes) = (&furnished.server, routes(&furnished.server));
    let (ann, bob) = (Browser::of(server, ANN), Browser::of(server, BOB));
    let site = Site::of(&bob, &routes);
    let csrf = ann.open("/phone").csrf();
    let before = furnished.kept(BOB);
    for one in site.forms.iter().filter(|one| !PUBLIC.contains(&one.action.as_str())) {
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
    assert_eq!(furnished.kept(BOB), before);
    for one in Site::of(&Browser::new(server), &routes).forms {
        let request = foreign(&one, None).header("Origin", "https://evil.example");
        assert_eq!(Browser::new(server).ask(request).status, 403, "{one:?}");
    }
}

/// A form as browsers send it, with this proof, and without a word of where it comes from.
fn foreign(one: &Form, csrf: Option<&str>) -> Request {
    let how = if one.files { form_with_files } else { form };
    how(&one.action, &one.with_csrf(csrf))
}

/// The same, from a page of ours.
fn send(browser: &Browser<'_>, one: &Form, csrf: Option<&str>) -> Answer {
    browser.ask(foreign(one, csrf).header("Origin", "http://test"))
}

fn who_looks_on_changes_nothing(engine: Engine) {
    const VIC: &str = "vic@example.com";
    let furnished = both(engine);
    furnished.open(VIC);
    let (server, account) = (&furnished.server, furnished.account(BOB).to_string());
    let site = Site::of(&Browser::of(server, BOB), &routes(server));
    furnished.let_in(VIC, BOB, 3);
    let vic = Browser::of(server, VIC);
    let csrf = vic.open("/phone").csrf();
    let moved = vic.post("/account", &[("csrf", &csrf), ("account", &account)]);
    assert_eq!(moved.status, 303, "{}", moved.text());
    let before = furnished.kept(BOB);
    for form in site.forms.iter().filter(|form| !is_own(&form.action)) {
        let page = vic.open("/phone");
        assert!(page.says(BOB), "{form:?}");
        let answer = send(&vic, form, Some(&page.csrf()));
        assert!([200, 403, 404, 422].contains(&answer.status), "{form:?}: {}", answer.status);
    }
    assert_eq!(furnished.kept(BOB), before);
}
