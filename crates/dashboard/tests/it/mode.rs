//! The switches between test and live mode, and between accounts.

use crate::support::site::Site;
use heliograph_domain::account::Role;
use heliograph_domain::money::Amount;
use insta::assert_snapshot;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_mode_is_switched_and_old_forms_are_refused() {
    let site = Site::new().await;
    let ann = site.owner("ann@example.com").await;
    assert_snapshot!(ann.get("/overview").await.part("<aside"), @"
    200
    Test mode. Messages are free and do not reach real phones.
    ");
    // Keys of both modes are on one page.
    let page = ann.get("/settings/api-keys").await;
    assert!(!page.has("<aside"));
    let live = ann.switch_mode(&page, "/settings/api-keys", "live").await;
    assert_snapshot!(live.head(), @"303 /settings/api-keys");
    let refused = ann.send(&page, "/settings/api-keys", &[("name", "Shop")]).await;
    assert_snapshot!(refused.main(), @"
    409
    Account or mode changed
    You switched account or mode in another tab. Nothing was changed. Go back, reload the page and try again.
    ");
    assert!(!ann.get("/messages").await.has("<aside"));
    // The switch itself works from any page.
    let test = ann.send(&page, "/mode", &[("mode", "test")]).await;
    assert_snapshot!(test.head(), @"303 /");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_switch_of_the_mode_stays_on_the_page() {
    let site = Site::new().await;
    let ann = site.owner("ann@example.com").await;
    let page = ann.get("/overview").await;
    for (here, there) in [
        ("/messages?status=FAILED&before=x&mode=test", "/messages?status=FAILED"),
        ("/messages/0190b0a0-6f2e-7c3d-8a41-2b5c9d7e1f30", "/messages"),
        ("/settings/webhooks/1?show=failed", "/settings/webhooks"),
        ("/conversations/447700900123", "/conversations/447700900123"),
        ("//evil.example", "/"),
    ] {
        let switched = ann.switch_mode(&page, here, "live").await;
        assert_eq!(switched.header("location"), there, "{here}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_link_opens_in_its_mode() {
    let site = Site::new().await;
    let ann = site.owner("ann@example.com").await;
    ann.go_live(Amount(1_000)).await;
    let here = ann.send_text("+447700900123", "Your order is on its way").await;
    assert!(ann.get("/messages?mode=test").await.has("data-mode=\"test\""));
    // A link without a mode leads to the message, and says which mode it has.
    assert_snapshot!(ann.get(&here).await.head(), @"303 /messages/…?mode=live");
    let page = ann.get(&format!("{here}?mode=live")).await;
    assert!(page.status == 200 && page.has("data-mode=\"live\""));
    assert!(ann.get("/overview").await.has("data-mode=\"live\""));
    let bob = site.owner("bob@example.com").await;
    assert_snapshot!(bob.get(&here).await.head(), @"404");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_account_is_switched() {
    let site = Site::new().await;
    let ann = site.owner("ann@example.com").await;
    let bob = site.member(&ann, "bob@example.com", Role::Viewer).await;
    let page = bob.get("/overview").await;
    assert_snapshot!(page.part("action=\"/account\""), @"
    200
    (ann@example.com)
    (bob@example.com)
    ");
    let other = ann.user().await.details.session.account.0 + 1;
    let switched = bob.send(&page, "/account", &[("account", &other.to_string())]).await;
    assert_snapshot!(switched.head(), @"303 /overview");
    assert_eq!(bob.user().await.details.account_name, "bob@example.com");
    let strange = ann.submit("/account", &[("account", &other.to_string())]).await;
    assert_snapshot!(strange.head(), @"404");
    assert_snapshot!(bob.submit("/account", &[("account", "x")]).await.head(), @"400");
}
