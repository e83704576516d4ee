//! Resetting a forgotten password.

use crate::support::site::Site;
use heliograph_service::identity::magic_links::{self, MagicLinkKind};
use insta::assert_snapshot;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_reset_link_is_requested_by_email_address() {
    let site = Site::new().await;
    site.owner("ann@example.com").await;
    let browser = site.client();
    let page = browser.get("/reset").await;
    assert_snapshot!(page.main(), @"
    200 sets heliograph-form
    Reset your password
    Enter your email address, and we will send you a reset link.
    Email []
    (Send reset link)
    Back to sign in
    ");
    let typed = [("email", "ann at home")];
    assert_snapshot!(browser.send(&page, "/reset", &typed).await.part("<form"), @"
    422
    Email [ann at home]
    ✗ Enter a valid email address, such as ann@example.com.
    (Send reset link)
    ");
    let typed = [("email", "Ann@example.com")];
    assert_snapshot!(browser.send(&page, "/reset", &typed).await.main(), @"
    200
    Check your email
    If an account exists for ann@example.com, we sent a password reset link. It works once and expires in one hour.
    Send another link
    Back to sign in
    ");
    site.eventually("SELECT recipient FROM mails", "ann@example.com").await;
    assert_snapshot!(browser.post("/reset", &typed).await.head(), @"403");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn without_email_the_operator_is_asked() {
    let site = Site::with(|settings| settings.sign_up.mail_enabled = false).await;
    assert_snapshot!(site.client().get("/reset").await.main(), @"
    200 sets heliograph-form
    Reset your password
    This server cannot send email. Ask your operator for a reset link, created with this command:
    heliograph account link --reset --email YOUR-EMAIL
    Back to sign in
    ");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_reset_link_sets_a_password_once() {
    let site = Site::new().await;
    let ann = site.owner("ann@example.com").await;
    let kind = MagicLinkKind::PasswordReset;
    let link = magic_links::create(site.cx(), "ann@example.com", kind).await.unwrap();
    let (browser, path) = (site.client(), magic_links::path(kind, &link));
    let page = browser.get(&path).await;
    assert_snapshot!(page.main(), @"
    200 sets heliograph-form
    Choose a new password
    For ann@example.com. You will be signed out on all devices.
    New password []
    At least 12 characters. A phrase of several words is easy to remember.
    (Save password)
    ");
    let weak = [("password", "qwertyuiop12")];
    assert_snapshot!(browser.send(&page, &path, &weak).await.part("<form"), @"
    422
    New password []
    ✗ Repetitions and sequences like 1234 or qwerty are easy to guess. Use several unrelated words.
    (Save password)
    ");
    let done = browser.send(&page, &path, &[("password", "nine blue kettles")]).await;
    assert_snapshot!(done.head(), @"303 /sign-in?done=reset sets heliograph-device");
    let signed_out = browser.follow(&done).await;
    assert_snapshot!(
        signed_out.notice(),
        @"200 Your password was changed and all sessions were signed out. Sign in with your new password."
    );
    assert_snapshot!(ann.get("/overview").await.head(), @"303 /sign-in?next=%2Foverview");
    assert_snapshot!(
        browser.get(&path).await.notice(),
        @"404 ✗ This link was already used or has expired. Request a new one."
    );
    let again = browser.send(&page, &path, &[("password", "nine blue kettles")]).await;
    assert_snapshot!(again.head(), @"404");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn repeated_attempts_have_to_wait() {
    let site = Site::new().await;
    let browser = site.client();
    let page = browser.get("/reset").await;
    let typed = [("email", "ann@example.com")];
    for _ in 0..8 {
        assert_eq!(browser.send(&page, "/reset", &typed).await.status, 200);
    }
    let refused = browser.send(&page, "/reset", &typed).await;
    let seconds = refused.header("retry-after");
    assert!((1..=16).contains(&seconds.parse().unwrap()), "{seconds}");
    assert_snapshot!(refused.main().replace(seconds, "N"), @"
    429
    Too many attempts
    Wait N seconds, then go back and try again.
    Back to the dashboard
    ");
}
