//! Every page of the dashboard as axe sees it: narrow and wide, light and dark.

use crate::browser::{Browser, path_of};
use crate::chromium::Chromium;
use crate::database::Engine;
use crate::entrance::{PASSWORD, sign_in, sign_up};
use crate::furnished::{DEMO, Furnished};
use crate::mail::link;
use crate::server::Server;
use crate::site::{Site, routes};
use serde_json::{Value, json};
use std::path::Path;

const WIDTHS: [(u32, u32); 2] = [(1_440, 900), (360, 800)];
const SECURITY: &str = "/settings/security";
/// Nothing moves: a colour that is on its way to another is neither.
const STILL: &str = "const still = new CSSStyleSheet();
    still.replaceSync('*, *::before, *::after { transition: none !important; animation: none !important }');
    document.adoptedStyleSheets = [still];";
/// Also that fingers hit what they aim at (WCAG 2.2, 2.5.8), which axe leaves out unless it is asked.
const ALL: &str = "rules: { 'target-size': { enabled: true } },";
/// What depends on the colours; all else is the same in light and in dark.
const COLOURS: &str = "runOnly: ['color-contrast', 'link-in-text-block'],";

/// Asks axe; gives back what is wrong and where.
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
fn every_page_is_for_everybody() {
    let furnished = Furnished::new(Engine::Sqlite);
    furnished.fill(DEMO, "for-demo");
    let (server, routes) = (&furnished.server, routes(&furnished.server));
    let chromium = seeing(server);
    let mut faults = Vec::new();
    // First what everybody sees, then what only the operator does.
    let mut person = Browser::new(server);
    for greeted in [false, true] {
        if greeted {
            person = Browser::of(server, DEMO);
            chromium.open(&path_of(&server.told(&["account", "link", "--email", DEMO])));
            chromium.arrives("/phone");
        }
        let mut pages: Vec<_> = Site::here(&person, &routes).pages.into_values().collect();
        pages.retain(|page| page.is_html());
        assert!(!pages.is_empty());
        for page in pages {
            faults.extend(look(&chromium, &page.path));
        }
        chromium.open("/nowhere");
        faults.extend(look(&chromium, "/nowhere"));
    }
    let [(width, height), _] = WIDTHS;
    chromium.widen(width, height);
    chromium.open("/overview");
    chromium.press_at("//button[@name='mode' and @value='live']");
    for path in ["/overview", "/messages", "/send", "/conversations", "/optouts"] {
        faults.extend(look(&chromium, path));
    }
    assert!(faults.is_empty(), "{} faults\n{}", faults.len(), faults.join("\n"));
}

/// Pages that only a secret leads to, and those of somebody who sets up a second step.
#[test]
fn pages_behind_a_secret_are_for_everybody() {
    let server = Server::start(Engine::Sqlite);
    let (ann, bob) = (sign_up(&server, "ann@example.com"), sign_up(&server, "bob@example.com"));
    let invited = |email: &str| {
        let page = ann.send(
            &ann.open("/settings/people"),
            "/settings/people",
            &[("email", email), ("role", "viewer")],
        );
        link(&page.text().replace('<', " "), "/join/")
    };
    let (new, known) = (invited("new@example.com"), invited("bob@example.com"));
    let reset = link(
        &server.told(&["account", "link", "--reset", "--email", "ann@example.com"]),
        "/reset/",
    );
    let begin = |browser: &Browser<'_>| {
        let page = browser.open(SECURITY);
        browser.send(&page, "/settings/security/second-step", &[("begin_password", PASSWORD)]);
    };
    let confirm = |email: &str| {
        server.database.change(&format!("UPDATE users SET totp_step = 1 WHERE email = '{email}'"));
    };
    begin(&ann);
    confirm("ann@example.com");
    let code = sign_in(&Browser::new(&server), "ann@example.com", PASSWORD).path;
    assert!(code.starts_with("/sign-in/code/"), "{code}");
    let chromium = seeing(&server);
    let mut faults = Vec::new();
    for path in [&new, &known, &reset, &code] {
        faults.extend(look(&chromium, path));
    }
    let link = path_of(&server.told(&["account", "link", "--email", "bob@example.com"]));
    chromium.open(&link);
    chromium.arrives("/phone");
    // Who is signed in is asked before they become somebody else.
    let other = path_of(&server.told(&["account", "link", "--email", "ann@example.com"]));
    faults.extend(look(&chromium, &other));
    for path in [&new, &known, SECURITY] {
        faults.extend(look(&chromium, path));
    }
    begin(&bob);
    faults.extend(look(&chromium, SECURITY));
    confirm("bob@example.com");
    faults.extend(look(&chromium, SECURITY));
    assert!(faults.is_empty(), "{} faults\n{}", faults.len(), faults.join("\n"));
}

/// A browser that has axe on each page.
fn seeing(server: &Server) -> Chromium {
    let chromium = Chromium::start(&format!("http://{}", server.address()));
    chromium.devtools(
        "Page.addScriptToEvaluateOnNewDocument",
        &json!({ "source": format!("{}\n{STILL}", axe()) }),
    );
    chromium
}

/// axe itself, as npm has installed it.
fn axe() -> String {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/chromium");
    let file = folder.join("node_modules/axe-core/axe.min.js");
    std::fs::read_to_string(file).expect("npm ci --prefix crates/server/tests/chromium")
}

/// What is wrong with a page.
fn look(chromium: &Chromium, path: &str) -> Vec<String> {
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
