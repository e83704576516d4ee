//! Signing in by password, code and link, and signing out.

use crate::support::site::{PASSWORD, Site};
use heliograph_service::identity::magic_links::{self, MagicLinkKind};
use insta::assert_snapshot;
use std::time::Duration;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_page_without_a_session_leads_to_sign_in_and_back() {
    let site = Site::new().await;
    let browser = site.client();
    assert_snapshot!(
        browser.get("/messages?status=FAILED").await.head(),
        @"303 /sign-in?next=%2Fmessages%3Fstatus%3DFAILED"
    );
    assert_snapshot!(browser.post("/optouts", &[]).await.head(), @"303 /sign-in?next=%2F");
    assert_snapshot!(browser.get("/sign-in?next=%2Fmessages").await.main(), @"
    200 sets heliograph-form
    Sign in
    Email []
    Password []
    (Sign in)
    Forgot your password? Create account
    ");
    let ann = site.owner("ann@example.com").await;
    assert_snapshot!(ann.get("/sign-in?next=%2Fmessages").await.head(), @"303 /messages");
    assert_snapshot!(ann.get("/sign-in?next=%2F%2Fevil.example").await.head(), @"303 /");
    assert_snapshot!(ann.get("/").await.head(), @"303 /overview");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn wrong_credentials_keep_the_email_address() {
    let site = Site::new().await;
    site.owner("ann@example.com").await;
    let browser = site.client();
    let typed = [("email", "ann@example.com"), ("password", PASSWORD)];
    assert_snapshot!(browser.fill("/sign-in", "/sign-in", &typed).await.part("<form"), @"
    422
    Email [ann@example.com]
    Password []
    ✗ Incorrect email or password.
    (Sign in)
    ");
    let typed = [("email", "ann"), ("password", "")];
    assert_snapshot!(browser.fill("/sign-in", "/sign-in", &typed).await.part("<form"), @"
    422
    Email [ann]
    ✗ Enter a valid email address, such as ann@example.com.
    Password []
    ✗ Enter your password.
    (Sign in)
    ");
    assert_snapshot!(browser.post("/sign-in", &typed).await.head(), @"403");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_sign_in_link_works_once() {
    let site = Site::new().await;
    let bob = site.owner("bob@example.com").await;
    site.owner("ann@example.com").await;
    let link = magic_links::create(site.cx(), "ann@example.com", MagicLinkKind::SignIn).await;
    let path = magic_links::path(MagicLinkKind::SignIn, &link.unwrap());
    assert_snapshot!(bob.get(&path).await.main(), @"
    200 sets heliograph-form
    Sign in
    Continue as ann@example.com. This link works once.
    You are currently signed in as bob@example.com. Continue only if you trust the sender of this link and want to switch to ann@example.com.
    (Sign in)
    ");
    let browser = site.client();
    let page = browser.get(&path).await;
    assert_snapshot!(browser.send(&page, &path, &[]).await.head(), @"303 /phone sets heliograph sets heliograph-device");
    assert_snapshot!(browser.get(&path).await.head(), @"303 /");
    let late = site.client();
    assert_snapshot!(
        late.get(&path).await.notice(),
        @"404 sets heliograph-form ✗ This link was already used or has expired. Create a new one with 'heliograph account link --email …'."
    );
    let csrf = late.get("/sign-in").await.form("/sign-in").remove(0).1;
    assert_snapshot!(
        late.post(&path, &[("csrf", &csrf)]).await.notice(),
        @"404 ✗ This link was already used or has expired. Create a new one with 'heliograph account link --email …'."
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_code_is_the_second_step() {
    let site = Site::new().await;
    let ann = site.owner("ann@example.com").await;
    let (on, code) = ann.set_up_two_factor().await;
    let recovery_code = on.content("codes").split(['<', '>']).nth(2).unwrap().to_owned();

    let browser = site.client();
    let typed = [("email", "ann@example.com"), ("password", PASSWORD)];
    let asked = browser.fill("/sign-in", "/sign-in", &typed).await;
    assert_snapshot!(asked.head(), @"303 /sign-in/code/…?next=");
    let page = browser.follow(&asked).await;
    assert_snapshot!(page.main(), @"
    200
    Two-factor authentication
    Signing in as ann@example.com. Enter the six-digit code from your authenticator app, or a recovery code.
    Code []
    (Continue)
    Back to sign in
    ");
    let (action, _) = asked.header("location").split_once('?').unwrap();
    // The code was used before.
    assert_snapshot!(browser.send(&page, action, &[("code", &code)]).await.part("<form"), @"
    422
    Code []
    ✗ Incorrect code. Enter the current code from your authenticator app.
    (Continue)
    ");
    let code = [("code", recovery_code.as_str())];
    assert_snapshot!(browser.send(&page, action, &code).await.head(), @"303 / sets heliograph sets heliograph-device");
    assert_snapshot!(
        site.client().get(action).await.notice(),
        @"404 sets heliograph-form ✗ This sign-in attempt has expired. Sign in again."
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sign_out_ends_the_session() {
    let site = Site::new().await;
    let ann = site.owner("ann@example.com").await;
    assert_snapshot!(ann.post("/sign-out", &[]).await.head(), @"403");
    let out = ann.fill("/overview", "/sign-out", &[]).await;
    assert_snapshot!(out.head(), @"303 /sign-in?done=out removes heliograph");
    assert_snapshot!(
        ann.follow(&out).await.notice(),
        @"200 sets heliograph-form You are signed out."
    );
    assert_snapshot!(ann.get("/overview").await.head(), @"303 /sign-in?next=%2Foverview");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn guesses_from_elsewhere_do_not_lock_a_person_out() {
    let site = Site::new().await;
    site.sign_up("ann@example.com").await;
    let known = site.client();
    let typed = [("email", "ann@example.com"), ("password", PASSWORD)];
    assert_eq!(known.fill("/sign-in", "/sign-in", &typed).await.status, 303);
    known.fill("/overview", "/sign-out", &[]).await;

    let wrong = [("email", "ann@example.com"), ("password", "nine blue kettles")];
    let eve = site.client();
    let page = eve.get("/sign-in").await;
    // The first attempt from this network was Ann's.
    for _ in 0..7 {
        assert_eq!(eve.send(&page, "/sign-in", &wrong).await.status, 422);
    }
    assert_eq!(eve.send(&page, "/sign-in", &wrong).await.status, 429);
    // A new device in another network, and a known one in the same network.
    let elsewhere = site.client().at([198, 51, 100, 7]);
    assert_eq!(elsewhere.fill("/sign-in", "/sign-in", &typed).await.status, 303);
    assert_eq!(known.fill("/sign-in", "/sign-in", &typed).await.status, 303);
    // Password resets are counted separately.
    assert_eq!(eve.fill("/reset", "/reset", &[("email", "ann@example.com")]).await.status, 200);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_wrong_password_writes_only_after_the_response() {
    let site = Site::new().await;
    site.sign_up("ann@example.com").await;
    let browser = site.client();
    let page = browser.get("/sign-in").await;
    // On SQLite, one transaction writes at a time: a write before the response would wait here.
    let tx = site.cx().db.write().await.unwrap();
    for email in ["ann@example.com", "bob@example.com"] {
        let wrong = [("email", email), ("password", "nine blue kettles")];
        assert_eq!(browser.send(&page, "/sign-in", &wrong).await.status, 422);
        let reset = browser.fill("/reset", "/reset", &[("email", email)]).await;
        assert_eq!(reset.status, 200);
    }
    drop(tx);
    let failed = "SELECT CAST(count(*) AS text) FROM audit WHERE action = 'sign_in_failed'";
    site.eventually(failed, "1").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn wrong_codes_are_delayed_and_mailed() {
    let site = Site::new().await;
    let ann = site.owner("ann@example.com").await;
    let (on, _) = ann.set_up_two_factor().await;
    let recovery_code = on.content("codes").split(['<', '>']).nth(2).unwrap().to_owned();
    let browser = site.client();
    let typed = [("email", "ann@example.com"), ("password", PASSWORD)];
    let asked = browser.fill("/sign-in", "/sign-in", &typed).await;
    let page = browser.follow(&asked).await;
    let action = asked.header("location").split_once('?').unwrap().0.to_owned();
    for _ in 0..5 {
        assert_eq!(browser.send(&page, &action, &[("code", "000000")]).await.status, 422);
    }
    // Neither a right code nor another node is accepted now: the delay is in the database.
    let right = [("code", recovery_code.as_str())];
    let refused = browser.send(&page, &action, &right).await;
    assert_snapshot!(refused.main(), @"
    429
    Too many attempts
    Wait 31 seconds, then go back and try again.
    Back to the dashboard
    ");
    let (mail, _) = site.mail("ann@example.com").await;
    assert!(mail.contains("5 wrong two-factor codes"), "{mail}");
    site.db.clock.advance(Duration::from_secs(30));
    assert_eq!(browser.send(&page, &action, &right).await.status, 303);
    let stored = site.db.query_raw("SELECT CAST(code_failures AS text) FROM users").await;
    assert_eq!(stored, [["0"]]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn signing_in_ends_the_previous_session_of_the_browser() {
    let site = Site::new().await;
    site.sign_up("ann@example.com").await;
    let browser = site.sign_up("bob@example.com").await;
    let page = browser.get("/sign-up").await;
    let typed = [("email", "zoe@example.com"), ("password", PASSWORD)];
    assert_eq!(browser.send(&page, "/sign-up", &typed).await.status, 303);
    let sessions = "SELECT u.email FROM sessions s JOIN users u ON u.id = s.user_id ORDER BY 1";
    assert_eq!(site.db.query_raw(sessions).await, [["ann@example.com"], ["zoe@example.com"]]);
}
