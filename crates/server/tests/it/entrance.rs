//! Coming in: signing up and in, throttled and telling nobody who is known; new passwords by mail and by hand.

use crate::browser::{Browser, Page};
use crate::database::{Engine, each_engine};
use crate::mail::{Inbox, link};
use crate::server::Server;

each_engine!(entrance: anybody_opens_an_account_and_comes_back behind_a_closed_door_nothing_is_shown
    who_is_known_is_told_to_nobody guessing_takes_long a_forgotten_password_is_reset_by_mail
    without_mail_the_operator_hands_out_a_link a_new_password_ends_all_other_sessions);

pub(crate) const PASSWORD: &str = "otter velvet tram";
/// Where one comes in who wanted nothing else.
pub(crate) const HOME: &str = "/overview";
const OTHER: &str = "nine blue kettles";

/// Fills in the form of signing up.
pub(crate) fn sign_up<'a>(server: &'a Server, email: &str) -> Browser<'a> {
    let browser = Browser::new(server);
    let page = browser.open("/sign-up");
    let page = browser.send(&page, "/sign-up", &[("email", email), ("password", PASSWORD)]);
    assert_eq!((page.path.as_str(), page.answer.status), ("/phone", 200), "{}", page.text());
    browser
}

/// Fills in the form of signing in.
pub(crate) fn sign_in(browser: &Browser<'_>, email: &str, password: &str) -> Page {
    let page = browser.open("/sign-in");
    browser.send(&page, "/sign-in", &[("email", email), ("password", password)])
}

fn is_in(page: &Page) -> bool {
    ["/phone", HOME].contains(&page.path.as_str()) && page.answer.status == 200
}

fn is_out(browser: &Browser<'_>) -> bool {
    browser.open("/settings/security").path.starts_with("/sign-in")
}

fn anybody_opens_an_account_and_comes_back(engine: Engine) {
    let server = Server::start(engine);
    let browser = Browser::new(&server);
    let page = browser.open("/sign-up");
    for (email, password, wrong) in [
        ("ann", PASSWORD, "Write an address like"),
        ("ann@example.com", "short", "at least 12 characters"),
        ("ann@example.com", "Password2026!", "Too many people use this one"),
        ("annabel@example.com", "annabel is here", "Leave out your email address"),
    ] {
        let again = browser.send(&page, "/sign-up", &[("email", email), ("password", password)]);
        assert_eq!(again.answer.status, 422, "{}", again.text());
        assert!(again.says(wrong) && again.says(&format!("value=\"{email}\"")), "{}", again.text());
        assert!(!again.says(password), "a password is shown");
    }
    // The second time is the same person, who pressed the button twice.
    for _ in 0..2 {
        let fields = [("email", " Ann@Example.com "), ("password", PASSWORD)];
        assert!(is_in(&browser.send(&page, "/sign-up", &fields)));
    }
    let accounts = "SELECT count(*) FROM accounts WHERE name = 'ann@example.com'";
    assert_eq!(server.database.number(accounts), 1);
    let taken = [("email", "ann@example.com"), ("password", OTHER)];
    let taken = browser.send(&page, "/sign-up", &taken);
    assert!(
        taken.answer.status == 422 && taken.says("Somebody has signed up with this address"),
        "{}",
        taken.text()
    );
    let phone = browser.open("/phone");
    assert!(browser.send(&phone, "/sign-out", &[]).says("You are signed out."));
    assert!(is_out(&browser));
    let wrong = sign_in(&browser, "ann@example.com", OTHER);
    assert!(wrong.answer.status == 422 && wrong.says("do not belong together"), "{}", wrong.text());
    assert!(is_in(&sign_in(&browser, "ANN@example.com", PASSWORD)));
    come_back_to_a_page(&server);
}

/// Who had to sign in goes on where they wanted to, and never to another host.
fn come_back_to_a_page(server: &Server) {
    for (asked, reached) in [("/settings/security", "/settings/security"), ("//evil.example", HOME)]
    {
        let browser = Browser::new(server);
        let page = browser.open(&format!("/sign-in?next={asked}"));
        let fields = [("email", "ann@example.com"), ("password", PASSWORD), ("next", asked)];
        assert_eq!(browser.send(&page, "/sign-in", &fields).path, reached);
    }
    let foreign = Browser::new(server);
    let fields = [("email", "ann@example.com"), ("password", PASSWORD)];
    assert_eq!(foreign.post("/sign-in", &fields).status, 403, "a form without its secret");
}

fn behind_a_closed_door_nothing_is_shown(engine: Engine) {
    let server = Server::with(engine, "[accounts]\nsign_up = 'closed'");
    let browser = Browser::new(&server);
    let page = browser.open("/sign-in");
    assert!(!page.says("/sign-up"), "{}", page.text());
    assert_eq!(browser.open("/sign-up").answer.status, 404);
    let csrf = page.csrf();
    let fields = [("email", "ann@example.com"), ("password", PASSWORD), ("csrf", &csrf)];
    assert_eq!(browser.post("/sign-up", &fields).status, 404);
    assert_eq!(server.database.number("SELECT count(*) FROM users"), 1);
}

/// A page without what differs each time: nonces, and what was typed.
fn bare(page: &Page, typed: &str) -> String {
    let text = page.text().replace(&page.csrf(), "CSRF").replace(typed, "EMAIL");
    let mut pieces = text.split("nonce=\"");
    let mut bare = pieces.next().unwrap().to_owned();
    for piece in pieces {
        bare.push_str(piece.split_once('"').unwrap().1);
    }
    bare
}

