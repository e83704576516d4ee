//! Two-factor authentication: setup, sign-in, recovery codes and removal.

use crate::support::browser::{Browser, Page};
use crate::support::server::Server;
use crate::support::sign_in::{HOME, PASSWORD, sign_in, sign_up};
use crate::support::two_factor::{SECURITY, app_code, app_on, codes, send_code, set_up};

/// Signs in with the password; returns the page that asks for a code.
fn password_step<'a>(server: &'a Server, email: &str) -> (Browser<'a>, Page) {
    let browser = Browser::new(server);
    let page = sign_in(&browser, email, PASSWORD);
    assert!(page.path.starts_with("/sign-in/code/"), "{}", page.path);
    (browser, page)
}

#[test]
fn sign_in_asks_for_a_code_after_confirmed_setup() {
    let server = Server::start();
    let ann = sign_up(&server, "ann@example.com");
    // A setup that is not confirmed has no effect.
    let page = ann.open(SECURITY);
    let begun = [("begin_password", PASSWORD)];
    app_on(&ann.send(&page, "/settings/security/two-factor", &begun));
    assert_eq!(sign_in(&Browser::new(&server), "ann@example.com", PASSWORD).path, HOME);
    let page = ann.open(SECURITY);
    let app = app_on(&page);
    let confirm = "/settings/security/two-factor/confirm";
    let code = app_code(&app, -1);
    let page = ann.send(&page, confirm, &[("code", &code)]);
    codes(&page);
    assert!(!ann.open(SECURITY).contains(&codes(&page)[0]), "the codes are shown again");
    let sealed =
        "SELECT count(*) FROM users WHERE totp_secret LIKE 'v1.%' AND totp_step IS NOT NULL";
    assert_eq!(server.database.number(sealed), 1);
    // The password alone does not create a session.
    let (browser, page) = password_step(&server, "ann@example.com");
    assert!(browser.open(SECURITY).path.starts_with("/sign-in"));
    let wrong = send_code(&browser, &page, "000000");
    assert!(wrong.response.status == 422 && wrong.contains("Incorrect code"), "{}", wrong.text());
    assert_eq!(send_code(&browser, &page, &app_code(&app, 0)).path, HOME);
    // The link to the code page works once, too.
    assert_eq!(browser.open(&page.path).response.status, 404);
}

#[test]
fn each_code_works_once() {
    let server = Server::start();
    let ann = sign_up(&server, "ann@example.com");
    let (app, recovery) = set_up(&ann);
    let code = app_code(&app, 1);
    let (browser, page) = password_step(&server, "ann@example.com");
    assert_eq!(send_code(&browser, &page, &code).path, HOME);
    for used in [code, app_code(&app, 0)] {
        let (browser, page) = password_step(&server, "ann@example.com");
        assert_eq!(
            send_code(&browser, &page, &used).response.status,
            422,
            "{used} was used before"
        );
    }
    let (browser, page) = password_step(&server, "ann@example.com");
    assert_eq!(send_code(&browser, &page, &recovery[3].to_uppercase()).path, HOME);
    assert!(browser.open(SECURITY).contains("Unused recovery codes: 9"));
    let hashes = "SELECT count(*) FROM recovery_codes";
    assert_eq!(server.database.number(hashes), 9);
}

#[test]
fn the_password_disables_two_factor() {
    let server = Server::start();
    let ann = sign_up(&server, "ann@example.com");
    let (_, old) = set_up(&ann);
    let page = ann.open(SECURITY);
    let renew = "/settings/security/recovery-codes";
    assert_eq!(
        ann.send(&page, renew, &[("codes_password", "not my password")]).response.status,
        422
    );
    let fresh = codes(&ann.send(&page, renew, &[("codes_password", PASSWORD)]));
    let (browser, code_page) = password_step(&server, "ann@example.com");
    assert_eq!(send_code(&browser, &code_page, &old[0]).response.status, 422);
    assert_eq!(send_code(&browser, &code_page, &fresh[0]).path, HOME);
    let off = "/settings/security/two-factor/disable";
    let wrong = ann.send(&page, off, &[("off_password", "not my password")]);
    assert!(
        wrong.response.status == 422 && wrong.contains("Incorrect password"),
        "{}",
        wrong.text()
    );
    assert!(
        wrong.response.status == 422 && wrong.contains("Incorrect password"),
        "{}",
        wrong.text()
    );
    assert!(
        ann.send(&page, off, &[("off_password", PASSWORD)])
            .contains("Two-factor authentication disabled")
    );
    assert_eq!(sign_in(&Browser::new(&server), "ann@example.com", PASSWORD).path, HOME);
    assert_eq!(server.database.number("SELECT count(*) FROM recovery_codes"), 0);
    // A user without a password cannot enable two-factor authentication.
    let demo = Browser::of_operator(&server);
    assert!(demo.open(SECURITY).contains("Set a password first"));
}
