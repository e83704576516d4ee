//! Sign-up, sign-in and password reset: throttled, and without revealing which addresses are known.

use crate::support::browser::{Browser, Page};
use crate::support::mail::{Inbox, link};
use crate::support::server::Server;
use crate::support::sign_in::{HOME, PASSWORD, sign_in, sign_up};
use crate::support::wait::eventually;

const OTHER: &str = "nine blue kettles";

fn is_in(page: &Page) -> bool {
    ["/phone", HOME].contains(&page.path.as_str()) && page.response.status == 200
}

fn is_out(browser: &Browser<'_>) -> bool {
    browser.open("/settings/security").path.starts_with("/sign-in")
}

#[test]
fn a_user_signs_up_out_and_in() {
    let server = Server::start();
    let browser = Browser::new(&server);
    let page = browser.open("/sign-up");
    for (email, password, wrong) in [
        ("ann", PASSWORD, "Enter a valid email address"),
        ("ann@example.com", "short", "at least 12 characters"),
        ("ann@example.com", "Password2026!", "This password is too common"),
        ("annabel@example.com", "annabel is here", "Do not use your email address"),
    ] {
        let again = browser.send(&page, "/sign-up", &[("email", email), ("password", password)]);
        assert_eq!(again.response.status, 422, "{}", again.text());
        assert!(
            again.contains(wrong) && again.contains(&format!("value=\"{email}\"")),
            "{}",
            again.text()
        );
        assert!(!again.contains(password), "the password is on the page");
    }
    // A double click on the button creates one account.
    for _ in 0..2 {
        let fields = [("email", " Ann@Example.com "), ("password", PASSWORD)];
        assert!(is_in(&browser.send(&page, "/sign-up", &fields)));
    }
    let accounts = "SELECT count(*) FROM accounts WHERE name = 'ann@example.com'";
    assert_eq!(server.database.number(accounts), 1);
    let taken = [("email", "ann@example.com"), ("password", OTHER)];
    let taken = browser.send(&page, "/sign-up", &taken);
    assert!(
        taken.response.status == 422
            && taken.contains("An account with this email address already exists"),
        "{}",
        taken.text()
    );
    let phone = browser.open("/phone");
    assert!(browser.send(&phone, "/sign-out", &[]).contains("You are signed out."));
    assert!(is_out(&browser));
    let wrong = sign_in(&browser, "ann@example.com", OTHER);
    assert!(
        wrong.response.status == 422 && wrong.contains("Incorrect email or password"),
        "{}",
        wrong.text()
    );
    assert!(is_in(&sign_in(&browser, "ANN@example.com", PASSWORD)));
    sign_in_returns_to_the_requested_page(&server);
}

/// After sign-in the browser returns to the requested page, and never to another host.
fn sign_in_returns_to_the_requested_page(server: &Server) {
    for (asked, reached) in [("/settings/security", "/settings/security"), ("//evil.example", HOME)]
    {
        let browser = Browser::new(server);
        let page = browser.open(&format!("/sign-in?next={asked}"));
        let fields = [("email", "ann@example.com"), ("password", PASSWORD), ("next", asked)];
        assert_eq!(browser.send(&page, "/sign-in", &fields).path, reached);
    }
    let foreign = Browser::new(server);
    let fields = [("email", "ann@example.com"), ("password", PASSWORD)];
    assert_eq!(foreign.post("/sign-in", &fields).status, 403, "a form without a CSRF token");
}

#[test]
fn closed_sign_up_is_hidden() {
    let server = Server::with("[accounts]\nsign_up = 'closed'");
    let browser = Browser::new(&server);
    let page = browser.open("/sign-in");
    assert!(!page.contains("/sign-up"), "{}", page.text());
    assert_eq!(browser.open("/sign-up").response.status, 404);
    let csrf = page.csrf();
    let fields = [("email", "ann@example.com"), ("password", PASSWORD), ("csrf", &csrf)];
    assert_eq!(browser.post("/sign-up", &fields).status, 404);
    assert_eq!(server.database.number("SELECT count(*) FROM users"), 1);
}

/// Returns a page without values that differ each time: tokens, nonces, and the email address.
fn without_variables(page: &Page, typed: &str) -> String {
    let text = page.text().replace(&page.csrf(), "CSRF").replace(typed, "EMAIL");
    let mut pieces = text.split("nonce=\"");
    let mut text_only = pieces.next().unwrap().to_owned();
    for piece in pieces {
        text_only.push_str(piece.split_once('"').unwrap().1);
    }
    text_only
}

#[test]
fn known_and_unknown_addresses_get_the_same_page() {
    let inbox = Inbox::start();
    let server = Server::with(&inbox.config());
    sign_up(&server, "ann@example.com");
    let browser = Browser::new(&server);
    let [known, unknown] = ["ann@example.com", "bob@example.com"].map(|email| {
        let page = sign_in(&browser, email, OTHER);
        assert_eq!(page.response.status, 422);
        without_variables(&page, email)
    });
    assert_eq!(known, unknown);
    let page = browser.open("/reset");
    let [known, unknown] = ["ann@example.com", "bob@example.com"].map(|email| {
        let page = browser.send(&page, "/reset", &[("email", email)]);
        assert_eq!(page.response.status, 200);
        page.text().replace(email, "EMAIL").split("<body").nth(1).unwrap().to_owned()
    });
    assert_eq!(known, unknown);
    inbox.to("ann@example.com", "/reset/");
    // The other one confirms the address.
    assert_eq!(inbox.count(), 2);
}

