//! The audit log.

use crate::support::site::Site;
use heliograph_domain::account::Role;
use insta::assert_snapshot;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn changes_are_logged() {
    let site = Site::new().await;
    let ann = site.owner("ann@example.com").await;
    let keys = "/settings/api-keys";
    let page = ann.fill(keys, keys, &[("name", "Shop")]).await;
    ann.send(&page, "/settings/api-keys/revoke", &[]).await;
    ann.fill("/settings/members", "/settings/members", &[("email", "bob@example.com")]).await;
    assert_snapshot!(ann.get("/settings/audit-log").await.main(), @"
    200
    Audit log
    A permanent record of changes and sign-ins in ann@example.com.
    Time | Actor | Action | IP address
    DATE | ann@example.com | Member invited / bob@example.com as member | 192.0.2.1
    DATE | ann@example.com | API key revoked / Shop | 192.0.2.1
    DATE | ann@example.com | API key created / Shop (test) | 192.0.2.1
    DATE | ann@example.com | Signed in / by sign-in link | 192.0.2.1
    DATE | Command line | Account opened / ann@example.com
    ");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn imports_of_opt_outs_are_logged() {
    let site = Site::new().await;
    let ann = site.owner("ann@example.com").await;
    let page = ann.get("/optouts").await;
    let numbers = [("numbers", "+447700900123, +6598234567")];
    ann.send(&page, &page.action("/import"), &numbers).await;
    let log = ann.get("/settings/audit-log").await.main();
    assert!(log.contains("Opt-outs imported / default: 2 added, 2 in total"), "{log}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_log_has_pages() {
    let site = Site::new().await;
    let ann = site.owner("ann@example.com").await;
    for _ in 0..50 {
        site.sign_in("ann@example.com").await;
    }
    let first = ann.get("/settings/audit-log").await;
    assert_snapshot!(first.part("aria-label=\"Pagination\""), @"
    200
    Older
    ");
    let second = ann.get(&first.link("Older")).await;
    assert_snapshot!(second.part("aria-label=\"Entries\""), @"
    200
    Time | Actor | Action | IP address
    DATE | ann@example.com | Signed in / by sign-in link | 192.0.2.1
    DATE | Command line | Account opened / ann@example.com
    Newest
    ");
    assert_snapshot!(ann.get("/settings/audit-log?before=x").await.head(), @"404");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_viewer_cannot_read_the_log() {
    let site = Site::new().await;
    let ann = site.owner("ann@example.com").await;
    let vic = site.member(&ann, "vic@example.com", Role::Viewer).await;
    assert_snapshot!(vic.get("/settings/audit-log").await.main(), @"
    403
    You don't have permission
    Your role does not allow this action. Ask an owner or admin of the account.
    ");
}
