//! Password, two-factor authentication and sessions of a user.

use crate::support::site::{PASSWORD, Site};
use heliograph_domain::totp::TotpSecret;
use insta::assert_snapshot;
use std::time::Duration;

const SECURITY: &str = "/settings/security";
const CHANGE: &str = "/settings/security/password";
const BEGIN: &str = "/settings/security/two-factor";
const CONFIRM: &str = "/settings/security/two-factor/confirm";
const DISABLE: &str = "/settings/security/two-factor/disable";
const CODES: &str = "/settings/security/recovery-codes";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_password_is_set_and_changed() {
    let site = Site::new().await;
    let ann = site.owner("ann@example.com").await;
    let page = ann.get(SECURITY).await;
    assert_snapshot!(page.main(), @"
    200
    Security
    Password, two-factor authentication and sessions of ann@example.com.
    Two-factor authentication
    Off
    Require a code from an authenticator app in addition to your password. Set a password first.
    Password
    New password []
    At least 12 characters. You will be signed out on all other devices.
    (Set password)
    Active sessions
    curl/8.5.0 Current session
    192.0.2.1 Signed in DATE Last active DATE
    ");
    let weak = ann.send(&page, CHANGE, &[("password", "ann")]).await;
    assert_snapshot!(weak.section("pw"), @"
    422
    Password
    New password []
    ✗ Use at least 12 characters. Several unrelated words are easy to remember.
    (Set password)
    ");
    let set = ann.send(&page, CHANGE, &[("password", PASSWORD)]).await;
    assert_snapshot!(set.head(), @"303 /settings/security?done=password sets heliograph");
    let page = ann.follow(&set).await;
    assert_snapshot!(page.notice(), @"200 Password changed. All other sessions were signed out.");
    let typed = [("current", "not my password"), ("password", PASSWORD)];
    assert_snapshot!(ann.send(&page, CHANGE, &typed).await.section("pw"), @"
    422
    Password
    Current password []
    ✗ Incorrect password.
    New password []
    At least 12 characters. You will be signed out on all other devices.
    (Change password)
    ");
    assert_snapshot!(ann.post(CHANGE, &typed).await.head(), @"403");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_factor_authentication_is_enabled() {
    let site = Site::new().await;
    let ann = site.owner("ann@example.com").await;
    ann.fill(SECURITY, CHANGE, &[("password", PASSWORD)]).await;
    let page = ann.get(SECURITY).await;
    let wrong = ann.send(&page, BEGIN, &[("begin_password", "wrong")]).await;
    assert_snapshot!(wrong.section("two-factor"), @"
    422
    Two-factor authentication
    Off
    Require a code from an authenticator app in addition to your password.
    Enable
    Your password []
    ✗ Incorrect password.
    (Continue)
    ");
    assert_snapshot!(
        ann.send(&page, BEGIN, &[("begin_password", PASSWORD)]).await.head(),
        @"303 /settings/security"
    );
    let setup = ann.get(SECURITY).await;
    assert_snapshot!(setup.section("two-factor"), @"
    200
    Two-factor authentication
    Off
    Scan this QR code with an authenticator app, then enter the six-digit code it shows.
    Or enter this secret in the app:
    …
    ()
    Code []
    [x] Sign out all other sessions
    (Enable)
    ");
    let wrong = ann.send(&setup, CONFIRM, &[("code", "123")]).await;
    assert_snapshot!(
        wrong.error("code"),
        @"422 ✗ Incorrect code. Enter the current code from your authenticator app."
    );
    let app = TotpSecret::parse(&setup.content("totp")).unwrap();
    let code = app.code(site.cx().db.now());
    let enabled = ann.send(&setup, CONFIRM, &[("code", &code)]).await;
    assert_eq!(enabled.content("codes").matches("<li>").count(), 10);
    assert_snapshot!(ann.get(SECURITY).await.section("two-factor"), @"
    200
    Two-factor authentication
    On
    Signing in requires a code from your authenticator app. Unused recovery codes: 10.
    Generate new recovery codes
    Your password []
    Your existing codes will stop working.
    [x] Sign out all other sessions
    (Generate codes)
    Disable
    Your password []
    [x] Sign out all other sessions
    (Disable two-factor authentication)
    ");
    assert_snapshot!(
        ann.send(&setup, CONFIRM, &[("code", &code)]).await.head(),
        @"303 /settings/security"
    );
    let again = ann.send(&page, BEGIN, &[("begin_password", PASSWORD)]).await;
    assert_snapshot!(
        again.notice(),
        @"409 ✗ Two-factor authentication is already enabled. Disable it first."
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn recovery_codes_are_renewed_and_two_factor_authentication_disabled() {
    let site = Site::new().await;
    let ann = site.owner("ann@example.com").await;
    let (first, _) = ann.set_up_two_factor().await;
    let page = ann.get(SECURITY).await;
    let wrong = ann.send(&page, CODES, &[("codes_password", "wrong")]).await;
    assert_snapshot!(wrong.error("codes_password"), @"422 ✗ Incorrect password.");
    let codes = ann.send(&page, CODES, &[("codes_password", PASSWORD)]).await;
    assert_eq!(codes.content("codes").matches("<li>").count(), 10);
    assert_ne!(codes.content("codes"), first.content("codes"));
    let wrong = ann.send(&page, DISABLE, &[("off_password", "wrong")]).await;
    assert_snapshot!(wrong.error("off_password"), @"422 ✗ Incorrect password.");
    let off = ann.send(&page, DISABLE, &[("off_password", PASSWORD)]).await;
    assert_snapshot!(ann.follow(&off).await.notice(), @"200 Two-factor authentication disabled.");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sessions_are_listed_and_ended() {
    let site = Site::new().await;
    let ann = site.owner("ann@example.com").await;
    let [one, two] = [site.sign_in("ann@example.com").await, site.sign_in("ann@example.com").await];
    let page = ann.get(SECURITY).await;
    assert_snapshot!(page.section("sessions"), @"
    200
    Active sessions
    (Sign out all other sessions)
    curl/8.5.0
    192.0.2.1 Signed in DATE Last active DATE
    (Sign out curl/8.5.0)
    curl/8.5.0
    192.0.2.1 Signed in DATE Last active DATE
    (Sign out curl/8.5.0)
    curl/8.5.0 Current session
    192.0.2.1 Signed in DATE Last active DATE
    ");
    let ended = ann.send(&page, "/settings/security/sessions/end", &[]).await;
    assert_snapshot!(ann.follow(&ended).await.notice(), @"200 Session signed out.");
    let signed_in = [one.get("/overview").await.status, two.get("/overview").await.status];
    assert_eq!(signed_in.iter().filter(|s| **s == 200).count(), 1);
    let ended = ann.send(&page, "/settings/security/sessions/others", &[]).await;
    assert_snapshot!(ann.follow(&ended).await.notice(), @"200 All other sessions were signed out.");
    for other in [one, two] {
        assert_eq!(other.get("/overview").await.head(), "303 /sign-in?next=%2Foverview");
    }
    let invalid = ann.submit("/settings/security/sessions/end", &[("id", "x")]).await;
    assert_snapshot!(invalid.head(), @"400");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_pending_secret_belongs_to_its_session_and_expires() {
    let site = Site::new().await;
    let ann = site.owner("ann@example.com").await;
    let changed = ann.fill(SECURITY, CHANGE, &[("password", PASSWORD)]).await;
    ann.follow(&changed).await;
    ann.fill(SECURITY, BEGIN, &[("begin_password", PASSWORD)]).await;
    let other = site.sign_in("ann@example.com").await;
    assert!(!other.get(SECURITY).await.has("id=\"totp\""), "shown in another session");
    let setup = ann.get(SECURITY).await;
    let app = TotpSecret::parse(&setup.content("totp")).unwrap();
    site.db.clock.advance(Duration::from_secs(15 * 60));
    assert!(!ann.get(SECURITY).await.has("id=\"totp\""), "shown after a quarter of an hour");
    let code = app.code(site.cx().db.now());
    ann.send(&setup, CONFIRM, &[("code", &code)]).await;
    assert!(ann.get(SECURITY).await.has(BEGIN), "an old secret was confirmed");
    // A new password drops a pending secret.
    ann.fill(SECURITY, BEGIN, &[("begin_password", PASSWORD)]).await;
    let typed = [("current", PASSWORD), ("password", "nine blue kettles")];
    ann.fill(SECURITY, CHANGE, &typed).await;
    let pending = "SELECT CAST(count(*) AS text) FROM users WHERE totp_secret IS NOT NULL";
    assert_eq!(site.db.query_raw(pending).await, [["0"]]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_change_of_the_second_factor_ends_other_sessions() {
    let site = Site::new().await;
    let ann = site.owner("ann@example.com").await;
    ann.set_up_two_factor().await;
    for (end_others, status) in [("", 200), ("yes", 303)] {
        let other = site.sign_in("ann@example.com").await;
        let typed = [("codes_password", PASSWORD), ("end_others", end_others)];
        assert_eq!(ann.fill(SECURITY, CODES, &typed).await.status, 200);
        assert_eq!(other.get("/overview").await.status, status);
    }
}
