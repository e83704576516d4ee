//! `heliograph credit`.

use crate::support::server::Server;
use serde_json::json;

#[test]
fn credit_is_added_and_removed() {
    let server = Server::start();
    let credit = |amount: &str| {
        let amount = format!("--amount={amount}");
        server.run_text(&["credit", "--account", "demo@localhost", &amount, "--note", "by hand"])
    };
    let balance = |available: &str| {
        format!("Account 1 (demo@localhost): {available} EUR available, 0.0000 reserved\n")
    };
    for (amount, available) in
        [("25.00", "25.0000"), ("0.0001", "25.0001"), ("-5", "20.0001"), ("-20.0001", "0.0000")]
    {
        assert_eq!(credit(amount).1, balance(available));
    }
    let (code, stdout, stderr) = credit("-0.0001");
    assert_eq!((code, stdout.as_str()), (Some(1), ""));
    assert!(stderr.contains("insufficient balance: at most 0.0000 EUR can be removed"), "{stderr}");
    assert_eq!(credit("0").0, Some(2));
    let (long, account) = ("日".repeat(201), ["--account", "demo@localhost"]);
    let long =
        server.run_text(&[&["credit", "--amount", "1", "--note", &long], &account[..]].concat());
    assert_eq!(long.0, Some(2));
    assert!(long.2.contains("the note must not exceed 200 characters"), "{}", long.2);
    let json = server.json(&["credit", "--account", "DEMO@localhost", "--amount", "3"]);
    assert_eq!(
        json,
        json!({ "account": 1, "available": "3.0000", "reserved": "0.0000", "currency": "EUR" })
    );
    server.check();
}
