//! `heliograph number`, and the numbers of the configuration.

use crate::support::server::Server;
use serde_json::json;

/// Names another account in the configuration.
fn configure(server: &Server, account: &str) {
    let config = format!("[[numbers]]\nnumber = '447700900000'\naccount = {account}\n");
    std::fs::write(server.home.path().join("heliograph.toml"), config).unwrap();
}

#[test]
fn a_number_is_moved_only_by_command() {
    let mut server = Server::new("");
    for email in ["ann@example.com", "bob@example.com"] {
        server.stdout(&["account", "create", "--email", email]);
    }
    configure(&server, "'ann@example.com'");
    server.launch();
    server.wait_until_ready();
    assert!(server.stop().success());
    configure(&server, "2");
    let serve = ["serve", "--listen", "127.0.0.1:0"];
    let why = server.fails_to_start(&serve);
    for words in [
        "447700900000 belongs to account 1 (ann@example.com), but [[numbers]] names account 2 (bob@example.com)",
        "'heliograph number move 447700900000 --account 2'",
        "account = \"1\"",
    ] {
        assert!(why.contains(words), "{why}");
    }
    let listed = |account: i32, name: &str| json!([{ "number": "447700900000", "account": account, "accountName": name }]);
    assert_eq!(server.json(&["number", "list"]), listed(1, "ann@example.com"));
    let moved = server.json(&["number", "move", "447700900000", "--account", "bob@example.com"]);
    assert_eq!(moved, json!({ "number": "447700900000", "account": 2, "previousAccount": 1 }));
    assert_eq!(server.json(&["number", "list"]), listed(2, "bob@example.com"));
    server.launch();
    server.wait_until_ready();
    assert!(server.stop().success());
    let why = server.fails(&["number", "move", "447700900001", "--account", "1"]);
    assert!(why.contains("447700900001 is not assigned to any account"), "{why}");
    configure(&server, "7");
    assert!(server.fails_to_start(&serve).contains("numbers: no account has the ID 7"));
    configure(&server, "'Ann'");
    assert!(server.fails_to_start(&serve).contains("expected the ID of an account"));
}
