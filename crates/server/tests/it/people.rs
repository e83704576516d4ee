//! The people of an account: invited, given roles, removed, and all of it written down.

use crate::browser::{Browser, Page};
use crate::database::{Engine, each_engine};
use crate::entrance::{HOME, PASSWORD, sign_in, sign_up};
use crate::mail::{Inbox, link};
use crate::second_step::{answer, set_up};
use crate::server::Server;

each_engine!(people: somebody_new_joins_by_a_link somebody_known_joins_by_mail
    who_was_taken_out_comes_back_by_an_invitation
    who_leaves_one_account_goes_on_in_another roles_hold_and_an_account_keeps_an_owner what_was_done_is_written_down);

const HERE: &str = "/settings/people";

/// Invites; the page with the link.
fn invite(browser: &Browser<'_>, email: &str, role: &str) -> Page {
    let page = browser.open(HERE);
    browser.send(&page, HERE, &[("email", email), ("role", role)])
}

/// Somebody new, who joins as this.
fn joined<'a>(server: &'a Server, by: &Browser<'_>, email: &str, role: &str) -> Browser<'a> {
    let path = link(&invite(by, email, role).text().replace('<', " "), "/join/");
    let browser = Browser::new(server);
    let page = browser.open(&path);
    let page = browser.send(&page, &format!("{path}/anew"), &[("password", PASSWORD)]);
    assert_eq!((page.path.as_str(), page.answer.status), (HOME, 200), "{}", page.text());
    browser
}

/// The id of a person, as forms name it.
fn id(page: &Page, email: &str) -> String {
    let text = page.text();
    let (before, _) =
        text.split_once(&format!("Role of {email}")).unwrap_or_else(|| panic!("{text}"));
    let (_, id) = before.rsplit_once("for=\"role-").unwrap();
    id.split('"').next().unwrap().to_owned()
}

fn somebody_new_joins_by_a_link(engine: Engine) {
    let server = Server::start(engine);
    let ann = sign_up(&server, "ann@example.com");
    for (email, role, wrong) in [
        ("bob", "member", "Write an address like"),
        ("bob@example.com", "king", "Choose what this person may do"),
        ("ann@example.com", "member", "belongs to the account already"),
    ] {
        let page = invite(&ann, email, role);
        assert!(page.answer.status == 422 && page.says(wrong), "{}", page.text());
        assert!(page.says(&format!("value=\"{email}\"")), "{}", page.text());
    }
    // The same form, sent twice, is one invitation.
    let page = ann.open(HERE);
    let fields = [("email", "Bob@example.com"), ("role", "member")];
    let [one, two] =
        [(); 2].map(|()| link(&ann.send(&page, HERE, &fields).text().replace('<', " "), "/join/"));
    assert_eq!(one, two);
    assert_eq!(server.database.number("SELECT count(*) FROM invitations"), 1);
    let bob = Browser::new(&server);
    let page = bob.open(&one);
    assert!(page.says("Join ann@example.com") && page.says("as member"), "{}", page.text());
    let weak = bob.send(&page, &format!("{one}/anew"), &[("password", "short")]);
    assert!(weak.answer.status == 422 && weak.says("at least 12"), "{}", weak.text());
    bob.send(&page, &format!("{one}/anew"), &[("password", PASSWORD)]);
    assert!(bob.open(HERE).says("ann@example.com"));
    assert_eq!(Browser::new(&server).open(&one).answer.status, 404);
    // An invitation that is taken back is void.
    let page = invite(&ann, "eve@example.com", "viewer");
    let path = link(&page.text().replace('<', " "), "/join/");
    assert!(ann.send(&page, "/settings/people/withdraw", &[]).says("taken back"));
    assert_eq!(Browser::new(&server).open(&path).answer.status, 404);
}

