//! The pages of invitation links.

use crate::support::client::Client;
use crate::support::site::{PASSWORD, Site};
use insta::assert_snapshot;

const MEMBERS: &str = "/settings/members";

/// Invites a person; returns the path of the link.
async fn invite(by: &Client<'_>, email: &str) -> String {
    let invited = by.fill(MEMBERS, MEMBERS, &[("email", email)]).await;
    invited.content("invitation").replace("http://localhost", "")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_new_user_joins_with_a_password() {
    let site = Site::with(|settings| settings.sign_up.mail_enabled = false).await;
    let ann = site.owner("ann@example.com").await;
    let path = invite(&ann, "bob@example.com").await;
    let (bob, action) = (site.client(), format!("{path}/sign-up"));
    let page = bob.get(&path).await;
    assert_snapshot!(page.main(), @"
    200 sets heliograph-form
    Join ann@example.com
    You (bob@example.com) are invited as member.
    Password []
    At least 12 characters. A phrase of several words is easy to remember.
    (Create account and join)
    ");
    let weak = bob.send(&page, &action, &[("password", "short")]).await;
    assert_snapshot!(weak.part("<form"), @"
    422
    Password []
    ✗ Use at least 12 characters. Several unrelated words are easy to remember.
    (Create account and join)
    ");
    let joined = bob.send(&page, &action, &[("password", PASSWORD)]).await;
    assert_snapshot!(joined.head(), @"303 / sets heliograph sets heliograph-device");
    assert_snapshot!(bob.get(&path).await.main(), @"
    404
    Link expired
    This invitation was already used, was revoked, or has expired. Ask for a new one.
    ");
    assert_snapshot!(bob.send(&page, &action, &[("password", PASSWORD)]).await.head(), @"404");
    assert_snapshot!(bob.post(&action, &[]).await.head(), @"403");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_user_joins_after_sign_in() {
    let site = Site::with(|settings| settings.sign_up.mail_enabled = false).await;
    let ann = site.owner("ann@example.com").await;
    let bob = site.owner("bob@example.com").await;
    let path = invite(&ann, "bob@example.com").await;
    assert_snapshot!(site.client().get(&path).await.main(), @"
    200 sets heliograph-form
    Join ann@example.com
    You (bob@example.com) are invited as member.
    You already have an account with this email address.
    Sign in to join
    ");
    assert_snapshot!(ann.get(&path).await.main(), @"
    200 sets heliograph-form
    Join ann@example.com
    You (bob@example.com) are invited as member.
    You are signed in as a different user. Sign out, then open this link again.
    Back to the dashboard
    ");
    assert_snapshot!(ann.submit(&path, &[]).await.head(), @"404");
    let page = bob.get(&path).await;
    assert_snapshot!(page.main(), @"
    200 sets heliograph-form
    Join ann@example.com
    You (bob@example.com) are invited as member.
    (Accept invitation)
    ");
    assert_snapshot!(bob.send(&page, &path, &[]).await.head(), @"303 /");
    assert_eq!(bob.user().await.details.account_name, "ann@example.com");
    assert_snapshot!(bob.send(&page, &path, &[]).await.head(), @"404");
    assert_snapshot!(site.client().get("/join/x").await.head(), @"404");
}
