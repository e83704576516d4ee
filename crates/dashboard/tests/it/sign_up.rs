//! Creating an account.

use crate::support::site::{PASSWORD, Site};
use insta::assert_snapshot;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_new_user_is_signed_in() {
    let site = Site::new().await;
    let browser = site.client();
    let page = browser.get("/sign-up").await;
    assert_snapshot!(page.main(), @"
    200 sets heliograph-form
    Create your account
    No credit card required. Test messages are free.
    Email []
    Password []
    At least 12 characters. A phrase of several words is easy to remember.
    (Create account)
    Already have an account? Sign in
    ");
    let typed = [("email", "Ann@example.com"), ("password", PASSWORD)];
    assert_snapshot!(
        browser.send(&page, "/sign-up", &typed).await.head(),
        @"303 /phone sets heliograph sets heliograph-device"
    );
    assert_snapshot!(
        browser.get("/sign-up").await.notice(),
        @"200 You are signed in as ann@example.com. This form creates a new account for a different email address."
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn errors_of_a_new_account_are_at_their_fields() {
    let site = Site::new().await;
    site.owner("ann@example.com").await;
    let browser = site.client();
    let page = browser.get("/sign-up").await;
    let weak = [("email", "ann@example.com"), ("password", "short")];
    assert_snapshot!(browser.send(&page, "/sign-up", &weak).await.part("<form"), @"
    422
    Email [ann@example.com]
    Password []
    ✗ Use at least 12 characters. Several unrelated words are easy to remember.
    (Create account)
    ");
    let taken = [("email", "ann@example.com"), ("password", PASSWORD)];
    assert_snapshot!(browser.send(&page, "/sign-up", &taken).await.part("<form"), @"
    422
    Email [ann@example.com]
    ✗ An account with this email address already exists. Sign in, or reset your password.
    Password []
    At least 12 characters. A phrase of several words is easy to remember.
    (Create account)
    ");
    assert_snapshot!(browser.post("/sign-up", &taken).await.head(), @"403");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn closed_sign_up_is_not_found() {
    let site = Site::with(|settings| settings.sign_up.enabled = false).await;
    let browser = site.client();
    let page = browser.get("/sign-in").await;
    assert_snapshot!(page.main(), @"
    200 sets heliograph-form
    Sign in
    Email []
    Password []
    (Sign in)
    Forgot your password?
    ");
    assert_snapshot!(browser.get("/sign-up").await.head(), @"404");
    let csrf = &page.form("/sign-in")[0];
    assert_eq!(csrf.0, "csrf");
    assert_snapshot!(browser.post("/sign-up", &[("csrf", &csrf.1)]).await.head(), @"404");
}