fn somebody_known_joins_by_mail(engine: Engine) {
    let inbox = Inbox::start();
    let server = Server::with(engine, &inbox.config());
    let (ann, bob) = (sign_up(&server, "ann@example.com"), sign_up(&server, "bob@example.com"));
    invite(&ann, "bob@example.com", "admin");
    let path = link(&inbox.to("bob@example.com"), "/join/");
    // Others get nowhere with it.
    assert!(ann.open(&path).says("signed in with another address"));
    assert!(Browser::new(&server).open(&path).says("Sign in to join"));
    // Signing in does not join by itself who has an account.
    let elsewhere = Browser::new(&server);
    let page = elsewhere.open(&format!("/sign-in?next={path}"));
    let fields = [("email", "bob@example.com"), ("password", PASSWORD)];
    let page = elsewhere.send(&page, "/sign-in", &fields);
    assert!(page.path == path && page.says("You are invited as admin"), "{}", page.text());
    let page = bob.open(&path);
    bob.send(&page, &path, &[]);
    let page = bob.open(HERE);
    assert!(page.says("ann@example.com") && page.says("Invite somebody"), "{}", page.text());
    assert_eq!(server.database.number("SELECT count(*) FROM memberships"), 4);
}

fn who_was_taken_out_comes_back_by_an_invitation(engine: Engine) {
    let server = Server::start(engine);
    let ann = sign_up(&server, "ann@example.com");
    let bob = joined(&server, &ann, "bob@example.com", "member");
    let take_out = || {
        let page = ann.open(HERE);
        let bobs = id(&page, "bob@example.com");
        let page = ann.send(&page, "/settings/people/remove", &[("id", &bobs)]);
        assert!(page.says("does not belong to the account any more"), "{}", page.text());
        link(&invite(&ann, "bob@example.com", "viewer").text().replace('<', " "), "/join/")
    };
    let sign_in_from = |path: &str, email: &str| {
        let browser = Browser::new(&server);
        assert!(browser.open(path).says(&format!("href=\"/sign-in?next={path}\"")));
        let page = browser.open(&format!("/sign-in?next={path}"));
        let page = browser.send(&page, "/sign-in", &[("email", email), ("password", PASSWORD)]);
        (browser, page)
    };
    let path = take_out();
    assert_eq!(bob.get("/phone").status, 303, "who was taken out is in still");
    // Others who sign in there join nothing.
    let zoe = sign_up(&server, "zoe@example.com");
    zoe.open("/");
    let (_, page) = sign_in_from(&path, "zoe@example.com");
    assert!(page.says("signed in with another address"), "{}", page.text());
    let (bob, page) = sign_in_from(&path, "bob@example.com");
    assert_eq!((page.path.as_str(), page.answer.status), (HOME, 200), "{}", page.text());
    assert!(bob.open(HERE).says("ann@example.com"));
    assert!(!bob.open(HERE).says("Invite somebody"), "a viewer now");
    // The same with a second step in between.
    let (_, codes) = set_up(&bob);
    let (bob, page) = sign_in_from(&take_out(), "bob@example.com");
    assert!(page.path.starts_with("/sign-in/code/"), "{}", page.path);
    assert_eq!(answer(&bob, &page, &codes[0]).path, HOME);
    assert!(bob.open(HERE).says("ann@example.com"));
}

fn who_leaves_one_account_goes_on_in_another(engine: Engine) {
    let server = Server::start(engine);
    let (ann, bob) = (sign_up(&server, "ann@example.com"), sign_up(&server, "bob@example.com"));
    let path = link(&invite(&ann, "bob@example.com", "member").text().replace('<', " "), "/join/");
    bob.send(&bob.open(&path), &path, &[]);
    let page = bob.open(HERE);
    assert!(page.says("ann@example.com"));
    let page = bob.send(&page, "/settings/people/remove", &[]);
    assert!(page.says("You have left that account"), "{}", page.text());
    assert!(!page.says("ann@example.com") && page.says("Invite somebody"), "{}", page.text());
}

