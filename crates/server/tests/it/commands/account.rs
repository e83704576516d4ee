//! `heliograph account`.

use crate::support::api::hello;
use crate::support::engine::Engine;
use crate::support::process::command;
use crate::support::server::Server;
use serde_json::json;

#[test]
fn accounts_are_created_and_listed() {
    let server = Server::start();
    let made = server.json(&["account", "create", "--email", " Ann@Example.com "]);
    let link = made["signInUrl"].as_str().unwrap();
    assert!(link.starts_with("http://127.0.0.1:8080/sign-in/"), "{link}");
    assert_eq!(
        made,
        json!({ "id": 2, "email": "ann@example.com", "currency": "EUR", "signInUrl": link })
    );
    let (code, stdout, _) = server.run_text(&["account", "create", "--email", "bob@example.com"]);
    assert!(
        code == Some(0) && stdout.starts_with("Created account 3 for bob@example.com (EUR)\n"),
        "{stdout}"
    );
    server.stdout(&["credit", "--account", "ann@example.com", "--amount", "1.5"]);
    let all = server.list(&["account", "list"]);
    let names: Vec<_> = all.iter().map(|a| a["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["demo@localhost", "ann@example.com", "bob@example.com"]);
    let created = &all[1]["createdAt"];
    assert!(created.as_str().unwrap().ends_with('Z'));
    assert_eq!(
        all[1],
        json!({ "id": 2, "name": "ann@example.com", "owners": ["ann@example.com"], "currency": "EUR",
                "available": "1.5000", "reserved": "0.0000", "createdAt": created })
    );
    let (_, stdout, _) = server.run_text(&["account", "list"]);
    assert_eq!(stdout.lines().count(), 3);
    let ann = stdout.lines().nth(1).unwrap();
    assert!(
        ann.starts_with("2\tann@example.com\tann@example.com\t1.5000 EUR\t0.0000 EUR\t20"),
        "{stdout}"
    );
    assert!(!ann.rsplit('\t').next().unwrap().contains('.'), "no milliseconds: {stdout}");
}

#[test]
fn an_account_is_named_by_its_id_or_by_the_owner_of_only_one() {
    let server = Server::start();
    server.stdout(&["account", "create", "--email", "ann@example.com"]);
    let ann = "(SELECT id FROM users WHERE email = 'ann@example.com')";
    let credit = |account: &str| {
        server.json(&["credit", "--account", account, "--amount", "1"])["account"].clone()
    };
    // An accepted invitation to an older account redirects nothing.
    server
        .database
        .change(&format!("INSERT INTO memberships (account, user_id, role) VALUES (1, {ann}, 3)"));
    assert_eq!([credit("ann@example.com"), credit("2"), credit("1")], [2, 2, 1]);
    server.database.change(&format!("UPDATE memberships SET role = 0 WHERE user_id = {ann}"));
    let commands = [
        &["credit", "--amount", "1"][..],
        &["key", "create"],
        &["key", "list"],
        &["webhook", "add", "--url", "https://example.com/"],
        &["webhook", "list"],
        &["listen"],
        &["message", "list"],
        &["optout", "list", "--test"],
        &["number", "move", "447700900000"],
    ];
    for command in commands {
        let named = |account| [command, &["--account", account]].concat();
        let why = server.fails(&named("ann@example.com"));
        assert!(
            why.contains("owns 2 accounts")
                && why.contains("1 (demo@localhost, owner); 2 (ann@example.com, owner)"),
            "{command:?}: {why}"
        );
        assert!(server.fails(&named("9")).contains("no account has the ID 9"), "{command:?}");
        assert_eq!(server.run(&named("Ann")).status.code(), Some(2), "{command:?}");
    }
    // A person who was removed from an account is no way to name it any more; its ID is.
    server.database.change(&format!("DELETE FROM memberships WHERE user_id = {ann}"));
    let why = server.fails(&["key", "list", "--account", "ann@example.com"]);
    assert!(why.contains("is not a member of any account"), "{why}");
    server.stdout(&["key", "create", "--account", "2"]);
    assert_eq!(server.json(&["account", "create", "--email", "ann@example.com"])["id"], 3);
    assert_eq!(credit("ann@example.com"), 3);
    server.check();
}

/// Checks the actions in the audit log of an account, the oldest first.
fn assert_audited(server: &Server, account: i64, actions: &[&str]) {
    let sql = format!("SELECT action FROM audit WHERE account = {account} ORDER BY id");
    let rows = server.database.rows(&sql);
    let alike = rows.iter().zip(actions).all(|(row, action)| row.contains(action));
    assert!(alike && rows.len() == actions.len(), "{rows:?}");
}

#[test]
fn commands_leave_audit_log_entries() {
    let mut server = Server::new("[[numbers]]\nnumber = '447700900000'\naccount = 1\n");
    server.stdout(&["account", "create", "--email", "bob@example.com"]);
    server.launch();
    server.wait_until_ready();
    server.stdout(&["account", "create", "--email", "ann@example.com"]);
    server.stdout(&["account", "link", "--email", "ann@example.com"]);
    server.stdout(&["account", "link", "--reset", "--email", "ann@example.com"]);
    server.stdout(&["credit", "--account", "2", "--amount", "1"]);
    server.stdout(&["number", "move", "447700900000", "--account", "2"]);
    server.stdout(&["optout", "add", "+447700900123", "--account", "2", "--live"]);
    server.stdout(&["optout", "remove", "+447700900123", "--account", "2", "--live"]);
    assert_audited(
        &server,
        2,
        &[
            "account_opened",
            "sign_in_link_created",
            "password_reset_link_created",
            "credit_added",
            "number_assigned",
            "optout_added",
            "optout_removed",
        ],
    );
    assert_audited(&server, 1, &["account_opened", "number_assigned", "number_removed"]);
}

#[test]
fn limits_of_an_account_are_shown_and_changed() {
    let server = Server::start();
    let (account, url) = (["--account", "demo@localhost"], "https://93.184.216.34/");
    let limits = |options: &[&str]| {
        let all = server.list(&[&["account", "limits"], &account[..], options].concat());
        let all: Vec<_> = all.into_iter().filter(|l| l["limit"] == "webhook_endpoints").collect();
        all.into_iter().next().unwrap()
    };
    let expected = |max: u32, used: u32, overridden: bool| json!({ "limit": "webhook_endpoints", "max": max, "used": used, "overridden": overridden });
    assert_eq!(limits(&[]), expected(10, 0, false));
    assert_eq!(limits(&["--set", "webhook_endpoints=1"]), expected(1, 0, true));
    let add = |url: &str| {
        let what = ["webhook", "add", "--url", url];
        server.run_text(&[&what[..], &account[..]].concat())
    };
    assert_eq!(add(url).0, Some(0));
    let (code, _, why) = add("https://93.184.216.34/other");
    assert!(code == Some(1) && why.contains("reached its limit of 1 webhook endpoints"), "{why}");
    assert_eq!(limits(&["--reset", "webhook_endpoints"]), expected(10, 1, false));
    let (code, _, why) = add(url);
    assert!(code == Some(1) && why.contains("endpoint 1 already has this URL"), "{why}");
    let (_, text, _) = server.run_text(&["account", "limits", "--account", "demo@localhost"]);
    assert!(text.contains("webhook_endpoints\t1\t10\tdefault\n"), "{text}");
    let wrong = ["--set", "webhook_endpoint=1"];
    let (code, _, why) =
        server.run_text(&[&["account", "limits"], &account[..], &wrong[..]].concat());
    assert!(code == Some(2) && why.contains("unknown limit 'webhook_endpoint'"), "{why}");
}

/// Accounts can be created before the first start; then there is no welcome message.
#[test]
fn accounts_can_be_created_before_the_first_start() {
    let mut server = Server::new("");
    // A command that only reads does not create a database.
    if Engine::current() == Engine::Sqlite {
        let (code, _, why) = server.run_text(&["check"]);
        assert_eq!((code, why.contains("no database at")), (Some(1), true), "{why}");
    }
    server.stdout(&["account", "create", "--email", "ann@example.com"]);
    let key = server.stdout(&["key", "create", "--account", "ann@example.com"]);
    server.check();
    server.launch();
    server.wait_until_ready();
    server.wait_until_ended(&key, &server.accepted(&key, &hello("+447700900123")));
    server.process().terminate();
    assert!(server.process().wait().success());
    assert_eq!(server.process().stdout.text(), "");
    // A closed pipe is not an error.
    let script = "\"$0\" account list | true; exit \"${PIPESTATUS[0]}\"";
    let mut pipe = std::process::Command::new("bash");
    pipe.args(["-c", script]).arg(command().get_program()).current_dir(server.home.path());
    pipe.envs(server.command().get_envs().filter_map(|(name, value)| Some((name, value?))));
    assert!(pipe.status().unwrap().success());
}
