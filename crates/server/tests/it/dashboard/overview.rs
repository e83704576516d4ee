//! The overview.

use crate::support::browser::Browser;
use crate::support::server::Server;
use crate::support::wait::eventually;
use serde_json::json;

#[test]
fn the_overview_counts_messages() {
    let server = Server::start();
    let browser = Browser::of_operator(&server);
    let empty = browser.open("/overview");
    assert!(
        empty.contains("No messages in this period") && empty.contains("0 of 3"),
        "{}",
        empty.text()
    );
    let key = server.key();
    for text in ["Hello", "Once more"] {
        let message = json!({ "originator": "Shop", "recipient": "+447700900123", "text": text });
        server.accepted(&key, &message);
    }
    for range in ["24h", "7d", "30d", "90d", "nonsense"] {
        let page = eventually("both messages are delivered", || {
            let page = browser.open(&format!("/overview?range={range}"));
            (page.contains("Delivery rate") && page.tile("Delivery rate") == "100%").then_some(page)
        });
        assert_eq!(page.tile("Accepted"), "2", "{range}");
        assert!(
            page.contains("2 of 3") && page.tile("Median delivery time").ends_with('s'),
            "{range}"
        );
    }
    server.check();
}
