//! Accessibility checks (axe) of every dashboard page: narrow and wide, light and dark.

use crate::support::browser::{Browser, path_of};
use crate::support::chromium::Chromium;
use crate::support::crawler::{Crawl, routes};
use crate::support::fixtures::{DEMO, Fixtures};
use crate::support::mail::link;
use crate::support::server::Server;
use crate::support::sign_in::{PASSWORD, sign_in, sign_up};
use serde_json::{Value, json};
use std::path::Path;

const WIDTHS: [(u32, u32); 2] = [(1_440, 900), (360, 800)];
const SECURITY: &str = "/settings/security";
/// Disables transitions, because colors in between have the wrong contrast.
const STILL: &str = "const still = new CSSStyleSheet();
    still.replaceSync('*, *::before, *::after { transition: none !important; animation: none !important }');
    document.adoptedStyleSheets = [still];";
/// All default rules, and the target size (WCAG 2.2, 2.5.8), which is off by default.
const ALL: &str = "rules: { 'target-size': { enabled: true } },";
/// Rules about colors; the other rules have the same result in both color schemes.
const COLOURS: &str = "runOnly: ['color-contrast', 'link-in-text-block'],";

/// A script that runs axe and returns its violations.
fn ask(rules: &str) -> String {
    format!(
        "const done = arguments[arguments.length - 1];
        axe.run(document, {{ {rules} resultTypes: ['violations'] }}).then(
            ({{ violations }}) => done(violations.flatMap((v) =>
                v.nodes.map((n) => `${{v.id}}: ${{n.target.join(' ')}}: ${{n.failureSummary}}`))),
            (error) => done([String(error)]));"
    )
}

#[test]
fn every_page_is_accessible() {
    let fixtures = Fixtures::new();
    fixtures.fill(DEMO, "for-demo");
    let (server, routes) = (&fixtures.server, routes(&fixtures.server));
    let chromium = browser_with_axe(server);
    let mut faults = Vec::new();
    // First the pages of visitors, then those of the operator.
    let mut person = Browser::new(server);
    for signed_in in [false, true] {
        if signed_in {
            person = Browser::of(server, DEMO);
            chromium.open(&path_of(&server.stdout(&["account", "link", "--email", DEMO])));
            chromium.press("Sign in");
            chromium.arrives("/phone");
        }
        let mut pages: Vec<_> = Crawl::current_mode(&person, &routes).pages.into_values().collect();
        pages.retain(|page| page.is_html());
        assert!(!pages.is_empty());
        for page in pages {
            faults.extend(check(&chromium, &page.path));
        }
        chromium.open("/nowhere");
        faults.extend(check(&chromium, "/nowhere"));
    }
    let [(width, height), _] = WIDTHS;
    chromium.widen(width, height);
    chromium.open("/overview");
    chromium.press_at("//button[@name='mode' and @value='live']");
    for path in ["/overview", "/messages", "/send", "/conversations", "/optouts"] {
        faults.extend(check(&chromium, path));
    }
    assert!(faults.is_empty(), "{} faults\n{}", faults.len(), faults.join("\n"));
}

/// Pages whose path has a secret, and the setup of two-factor authentication.
#[test]
fn pages_with_a_secret_path_are_accessible() {
    let server = Server::start();
    let (ann, bob) = (sign_up(&server, "ann@example.com"), sign_up(&server, "bob@example.com"));
    let invited = |email: &str| {
        let page = ann.send(
            &ann.open("/settings/members"),
            "/settings/members",
            &[("email", email), ("role", "viewer")],
        );
        link(&page.text().replace('<', " "), "/join/")
    };
    let (new, known) = (invited("new@example.com"), invited("bob@example.com"));
    let reset = link(
        &server.stdout(&["account", "link", "--reset", "--email", "ann@example.com"]),
        "/reset/",
    );
    let begin = |browser: &Browser<'_>| {
        let page = browser.open(SECURITY);
        browser.send(&page, "/settings/security/two-factor", &[("begin_password", PASSWORD)]);
    };
    let confirm = |email: &str| {
        server.database.change(&format!("UPDATE users SET totp_step = 1 WHERE email = '{email}'"));
    };
    begin(&ann);
    confirm("ann@example.com");
    let code = sign_in(&Browser::new(&server), "ann@example.com", PASSWORD).path;
    assert!(code.starts_with("/sign-in/code/"), "{code}");
    let chromium = browser_with_axe(&server);
    let mut faults = Vec::new();
    for path in [&new, &known, &reset, &code] {
        faults.extend(check(&chromium, path));
    }
    let link = path_of(&server.stdout(&["account", "link", "--email", "bob@example.com"]));
    chromium.open(&link);
    chromium.press("Sign in");
    chromium.arrives("/phone");
    // A user who is signed in is asked before switching users.
    let other = path_of(&server.stdout(&["account", "link", "--email", "ann@example.com"]));
    faults.extend(check(&chromium, &other));
    for path in [&new, &known, SECURITY] {
        faults.extend(check(&chromium, path));
    }
    begin(&bob);
    faults.extend(check(&chromium, SECURITY));
    confirm("bob@example.com");
    faults.extend(check(&chromium, SECURITY));
    assert!(faults.is_empty(), "{} faults\n{}", faults.len(), faults.join("\n"));
}

/// Starts a browser that loads axe into each page.
fn browser_with_axe(server: &Server) -> Chromium {
    let chromium = Chromium::start(&format!("http://{}", server.address()));
    chromium.devtools(
        "Page.addScriptToEvaluateOnNewDocument",
        &json!({ "source": format!("{}\n{STILL}", axe()) }),
    );
    chromium
}

/// Returns the source of axe, which npm has installed.
fn axe() -> String {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/chromium");
    let file = folder.join("node_modules/axe-core/axe.min.js");
    std::fs::read_to_string(file).expect("npm ci --prefix crates/server/tests/chromium")
}

/// Checks a page; returns its faults.
fn check(chromium: &Chromium, path: &str) -> Vec<String> {
    let mut faults = Vec::new();
    chromium.open(path);
    for (width, height) in WIDTHS {
        chromium.widen(width, height);
        let wide = chromium.run("return document.documentElement.scrollWidth");
        if wide.as_u64() > Some(width.into()) {
            faults.push(format!("{path} is {wide} wide at {width}"));
        }
        for (scheme, rules) in [("light", ALL), ("dark", COLOURS)] {
            chromium.prefer(scheme);
            let found = chromium.run_async(&ask(rules));
            let found = found.as_array().cloned().unwrap_or_default();
            let found = found.iter().filter_map(Value::as_str);
            faults.extend(found.map(|fault| format!("{path} {width} {scheme}: {fault}")));
        }
    }
    let nowhere = |complaint: &String| path == "/nowhere" && complaint.contains("404");
    faults.extend(chromium.complaints().into_iter().filter(|c| !nowhere(c)));
    faults.extend(chromium.asked_elsewhere());
    faults
}