fn who_is_known_is_told_to_nobody(engine: Engine) {
    let inbox = Inbox::start();
    let server = Server::with(engine, &inbox.config());
    sign_up(&server, "ann@example.com");
    let browser = Browser::new(&server);
    let [known, unknown] = ["ann@example.com", "bob@example.com"].map(|email| {
        let page = sign_in(&browser, email, OTHER);
        assert_eq!(page.answer.status, 422);
        bare(&page, email)
    });
    assert_eq!(known, unknown);
    let page = browser.open("/reset");
    let [known, unknown] = ["ann@example.com", "bob@example.com"].map(|email| {
        let page = browser.send(&page, "/reset", &[("email", email)]);
        assert_eq!(page.answer.status, 200);
        page.text().replace(email, "EMAIL").split("<body").nth(1).unwrap().to_owned()
    });
    assert_eq!(known, unknown);
    inbox.to("ann@example.com");
    assert_eq!(inbox.count(), 1);
}

fn guessing_takes_long(engine: Engine) {
    let server = Server::start(engine);
    sign_up(&server, "ann@example.com");
    let browser = Browser::new(&server);
    let page = browser.open("/sign-in");
    let mut tries = 0;
    let refused = loop {
        let answer =
            browser.send(&page, "/sign-in", &[("email", "ann@example.com"), ("password", OTHER)]);
        if answer.answer.status != 422 {
            break answer;
        }
        tries += 1;
        assert!(tries < 10, "nobody is held up");
    };
    assert_eq!(refused.answer.status, 429);
    assert!(refused.says("Wait ") && refused.says(" seconds"), "{}", refused.text());
    let wait: u64 = refused.answer.header("retry-after").unwrap().parse().unwrap();
    assert!((1..=16).contains(&wait), "{wait}");
    let failed = "SELECT count(*) FROM audit WHERE action = 'sign-in failed'";
    assert_eq!(server.database.number(failed), tries);
    // Others come in meanwhile.
    sign_up(&server, "bob@example.com");
}

fn a_forgotten_password_is_reset_by_mail(engine: Engine) {
    let inbox = Inbox::start();
    let server = Server::with(engine, &inbox.config());
    let ann = sign_up(&server, "ann@example.com");
    let browser = Browser::new(&server);
    let page = browser.open("/reset");
    assert!(
        browser.send(&page, "/reset", &[("email", "ann@example.com")]).says("a link is on its way")
    );
    let mail = inbox.to("ann@example.com");
    assert!(
        mail.contains("Subject: Choose a new password") && mail.contains("From: Heliograph"),
        "{mail}"
    );
    let path = link(&mail, "/reset/");
    let page = browser.open(&path);
    let weak = browser.send(&page, &path, &[("password", "123456789012")]);
    assert!(weak.answer.status == 422 && weak.says("rows like 1234"), "{}", weak.text());
    assert!(!is_out(&ann));
    let done = browser.send(&page, &path, &[("password", OTHER)]);
    assert!(done.says("Your password is set"), "{}", done.text());
    assert!(is_out(&ann), "a session has survived");
    assert_eq!(browser.open(&path).answer.status, 404);
    assert_eq!(sign_in(&browser, "ann@example.com", PASSWORD).answer.status, 422);
    assert!(is_in(&sign_in(&browser, "ann@example.com", OTHER)));
    let mails = "SELECT count(*) FROM mails";
    crate::patience::eventually("the outbox is empty", || {
        (server.database.number(mails) == 0).then_some(())
    });
    assert!(!server.log().contains(path.trim_start_matches("/reset/")), "a link stands in the log");
}

fn without_mail_the_operator_hands_out_a_link(engine: Engine) {
    let server = Server::start(engine);
    sign_up(&server, "ann@example.com");
    let browser = Browser::new(&server);
    assert!(browser.open("/reset").says("heliograph account link --reset --email"));
    let url = server.told(&["account", "link", "--reset", "--email", "Ann@example.com"]);
    let path = link(&url, "/reset/");
    let page = browser.open(&path);
    assert!(browser.send(&page, &path, &[("password", OTHER)]).says("Your password is set"));
    assert!(is_in(&sign_in(&browser, "ann@example.com", OTHER)));
    assert_eq!(server.database.number("SELECT count(*) FROM mails"), 0);
}

fn a_new_password_ends_all_other_sessions(engine: Engine) {
    let server = Server::start(engine);
    let (ann, thief) = (sign_up(&server, "ann@example.com"), Browser::new(&server));
    assert!(is_in(&sign_in(&thief, "ann@example.com", PASSWORD)));
    let page = ann.open("/settings/security");
    assert!(page.text().matches("127.0.0.1 · since").count() == 2, "{}", page.text());
    let action = "/settings/security/password";
    for (old, new, wrong) in
        [(OTHER, OTHER, "This is not your password"), (PASSWORD, "short", "at least 12")]
    {
        let page = ann.send(&page, action, &[("current", old), ("password", new)]);
        assert!(page.answer.status == 422 && page.says(wrong), "{}", page.text());
    }
    let before = ann.cookies();
    let page = ann.send(&page, action, &[("current", PASSWORD), ("password", OTHER)]);
    assert!(page.says("The password is changed"), "{}", page.text());
    assert_ne!(ann.cookies(), before, "the session's secret is the old one");
    assert!(is_out(&thief) && !is_out(&ann));
    assert!(is_in(&sign_in(&thief, "ann@example.com", OTHER)));
    // One by one, and all others at once.
    let page = ann.open("/settings/security");
    assert!(ann.send(&page, "/settings/security/sessions/end", &[]).says("That session is over"));
    assert!(is_out(&thief));
    sign_in(&thief, "ann@example.com", OTHER);
    let page = ann.open("/settings/security");
    assert!(ann.send(&page, "/settings/security/sessions/others", &[]).says("All other sessions"));
    assert!(is_out(&thief) && !is_out(&ann));
}
