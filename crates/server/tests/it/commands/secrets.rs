//! Secrets, which neither the log nor a command shows.

use crate::support::api::hello;
use crate::support::server::Server;
use crate::support::smsc::Smsc;
use crate::support::wait::eventually;

/// A secret with the maximum length of an SMPP password.
const CANARY: &str = "c4n4ry-X";

/// Adds a password to the database URL, if there is one.
fn with_password(server: &Server) -> String {
    let url = server.database.url().unwrap_or("sqlite:data/heliograph.db".to_owned());
    match url.split_once('@') {
        Some((user, rest)) => format!("{}:{CANARY}@{rest}", user.trim_end_matches(':')),
        None => url,
    }
}

/// Runs a server and all commands with the canary as every secret, at log level `trace`.
#[test]
fn no_output_contains_a_secret() {
    let smsc = Smsc::start(&[]);
    let config = smsc.config(10).replace("system_id", &format!("password = '{CANARY}'\nsystem_id"));
    let mut server = Server::new(&format!("[telemetry]\nlog = 'trace'\n{config}"));
    let url = with_password(&server);
    server.launch_with_variable("HELIOGRAPH_DATABASE__URL", &url);
    server.wait_until_ready();
    let mut all_output = String::new();
    let demo = "demo@localhost";
    for arguments in [
        &["config"][..],
        &["account", "list"],
        &["account", "create", "--email", "ann@example.com"],
        &["credit", "--account", demo, "--amount", "1"],
        &["key", "create", "--account", demo, "--live"],
        &["key", "list", "--account", demo],
        &["webhook", "list", "--account", demo],
        &["webhook", "off", "7"],
        &["check"],
        &["migrate"],
        &["backup", "one.db"],
        &["restore", "one.db"],
        &["help"],
    ] {
        for json in [&[][..], &["--json"]] {
            let mut command = server.command();
            command.args(json).args(arguments).env("HELIOGRAPH_DATABASE__URL", &url);
            all_output += &format!("{arguments:?}: {:?}\n", command.output().unwrap());
        }
    }
    let key = server.stdout(&["key", "create", "--account", demo, "--live"]);
    server.wait_until_ended(&key, &server.accepted(&key, &hello("+447700900123")));
    assert!(server.stop().success());
    let log = server.log();
    assert!(
        log.contains(" DEBUG ") && log.contains("bound carrier=remote"),
        "details are not logged"
    );
    assert!(!log.contains(CANARY), "{log}");
    assert!(!all_output.contains(CANARY), "{all_output}");
}

#[test]
fn missing_secrets_fail_at_start() {
    let mut server = Server::new(
        "[[carriers]]\nname = 'a'\nkind = 'smpp'\nhost = 'h'\npassword = { file = 'secrets/a' }",
    );
    // This includes nodes that do not need the secret.
    server.launch_with(&["serve", "--listen", "127.0.0.1:0", "--role", "web"]);
    assert_eq!(server.process().wait().code(), Some(1));
    let stderr = server.process().stderr.text();
    assert!(stderr.contains("password of 'a': failed to read the secret in secrets/a"), "{stderr}");
    // Commands that only read the database do not need it.
    server.stdout(&["account", "list"]);
    std::fs::create_dir(server.home.path().join("secrets")).unwrap();
    std::fs::write(server.home.path().join("secrets/a"), "hunter2\n").unwrap();
    server.launch_with(&["serve", "--listen", "127.0.0.1:0", "--role", "web"]);
    eventually("the server starts", || server.listen_address());
    assert!(server.stop().success());
}
