//! Test and live mode.

use crate::support::browser::Browser;
use crate::support::server::Server;

/// The mode is switched in one tab, and a form is sent from another tab.
#[test]
fn a_form_of_another_mode_is_rejected() {
    let server = Server::start();
    let browser = Browser::of_operator(&server);
    let stale = browser.open("/settings/webhooks");
    let live = browser.send(&stale, "/mode", &[("mode", "live")]);
    assert_eq!(live.response.status, 200);
    let fields = [("url", "https://example.com/hook"), ("kind", "message.failed")];
    let refused = browser.send(&stale, "/settings/webhooks", &fields);
    assert_eq!(refused.response.status, 409);
    assert!(refused.contains("switched account or mode"), "{}", refused.text());
    assert_eq!(server.list(&["webhook", "list", "--account", "demo@localhost"]).len(), 0);
    // Mode switch and sign-out work from any page.
    assert_eq!(browser.send(&stale, "/mode", &[("mode", "test")]).response.status, 200);
}
