//! The confirmation of email addresses, and what it protects from.

use crate::support::site::{PASSWORD, Site};
use insta::assert_snapshot;

const SECURITY: &str = "/settings/security";
const MEMBERS: &str = "/settings/members";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_address_is_confirmed_before_the_account_goes_live() {
    let site = Site::new().await;
    let ann = site.sign_up("ann@example.com").await;
    assert_snapshot!(ann.get("/overview").await.part("aria-label=\"Email address\""), @"
    200
    Confirm your email address to go live and to invite members. We sent a link to ann@example.com.
    (Send again)
    ");
    let live = ann.fill("/overview", "/mode", &[("mode", "live")]).await;
    assert_snapshot!(live.main(), @"
    409
    Request failed
    Confirm your email address first, with the link that we sent you. You can send it again under Security.
    ");
    let key = [("name", "Shop"), ("mode", "live")];
    let key = ann.fill("/settings/api-keys", "/settings/api-keys", &key).await;
    assert_eq!(key.status, 422);
    let bob = [("email", "bob@example.com")];
    assert_snapshot!(
        ann.fill(MEMBERS, MEMBERS, &bob).await.error("email"),
        @"422 ✗ Confirm your email address first, with the link that we sent you. You can send it again under Security."
    );
    let (_, path) = site.mail("ann@example.com").await;
    let other = site.client();
    assert_snapshot!(other.get(&path).await.main(), @"
    200 sets heliograph-form
    Confirm your email address
    An account was created with ann@example.com.
    Sign in to confirm
    If you did not create the account, you can take it over: reset its password. This removes everything that was set up before.
    ");
    let page = ann.get(&path).await;
    assert_snapshot!(page.main(), @"
    200
    Confirm your email address
    An account was created with ann@example.com.
    (Confirm email address)
    ");
    let done = ann.send(&page, &path, &[]).await;
    assert_snapshot!(
        ann.follow(&done).await.notice(),
        @"200 Email address confirmed. All other sessions were signed out."
    );
    assert_snapshot!(ann.get(&path).await.head(), @"404");
    assert_eq!(ann.fill("/overview", "/mode", &[("mode", "live")]).await.status, 303);
    assert!(!ann.get("/overview").await.has("aria-label=\"Email address\""));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn without_mail_nothing_is_confirmed() {
    let site = Site::with(|settings| settings.sign_up.mail_enabled = false).await;
    let ann = site.sign_up("ann@example.com").await;
    assert_eq!(ann.fill("/overview", "/mode", &[("mode", "live")]).await.status, 303);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_owner_of_a_mailbox_drops_what_a_stranger_set_up_with_it() {
    let site = Site::new().await;
    let eve = site.sign_up("ann@example.com").await;
    let key = [("name", "Shop"), ("mode", "test")];
    assert_eq!(eve.fill("/settings/api-keys", "/settings/api-keys", &key).await.status, 200);
    let begin = "/settings/security/two-factor";
    eve.fill(SECURITY, begin, &[("begin_password", PASSWORD)]).await;
    assert!(eve.get(SECURITY).await.has("id=\"totp\""));
    site.mail("ann@example.com").await;

    let ann = site.client();
    ann.fill("/reset", "/reset", &[("email", "ann@example.com")]).await;
    let (_, path) = site.mail("ann@example.com").await;
    let password = "nine blue kettles";
    let reset = ann.fill(&path, &path, &[("password", password)]).await;
    assert_snapshot!(reset.head(), @"303 /sign-in?done=reset sets heliograph-device");
    assert_snapshot!(eve.get("/overview").await.head(), @"303 /sign-in?next=%2Foverview");
    let typed = [("email", "ann@example.com"), ("password", password)];
    assert_eq!(ann.fill("/sign-in", "/sign-in", &typed).await.status, 303);
    assert!(!ann.get(SECURITY).await.has("id=\"totp\""), "the stranger's secret is shown");
    assert!(!ann.get("/overview").await.has("aria-label=\"Email address\""));
    let valid = "SELECT CAST(count(*) AS text) FROM api_keys WHERE revoked_at IS NULL";
    assert_eq!(site.db.query_raw(valid).await, [["0"]]);
    // A later reset drops nothing.
    assert_eq!(ann.fill("/settings/api-keys", "/settings/api-keys", &key).await.status, 200);
    ann.fill("/reset", "/reset", &[("email", "ann@example.com")]).await;
    let (_, path) = site.mail("ann@example.com").await;
    ann.fill(&path, &path, &[("password", PASSWORD)]).await;
    assert_eq!(site.db.query_raw(valid).await, [["1"]]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_link_is_sent_a_few_times_a_day() {
    let site = Site::new().await;
    let ann = site.sign_up("ann@example.com").await;
    let action = "/settings/security/confirmation";
    for _ in 0..4 {
        let sent = ann.fill(SECURITY, action, &[]).await;
        assert_eq!(sent.head(), "303 /settings/security?done=sent");
    }
    assert_snapshot!(
        ann.fill(SECURITY, action, &[]).await.notice(),
        @"429 ✗ We sent you several links today already. Check your spam folder, or try again tomorrow."
    );
}
