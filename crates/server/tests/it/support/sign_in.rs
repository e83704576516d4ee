//! Signing up and in with an email address and a password.

use crate::support::browser::{Browser, Page};
use crate::support::server::Server;

pub(crate) const PASSWORD: &str = "otter velvet tram";
/// The page after sign-in.
pub(crate) const HOME: &str = "/overview";

/// Signs up in a new browser.
pub(crate) fn sign_up<'a>(server: &'a Server, email: &str) -> Browser<'a> {
    let browser = Browser::new(server);
    let page = browser.open("/sign-up");
    let page = browser.send(&page, "/sign-up", &[("email", email), ("password", PASSWORD)]);
    assert_eq!((page.path.as_str(), page.response.status), ("/phone", 200), "{}", page.text());
    browser
}

/// Fills in the sign-in form.
pub(crate) fn sign_in(browser: &Browser<'_>, email: &str, password: &str) -> Page {
    let page = browser.open("/sign-in");
    browser.send(&page, "/sign-in", &[("email", email), ("password", password)])
}
