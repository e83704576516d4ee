//! Pages that explain an error.

use crate::support::page::Page;
use crate::support::site::Site;
use axum::http::Request;
use heliograph_dashboard::{method_not_allowed, not_found};
use heliograph_domain::account::Role;
use insta::assert_snapshot;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn forms_that_cannot_be_read_are_refused() {
    let site = Site::new().await;
    let ann = site.owner("ann@example.com").await;
    assert_snapshot!(ann.submit("/mode", &[("mode", "both")]).await.main(), @"
    400
    Incomplete form
    The form could not be read. Go back, reload the page and submit it again.
    ");
    let long = "a".repeat(70_000);
    assert_snapshot!(ann.submit("/mode", &[("mode", &long)]).await.main(), @"
    413
    Too large
    The form is too large. Go back, shorten your input and submit it again.
    ");
    assert_snapshot!(ann.submit("/mode", &[("mode", "live\0")]).await.head(), @"400");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_form_of_another_site_is_refused() {
    let site = Site::new().await;
    let ann = site.owner("ann@example.com").await;
    let bob = site.owner("bob@example.com").await;
    let stolen = bob.get("/overview").await;
    assert_snapshot!(ann.send(&stolen, "/mode", &[("mode", "live")]).await.main(), @"
    403
    Session mismatch
    This form does not belong to your current session. Nothing was changed. Go back, reload the page and submit it again.
    ");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_server_shows_the_same_pages() {
    let site = Site::new().await;
    let request = || Request::new(()).into_parts().0;
    assert_snapshot!(Page::read(not_found(&site.app, request()).await).await.main(), @"
    404
    Page not found
    This page does not exist, or you do not have access to it. Check that the right account and mode (test or live) are selected.
    Back to the dashboard
    ");
    assert_snapshot!(Page::read(method_not_allowed(&site.app, request()).await).await.main(), @"
    405
    Method not allowed
    This URL only accepts form submissions. Open a page from the dashboard instead.
    Back to the dashboard
    ");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn signed_in_users_keep_the_navigation_of_their_role() {
    let site = Site::new().await;
    let ann = site.owner("ann@example.com").await;
    let vic = site.member(&ann, "vic@example.com", Role::Viewer).await;
    let lost = vic.get("/messages/lost").await;
    assert!(lost.status == 404 && lost.has("href=\"/overview\"") && lost.has("action=\"/mode\""));
    assert!(!lost.has("href=\"/settings/audit-log\"") && !lost.has("href=\"/send\""));
    assert!(ann.get("/messages/lost").await.has("href=\"/settings/audit-log\""));
    assert!(!site.client().get("/sign-in/lost").await.has("href=\"/overview\""));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_node_that_shuts_down_asks_to_try_again() {
    let site = Site::new().await;
    let ann = site.owner("ann@example.com").await;
    let page = ann.get("/phone").await;
    site.stop_writer();
    let refused = ann.send(&page, "/phone/send", &[]).await;
    assert_snapshot!(refused.main(), @"
    503
    Temporarily unavailable
    The service is temporarily unavailable. Try again in a few seconds.
    ");
    assert_eq!(refused.header("retry-after"), "2");
}
