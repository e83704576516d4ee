//! The second step of signing in: set up with an app, asked for, and lost.

use crate::browser::{Browser, Page};
use crate::database::{Engine, each_engine};
use crate::entrance::{HOME, PASSWORD, sign_in, sign_up};
use crate::server::Server;
use heliograph_domain::time::Timestamp;
use heliograph_domain::totp::TotpSecret;
use std::time::{SystemTime, UNIX_EPOCH};

each_engine!(second_step: it_is_asked_for_when_a_code_confirmed_it each_code_works_once
    who_has_the_password_switches_it_off);

const HERE: &str = "/settings/security";

/// What an app shows, so many steps from now.
#[expect(clippy::disallowed_methods, reason = "an app has a clock of its own")]
fn shown(app: &TotpSecret, steps: i64) -> String {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_millis();
    app.code(Timestamp(i64::try_from(now).unwrap() + steps * 30_000))
}

/// What the page shows for an app to be set up with.
fn scanned(page: &Page) -> TotpSecret {
    let text = page.text();
    assert!(text.contains("<svg") && !text.contains("<?xml"), "{text}");
    let (_, rest) = text.split_once("id=\"totp\">").unwrap_or_else(|| panic!("{text}"));
    TotpSecret::parse(rest.split('<').next().unwrap()).unwrap()
}

/// Sets an app up; the recovery codes.
pub(crate) fn set_up(browser: &Browser<'_>) -> (TotpSecret, Vec<String>) {
    let page = browser.open(HERE);
    let begin = "/settings/security/second-step";
    let wrong = browser.send(&page, begin, &[("begin_password", "not my password")]);
    assert!(
        wrong.answer.status == 422 && wrong.says("This is not your password"),
        "{}",
        wrong.text()
    );
    let page = browser.send(&page, begin, &[("begin_password", PASSWORD)]);
    let app = scanned(&page);
    let wrong =
        browser.send(&page, "/settings/security/second-step/confirm", &[("code", "000000")]);
    assert!(wrong.answer.status == 422 && wrong.says("This code is wrong"), "{}", wrong.text());
    let code = shown(&app, -1);
    let page = browser.send(&page, "/settings/security/second-step/confirm", &[("code", &code)]);
    (app, codes(&page))
}

fn codes(page: &Page) -> Vec<String> {
    let text = page.text();
    let (_, list) = text.split_once("id=\"codes\">").unwrap_or_else(|| panic!("{text}"));
    let list = list.split("</ul>").next().unwrap();
    let all: Vec<_> =
        list.split("<li>").skip(1).map(|l| l.split('<').next().unwrap().to_owned()).collect();
    assert_eq!(all.len(), 10, "{list}");
    all
}

/// The page of the second step, after the password.
fn asked<'a>(server: &'a Server, email: &str) -> (Browser<'a>, Page) {
    let browser = Browser::new(server);
    let page = sign_in(&browser, email, PASSWORD);
    assert!(page.path.starts_with("/sign-in/code/"), "{}", page.path);
    (browser, page)
}

pub(crate) fn answer(browser: &Browser<'_>, page: &Page, code: &str) -> Page {
    let action = page.path.split('?').next().unwrap();
    browser.send(page, action, &[("code", code)])
}

fn it_is_asked_for_when_a_code_confirmed_it(engine: Engine) {
    let server = Server::start(engine);
    let ann = sign_up(&server, "ann@example.com");
    // Begun, and not confirmed: nothing is asked for.
    let page = ann.open(HERE);
    let begun = [("begin_password", PASSWORD)];
    scanned(&ann.send(&page, "/settings/security/second-step", &begun));
    assert_eq!(sign_in(&Browser::new(&server), "ann@example.com", PASSWORD).path, HOME);
    let page = ann.open(HERE);
    let app = scanned(&page);
    let confirm = "/settings/security/second-step/confirm";
    let code = shown(&app, -1);
    let page = ann.send(&page, confirm, &[("code", &code)]);
    codes(&page);
    assert!(!ann.open(HERE).says(&codes(&page)[0]), "codes are shown twice");
    let sealed =
        "SELECT count(*) FROM users WHERE totp_secret LIKE 'v1.%' AND totp_step IS NOT NULL";
    assert_eq!(server.database.number(sealed), 1);
    // The password alone is no session.
    let (browser, page) = asked(&server, "ann@example.com");
    assert!(browser.open(HERE).path.starts_with("/sign-in"));
    let wrong = answer(&browser, &page, "000000");
    assert!(wrong.answer.status == 422 && wrong.says("This code is wrong"), "{}", wrong.text());
    assert_eq!(answer(&browser, &page, &shown(&app, 0)).path, HOME);
    // The way to it works once as well.
    assert_eq!(browser.open(&page.path).answer.status, 404);
}

fn each_code_works_once(engine: Engine) {
    let server = Server::start(engine);
    let ann = sign_up(&server, "ann@example.com");
    let (app, recovery) = set_up(&ann);
    let code = shown(&app, 1);
    let (browser, page) = asked(&server, "ann@example.com");
    assert_eq!(answer(&browser, &page, &code).path, HOME);
    for used in [code, shown(&app, 0)] {
        let (browser, page) = asked(&server, "ann@example.com");
        assert_eq!(answer(&browser, &page, &used).answer.status, 422, "{used} was used before");
    }
    let (browser, page) = asked(&server, "ann@example.com");
    assert_eq!(answer(&browser, &page, &recovery[3].to_uppercase()).path, HOME);
    assert!(browser.open(HERE).says("9 of your recovery codes"));
    let hashes = "SELECT count(*) FROM recovery_codes";
    assert_eq!(server.database.number(hashes), 9);
}

fn who_has_the_password_switches_it_off(engine: Engine) {
    let server = Server::start(engine);
    let ann = sign_up(&server, "ann@example.com");
    let (_, old) = set_up(&ann);
    let page = ann.open(HERE);
    let renew = "/settings/security/recovery-codes";
    assert_eq!(ann.send(&page, renew, &[("codes_password", "not my password")]).answer.status, 422);
    let fresh = codes(&ann.send(&page, renew, &[("codes_password", PASSWORD)]));
    let (browser, asked_page) = asked(&server, "ann@example.com");
    assert_eq!(answer(&browser, &asked_page, &old[0]).answer.status, 422);
    assert_eq!(answer(&browser, &asked_page, &fresh[0]).path, HOME);
    let off = "/settings/security/second-step/off";
    let wrong = ann.send(&page, off, &[("off_password", "not my password")]);
    assert!(
        wrong.answer.status == 422 && wrong.says("This is not your password"),
        "{}",
        wrong.text()
    );
    assert!(ann.send(&page, off, &[("off_password", PASSWORD)]).says("The second step is off"));
    assert_eq!(sign_in(&Browser::new(&server), "ann@example.com", PASSWORD).path, HOME);
    assert_eq!(server.database.number("SELECT count(*) FROM recovery_codes"), 0);
    // Who came in by a link has no password to be the first step.
    let demo = Browser::greeted(&server);
    assert!(demo.open(HERE).says("Set a password first"));
}
