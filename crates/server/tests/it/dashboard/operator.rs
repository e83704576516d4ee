//! The pages for operators: carriers, queue and accounts.

use crate::support::browser::Browser;
use crate::support::server::Server;
use crate::support::wait::eventually;
use serde_json::json;

const ANN: &str = "ann@example.com";

#[test]
fn operators_see_the_state_of_carriers_and_queue() {
    let carrier = "[[carriers]]\nname = \"far\"\nkind = \"smpp\"\nhost = \"127.0.0.1\"\nport = 1\n\
        system_id = \"a\"\npassword = \"b\"\n[[routes]]\nprefix = \"\"\ncarriers = [\"far\"]\n";
    let server = Server::with(carrier);
    let operator = Browser::of_operator(&server);
    let page = eventually("both carriers have a state", || {
        let page = operator.open("/operator/carriers");
        (page.contains("1 of 1 bound") && page.contains("0 of 1 bound")).then_some(page)
    });
    assert!(page.contains("bind to 127.0.0.1:1 failed: Connection refused"), "{}", page.text());
    assert!(operator.open("/operator/queue").contains("Queue is empty"));
    let live = server.live_key(ANN, "10");
    server.accepted(
        &live,
        &json!({ "originator": "Shop", "recipient": "+447700900123", "text": "Hi" }),
    );
    assert_eq!(operator.open("/operator/queue").tile("Waiting"), "1");
    let ann = Browser::of(&server, ANN);
    for page in ["carriers", "queue", "accounts"] {
        let page = ann.open(&format!("/operator/{page}"));
        assert_eq!(page.response.status, 404);
        assert!(!page.contains("far") && !ann.open("/overview").contains("Operator"));
    }
}

#[test]
fn operators_add_credit_once_and_create_links() {
    let server = Server::start();
    server.stdout(&["account", "create", "--email", ANN]);
    let operator = Browser::of_operator(&server);
    // The search matches parts of the account name and of members' addresses; `%` and `_` are
    // ordinary characters.
    for (part, found) in
        [("ANN@", true), ("nn@exam", true), ("%25", false), ("a_n", false), ("x", true)]
    {
        let page = operator.open(&format!("/operator/accounts?find={part}"));
        let hit = page.contains("/operator/accounts/2/credit");
        assert_eq!(hit, found, "{part}: {}", page.text());
        assert_eq!(page.contains("No matching account"), !found, "{part}");
    }
    let page = operator.open("/operator/accounts?find=ann");
    assert!(!page.contains("/operator/accounts/1/credit"), "{}", page.text());
    let action = "/operator/accounts/2/credit";
    let wrong = operator.send(&page, action, &[("amount", "10,5"), ("note", "a gift")]);
    assert_eq!(wrong.response.status, 422);
    assert!(
        wrong.contains("'10,5' is not a valid amount") && wrong.contains("a gift"),
        "{}",
        wrong.text()
    );
    let long = "日".repeat(201);
    let wrong = operator.send(&page, action, &[("amount", "10"), ("note", &long)]);
    assert_eq!(wrong.response.status, 422);
    assert!(wrong.contains("The note must not exceed 200 characters."), "{}", wrong.text());
    let too_much = operator.send(&page, action, &[("amount", "-1")]);
    assert!(too_much.contains("Insufficient balance"), "{}", too_much.text());
    for _ in 0..2 {
        let done = operator.send(&page, action, &[("amount", "10.50")]);
        assert!(
            done.contains("10.5000 EUR added to ") && done.contains("The balance is 10.5000 EUR."),
            "{}",
            done.text()
        );
        assert!(!done.contains("21.0000 EUR"));
    }
    let ann = Browser::of(&server, ANN);
    assert_eq!(ann.post(action, &[("csrf", &ann.open("/overview").csrf())]).status, 404);

    let made = operator.send(&page, "/operator/accounts/2/link", &[]);
    let link = made.text();
    let link = link.split_whitespace().find_map(|w| w.split_once("/sign-in/").map(|(_, t)| t));
    let token = link.unwrap().split('<').next().unwrap().to_owned();
    let fresh = Browser::new(&server);
    let path = format!("/sign-in/{token}");
    // Opening the link does not use it.
    let page = fresh.open(&path);
    assert!(page.contains(ANN) && fresh.open("/overview").path.starts_with("/sign-in"));
    assert_eq!(fresh.send(&page, &path, &[]).path, "/phone");
    assert!(fresh.open("/overview").contains(ANN));
    assert_eq!(fresh.open(&path).path, "/overview", "a browser that is signed in continues");
    assert_eq!(Browser::new(&server).get(&path).status, 404);
    let again = Browser::new(&server);
    let posted = again.send(&page, &path, &[]);
    assert!(posted.response.status == 403 || posted.response.status == 404, "{}", posted.text());
    let log = ann.open("/settings/audit-log").text().to_lowercase();
    assert!(log.contains("credit added") && log.contains("sign-in link created"), "{log}");
    server.check();
}
