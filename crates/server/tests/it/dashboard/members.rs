//! Members of an account: invitations, roles, removal and the audit log.

use crate::support::browser::{Browser, Page};
use crate::support::mail::{Inbox, link};
use crate::support::server::Server;
use crate::support::sign_in::{HOME, PASSWORD, sign_in, sign_up};
use crate::support::two_factor::{send_code, set_up};
use crate::support::wait::eventually;

const HERE: &str = "/settings/members";

/// Sends an invitation; returns the page with its link.
fn invite(browser: &Browser<'_>, email: &str, role: &str) -> Page {
    let page = browser.open(HERE);
    browser.send(&page, HERE, &[("email", email), ("role", role)])
}

/// Invites a new user, who joins with this role.
fn joined<'a>(server: &'a Server, by: &Browser<'_>, email: &str, role: &str) -> Browser<'a> {
    let path = link(&invite(by, email, role).text().replace('<', " "), "/join/");
    let browser = Browser::new(server);
    let page = browser.open(&path);
    let page = browser.send(&page, &format!("{path}/sign-up"), &[("password", PASSWORD)]);
    assert_eq!((page.path.as_str(), page.response.status), (HOME, 200), "{}", page.text());
    browser
}

/// Returns the id of a member in the forms of the page.
fn id(page: &Page, email: &str) -> String {
    let text = page.text();
    let (before, _) =
        text.split_once(&format!("Role of {email}")).unwrap_or_else(|| panic!("{text}"));
    let (_, id) = before.rsplit_once("for=\"role-").unwrap();
    id.split('"').next().unwrap().to_owned()
}

#[test]
fn a_new_user_joins_by_a_link() {
    let server = Server::start();
    let ann = sign_up(&server, "ann@example.com");
    for (email, role, wrong) in [
        ("bob", "member", "Enter a valid email address"),
        ("bob@example.com", "king", "Select a role"),
        ("ann@example.com", "member", "already a member of the account"),
    ] {
        let page = invite(&ann, email, role);
        assert!(page.response.status == 422 && page.contains(wrong), "{}", page.text());
        assert!(page.contains(&format!("value=\"{email}\"")), "{}", page.text());
    }
    // A form that is sent twice creates one invitation.
    let page = ann.open(HERE);
    let fields = [("email", "Bob@example.com"), ("role", "member")];
    let [one, two] =
        [(); 2].map(|()| link(&ann.send(&page, HERE, &fields).text().replace('<', " "), "/join/"));
    assert_eq!(one, two);
    assert_eq!(server.database.number("SELECT count(*) FROM invitations"), 1);
    let bob = Browser::new(&server);
    let page = bob.open(&one);
    assert!(page.contains("Join ann@example.com") && page.contains("as member"), "{}", page.text());
    let weak = bob.send(&page, &format!("{one}/sign-up"), &[("password", "short")]);
    assert!(weak.response.status == 422 && weak.contains("at least 12"), "{}", weak.text());
    bob.send(&page, &format!("{one}/sign-up"), &[("password", PASSWORD)]);
    assert!(bob.open(HERE).contains("ann@example.com"));
    assert_eq!(Browser::new(&server).open(&one).response.status, 404);
    // A revoked invitation is invalid.
    let page = invite(&ann, "eve@example.com", "viewer");
    let path = link(&page.text().replace('<', " "), "/join/");
    assert!(ann.send(&page, "/settings/members/revoke", &[]).contains("Invitation revoked"));
    assert_eq!(Browser::new(&server).open(&path).response.status, 404);
}

#[test]
fn an_existing_user_joins_by_email() {
    let inbox = Inbox::start();
    let server = Server::with(&inbox.config());
    let (ann, bob) = (sign_up(&server, "ann@example.com"), sign_up(&server, "bob@example.com"));
    inbox.confirm(&ann, "ann@example.com");
    assert!(!invite(&ann, "bob@example.com", "admin").contains("/join/"));
    let path = link(&inbox.to("bob@example.com", "/join/"), "/join/");
    // Other users cannot use the link.
    assert!(ann.open(&path).contains("signed in as a different user"));
    assert!(Browser::new(&server).open(&path).contains("Sign in to join"));
    // A user with an account has to confirm after sign-in.
    let elsewhere = Browser::new(&server);
    let page = elsewhere.open(&format!("/sign-in?next={path}"));
    let fields = [("email", "bob@example.com"), ("password", PASSWORD)];
    let page = elsewhere.send(&page, "/sign-in", &fields);
    assert!(page.path == path && page.contains("are invited as admin"), "{}", page.text());
    let page = bob.open(&path);
    bob.send(&page, &path, &[]);
    let page = bob.open(HERE);
    assert!(
        page.contains("ann@example.com") && page.contains("Invite a member"),
        "{}",
        page.text()
    );
    assert_eq!(server.database.number("SELECT count(*) FROM memberships"), 4);
}

