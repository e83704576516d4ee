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
        json!({ "id": 2, "name": "ann@example.com", "currency": "EUR", "available": "1.5000",
                "reserved": "0.0000", "createdAt": created })
    );
    let (_, stdout, _) = server.run_text(&["account", "list"]);
    assert_eq!(stdout.lines().count(), 3);
    assert!(stdout.contains("2\tann@example.com\t1.5000 EUR\t0.0000 reserved\n"), "{stdout}");
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
    assert!(text.contains("webhook_endpoints\t1 used of 10\tdefault\n"), "{text}");
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