fn roles_hold_and_an_account_keeps_an_owner(engine: Engine) {
    let server = Server::start(engine);
    let ann = sign_up(&server, "ann@example.com");
    let bob = joined(&server, &ann, "bob@example.com", "admin");
    let eve = joined(&server, &ann, "eve@example.com", "viewer");
    let page = ann.open(HERE);
    let ids =
        ["ann@example.com", "bob@example.com", "eve@example.com"].map(|email| id(&page, email));
    let [anns, bobs, eves] = ids.each_ref().map(String::as_str);
    let change = |who: &Browser<'_>, what: &str, fields: &[(&str, &str)]| {
        let csrf = who.open("/settings/security").csrf();
        who.post(&format!("{HERE}{what}"), &[fields, &[("csrf", &csrf)]].concat())
    };
    // A viewer changes nobody, an admin no owner, and the last owner stays one.
    assert!(!eve.open(HERE).says("Invite somebody"));
    assert_eq!(eve.open("/settings/audit-log").answer.status, 403);
    for (who, what, fields, status) in [
        (&eve, "/role", &[("id", bobs), ("role", "viewer")][..], 403),
        (&eve, "/remove", &[("id", bobs)], 403),
        (&eve, "", &[("email", "x@example.com"), ("role", "viewer")], 403),
        (&bob, "/role", &[("id", bobs), ("role", "owner")], 403),
        (&bob, "/role", &[("id", anns), ("role", "viewer")], 403),
        (&bob, "/remove", &[("id", anns)], 403),
        (&bob, "", &[("email", "x@example.com"), ("role", "owner")], 403),
        (&ann, "/role", &[("id", anns), ("role", "viewer")], 409),
        (&ann, "/remove", &[("id", anns)], 409),
        (&bob, "/role", &[("id", eves), ("role", "member")], 303),
        (&ann, "/role", &[("id", bobs), ("role", "owner")], 303),
        (&ann, "/role", &[("id", anns), ("role", "viewer")], 303),
        (&eve, "/remove", &[("id", eves)], 303),
    ] {
        let answer = change(who, what, fields);
        assert_eq!(answer.status, status, "{what} {fields:?}: {}", answer.text());
    }
    assert_eq!(eve.get("/phone").status, 303, "who has left is in still");
    let gone = sign_in(&Browser::new(&server), "eve@example.com", PASSWORD);
    assert!(gone.says("You do not belong to an account any more"), "{}", gone.text());
    // People of other accounts are nobody here.
    let zoe = sign_up(&server, "zoe@example.com");
    assert_eq!(change(&zoe, "/remove", &[("id", bobs)]).status, 404);
}

fn what_was_done_is_written_down(engine: Engine) {
    let server = Server::start(engine);
    let ann = sign_up(&server, "ann@example.com");
    sign_in(&Browser::new(&server), "ann@example.com", "not my password");
    joined(&server, &ann, "bob@example.com", "member");
    let page = ann.open("/settings/audit-log");
    for what in [
        "Account opened",
        "Signed in",
        "Sign-in failed",
        "Person invited",
        "bob@example.com as member",
        "Person joined",
        "127.0.0.1",
    ] {
        assert!(page.says(what), "{what}: {}", page.text());
    }
    // Page by page, and nothing of others.
    for n in 0..12 {
        let page = invite(&ann, &format!("guest{n}@example.com"), "viewer");
        for _ in 0..3 {
            invite(&ann, &format!("guest{n}@example.com"), "viewer");
        }
        assert_eq!(page.answer.status, 200);
    }
    let page = ann.open("/settings/audit-log");
    assert!(!page.says("Account opened"));
    let older = page.text().split("href=\"/settings/audit-log?before=").nth(1).unwrap().to_owned();
    let older =
        ann.open(&format!("/settings/audit-log?before={}", older.split('"').next().unwrap()));
    assert!(older.says("Account opened") && older.says("Newest"), "{}", older.text());
    let zoe = sign_up(&server, "zoe@example.com");
    assert!(!zoe.open("/settings/audit-log").says("bob@example.com"));
}
