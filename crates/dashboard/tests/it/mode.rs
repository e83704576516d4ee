//! The switches between test and live mode, and between accounts.

use crate::support::site::Site;
use heliograph_domain::account::Role;
use insta::assert_snapshot;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_mode_is_switched_and_old_forms_are_refused() {
    let site = Site::new().await;
    let ann = site.owner("ann@example.com").await;
    let page = ann.get("/settings/api-keys").await;
    assert_snapshot!(page.part("<aside"), @"
    200
    Test mode. Messages are free and do not reach real phones.
    ");
    let live = ann.send(&page, "/mode", &[("mode", "live"), ("next", "/messages")]).await;
    assert_snapshot!(live.head(), @"303 /messages");
    let refused = ann.send(&page, "/settings/api-keys", &[("name", "Shop")]).await;
    assert_snapshot!(refused.main(), @"
    409
    Account or mode changed
    You switched account or mode in another tab. Nothing was changed. Go back, reload the page and try again.
    Back to the dashboard
    ");
    assert!(!ann.get("/messages").await.has("<aside"));
    // The switch itself works from any page.
    let test = [("mode", "test"), ("next", "//evil.example")];
    assert_snapshot!(ann.send(&page, "/mode", &test).await.head(), @"303 /");
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