#[test]
fn repeated_sign_in_attempts_are_throttled() {
    let server = Server::start();
    sign_up(&server, "ann@example.com");
    let browser = Browser::new(&server);
    let page = browser.open("/sign-in");
    let mut tries = 0;
    let refused = loop {
        let response =
            browser.send(&page, "/sign-in", &[("email", "ann@example.com"), ("password", OTHER)]);
        if response.response.status != 422 {
            break response;
        }
        tries += 1;
        assert!(tries < 10, "sign-in attempts are not throttled");
    };
    assert_eq!(refused.response.status, 429);
    assert!(refused.contains("Wait ") && refused.contains(" seconds"), "{}", refused.text());
    let wait: u64 = refused.response.header("retry-after").unwrap().parse().unwrap();
    assert!((1..=16).contains(&wait), "{wait}");
    let failed = "SELECT count(*) FROM audit WHERE action = 'sign_in_failed'";
    eventually("the failures are in the audit log", || {
        (server.database.number(failed) == tries).then_some(())
    });
    // Other users are not affected.
    sign_up(&server, "bob@example.com");
}

#[test]
fn a_forgotten_password_is_reset_by_email() {
    let inbox = Inbox::start();
    let server = Server::with(&inbox.config());
    let ann = sign_up(&server, "ann@example.com");
    let browser = Browser::new(&server);
    let page = browser.open("/reset");
    assert!(
        browser
            .send(&page, "/reset", &[("email", "ann@example.com")])
            .contains("we sent a password reset link")
    );
    let mail = inbox.to("ann@example.com", "/reset/");
    assert!(
        mail.contains("Subject: Reset your password") && mail.contains("From: Heliograph"),
        "{mail}"
    );
    let path = link(&mail, "/reset/");
    let page = browser.open(&path);
    let weak = browser.send(&page, &path, &[("password", "123456789012")]);
    assert!(weak.response.status == 422 && weak.contains("sequences like 1234"), "{}", weak.text());
    assert!(!is_out(&ann));
    let done = browser.send(&page, &path, &[("password", OTHER)]);
    assert!(done.contains("Your password was changed"), "{}", done.text());
    assert!(is_out(&ann), "a session is still valid");
    assert_eq!(browser.open(&path).response.status, 404);
    assert_eq!(sign_in(&browser, "ann@example.com", PASSWORD).response.status, 422);
    assert!(is_in(&sign_in(&browser, "ann@example.com", OTHER)));
    let mails = "SELECT count(*) FROM mails";
    eventually("the outbox is empty", || (server.database.number(mails) == 0).then_some(()));
    assert!(
        !server.log().contains(path.trim_start_matches("/reset/")),
        "the log contains a reset link"
    );
}

#[test]
fn without_email_the_operator_creates_a_reset_link() {
    let server = Server::start();
    sign_up(&server, "ann@example.com");
    let browser = Browser::new(&server);
    assert!(browser.open("/reset").contains("heliograph account link --reset --email"));
    let url = server.stdout(&["account", "link", "--reset", "--email", "Ann@example.com"]);
    let path = link(&url, "/reset/");
    let page = browser.open(&path);
    assert!(
        browser.send(&page, &path, &[("password", OTHER)]).contains("Your password was changed")
    );
    assert!(is_in(&sign_in(&browser, "ann@example.com", OTHER)));
    assert_eq!(server.database.number("SELECT count(*) FROM mails"), 0);
}

#[test]
fn a_new_password_ends_all_other_sessions() {
    let server = Server::start();
    let (ann, thief) = (sign_up(&server, "ann@example.com"), Browser::new(&server));
    assert!(is_in(&sign_in(&thief, "ann@example.com", PASSWORD)));
    let page = ann.open("/settings/security");
    assert!(page.text().matches("<span>127.0.0.1</span>").count() == 2, "{}", page.text());
    let action = "/settings/security/password";
    for (old, new, wrong) in
        [(OTHER, OTHER, "Incorrect password"), (PASSWORD, "short", "at least 12")]
    {
        let page = ann.send(&page, action, &[("current", old), ("password", new)]);
        assert!(page.response.status == 422 && page.contains(wrong), "{}", page.text());
    }
    let before = ann.cookies();
    let page = ann.send(&page, action, &[("current", PASSWORD), ("password", OTHER)]);
    assert!(page.contains("Password changed"), "{}", page.text());
    assert_ne!(ann.cookies(), before, "the session cookie is unchanged");
    assert!(is_out(&thief) && !is_out(&ann));
    assert!(is_in(&sign_in(&thief, "ann@example.com", OTHER)));
    // Sessions can be ended individually, or all others at once.
    let page = ann.open("/settings/security");
    assert!(ann.send(&page, "/settings/security/sessions/end", &[]).contains("Session signed out"));
    assert!(is_out(&thief));
    sign_in(&thief, "ann@example.com", OTHER);
    let page = ann.open("/settings/security");
    assert!(
        ann.send(&page, "/settings/security/sessions/others", &[]).contains("All other sessions")
    );
    assert!(is_out(&thief) && !is_out(&ann));
}