#[test]
fn a_removed_member_rejoins_by_invitation() {
    let server = Server::start();
    let ann = sign_up(&server, "ann@example.com");
    let bob = joined(&server, &ann, "bob@example.com", "member");
    let remove = || {
        let page = ann.open(HERE);
        let bobs = id(&page, "bob@example.com");
        let page = ann.send(&page, "/settings/members/remove", &[("id", &bobs)]);
        assert!(page.contains("Member removed"), "{}", page.text());
        link(&invite(&ann, "bob@example.com", "viewer").text().replace('<', " "), "/join/")
    };
    let sign_in_from = |path: &str, email: &str| {
        let browser = Browser::new(&server);
        assert!(browser.open(path).contains(&format!("href=\"/sign-in?next={path}\"")));
        let page = browser.open(&format!("/sign-in?next={path}"));
        let page = browser.send(&page, "/sign-in", &[("email", email), ("password", PASSWORD)]);
        (browser, page)
    };
    let path = remove();
    assert_eq!(bob.get("/phone").status, 303, "a removed member is still signed in");
    // Another user who signs in with the link does not join.
    let zoe = sign_up(&server, "zoe@example.com");
    zoe.open("/");
    let (_, page) = sign_in_from(&path, "zoe@example.com");
    assert!(page.contains("signed in as a different user"), "{}", page.text());
    let (bob, page) = sign_in_from(&path, "bob@example.com");
    assert_eq!((page.path.as_str(), page.response.status), (HOME, 200), "{}", page.text());
    assert!(bob.open(HERE).contains("ann@example.com"));
    assert!(!bob.open(HERE).contains("Invite a member"), "the role is viewer");
    // The same with two-factor authentication.
    let (_, codes) = set_up(&bob);
    let (bob, page) = sign_in_from(&remove(), "bob@example.com");
    assert!(page.path.starts_with("/sign-in/code/"), "{}", page.path);
    assert_eq!(send_code(&bob, &page, &codes[0]).path, HOME);
    assert!(bob.open(HERE).contains("ann@example.com"));
}

#[test]
fn a_member_who_leaves_is_switched_to_another_account() {
    let server = Server::start();
    let (ann, bob) = (sign_up(&server, "ann@example.com"), sign_up(&server, "bob@example.com"));
    let path = link(&invite(&ann, "bob@example.com", "member").text().replace('<', " "), "/join/");
    bob.send(&bob.open(&path), &path, &[]);
    let page = bob.open(HERE);
    assert!(page.contains("ann@example.com"));
    let page = bob.send(&page, "/settings/members/remove", &[]);
    assert!(page.contains("You left the account"), "{}", page.text());
    assert!(
        !page.contains("ann@example.com") && page.contains("Invite a member"),
        "{}",
        page.text()
    );
}

#[test]
fn roles_are_enforced_and_the_last_owner_stays() {
    let server = Server::start();
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
    // A viewer cannot change members, an admin cannot change owners, and the last owner stays
    // owner.
    assert!(!eve.open(HERE).contains("Invite a member"));
    assert_eq!(eve.open("/settings/audit-log").response.status, 403);
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
        let response = change(who, what, fields);
        assert_eq!(response.status, status, "{what} {fields:?}: {}", response.text());
    }
    assert_eq!(eve.get("/phone").status, 303, "a member who left is still signed in");
    let gone = sign_in(&Browser::new(&server), "eve@example.com", PASSWORD);
    assert!(gone.contains("You no longer have access to any account"), "{}", gone.text());
    // Users of other accounts cannot change members here.
    let zoe = sign_up(&server, "zoe@example.com");
    assert_eq!(change(&zoe, "/remove", &[("id", bobs)]).status, 404);
}

#[test]
fn the_audit_log_has_all_actions() {
    let server = Server::start();
    let ann = sign_up(&server, "ann@example.com");
    sign_in(&Browser::new(&server), "ann@example.com", "not my password");
    joined(&server, &ann, "bob@example.com", "member");
    let failed = "SELECT count(*) FROM audit WHERE action = 'sign_in_failed'";
    eventually("the failure is recorded after its response", || {
        (server.database.number(failed) == 1).then_some(())
    });
    let page = ann.open("/settings/audit-log");
    for what in [
        "Account opened",
        "Signed in",
        "Sign-in failed",
        "Member invited",
        "bob@example.com as member",
        "Member joined",
        "127.0.0.1",
    ] {
        assert!(page.contains(what), "{what}: {}", page.text());
    }
    // The log has pages, and contains no actions of other accounts.
    for n in 0..12 {
        let page = invite(&ann, &format!("guest{n}@example.com"), "viewer");
        for _ in 0..3 {
            invite(&ann, &format!("guest{n}@example.com"), "viewer");
        }
        assert_eq!(page.response.status, 200);
    }
    let page = ann.open("/settings/audit-log");
    assert!(!page.contains("Account opened"));
    let older = page.text().split("href=\"/settings/audit-log?before=").nth(1).unwrap().to_owned();
    let older =
        ann.open(&format!("/settings/audit-log?before={}", older.split('"').next().unwrap()));
    assert!(older.contains("Account opened") && older.contains("Newest"), "{}", older.text());
    let zoe = sign_up(&server, "zoe@example.com");
    assert!(!zoe.open("/settings/audit-log").contains("bob@example.com"));
}
