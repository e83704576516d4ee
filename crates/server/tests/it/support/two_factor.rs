//! Two-factor authentication: an authenticator app, and its setup in the dashboard.

use crate::support::browser::{Browser, Page};
use crate::support::sign_in::PASSWORD;
use heliograph_domain::time::Timestamp;
use heliograph_domain::totp::TotpSecret;
use std::time::{SystemTime, UNIX_EPOCH};

pub(crate) const SECURITY: &str = "/settings/security";

/// Returns the code that an app shows, this number of steps from now.
#[expect(clippy::disallowed_methods, reason = "an app has a clock of its own")]
pub(crate) fn app_code(app: &TotpSecret, steps: i64) -> String {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_millis();
    app.code(Timestamp(i64::try_from(now).unwrap() + steps * 30_000))
}

/// Returns the secret on the setup page.
pub(crate) fn app_on(page: &Page) -> TotpSecret {
    let text = page.text();
    assert!(text.contains("<svg") && !text.contains("<?xml"), "{text}");
    let (_, rest) = text.split_once("id=\"totp\">").unwrap_or_else(|| panic!("{text}"));
    TotpSecret::parse(rest.split('<').next().unwrap()).unwrap()
}

/// Enables two-factor authentication; returns the app and the recovery codes.
pub(crate) fn set_up(browser: &Browser<'_>) -> (TotpSecret, Vec<String>) {
    let page = browser.open(SECURITY);
    let begin = "/settings/security/two-factor";
    let wrong = browser.send(&page, begin, &[("begin_password", "not my password")]);
    assert!(
        wrong.response.status == 422 && wrong.contains("Incorrect password"),
        "{}",
        wrong.text()
    );
    let page = browser.send(&page, begin, &[("begin_password", PASSWORD)]);
    let app = app_on(&page);
    let wrong = browser.send(&page, "/settings/security/two-factor/confirm", &[("code", "000000")]);
    assert!(wrong.response.status == 422 && wrong.contains("Incorrect code"), "{}", wrong.text());
    let code = app_code(&app, -1);
    let page = browser.send(&page, "/settings/security/two-factor/confirm", &[("code", &code)]);
    (app, codes(&page))
}

/// Returns the ten recovery codes on a page.
pub(crate) fn codes(page: &Page) -> Vec<String> {
    let text = page.text();
    let (_, list) = text.split_once("id=\"codes\">").unwrap_or_else(|| panic!("{text}"));
    let list = list.split("</ul>").next().unwrap();
    let all: Vec<_> =
        list.split("<li>").skip(1).map(|l| l.split('<').next().unwrap().to_owned()).collect();
    assert_eq!(all.len(), 10, "{list}");
    all
}

/// Sends a code.
pub(crate) fn send_code(browser: &Browser<'_>, page: &Page, code: &str) -> Page {
    let action = page.path.split('?').next().unwrap();
    browser.send(page, action, &[("code", code)])
}
