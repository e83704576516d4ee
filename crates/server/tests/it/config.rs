//! `heliograph config`: what holds and why; and secrets, which nothing ever shows.

use crate::database::{Engine, each_engine};
use crate::patience::eventually;
use crate::process::command;
use crate::send_sms::hello;
use crate::server::Server;
use crate::smsc::Smsc;
use serde_json::{Value, json};
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::process::Output;
use tempfile::TempDir;

each_engine!(config: nothing_shows_a_secret secrets_are_looked_for_at_start);

/// As long as a password of SMPP may be.
const CANARY: &str = "c4n4ry-X";

/// A folder with this heliograph.toml.
fn folder(config: &str) -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("heliograph.toml"), config).unwrap();
    folder
}

/// Runs a command there, with a variable in its environment.
fn run(folder: &TempDir, arguments: &[&str], (name, value): (&str, &OsStr)) -> Output {
    command().current_dir(folder.path()).args(arguments).env(name, value).output().unwrap()
}

fn config(folder: &TempDir, arguments: &[&str]) -> String {
    let listen = ("HELIOGRAPH_SERVER__LISTEN", "127.0.0.1:9".as_ref());
    let output = run(folder, &[&["config"], arguments].concat(), listen);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

const SAMPLE: &str = r#"
[server]
listen = "127.0.0.1:1"
data_dir = "elsewhere # 'and' \"quoted\""
[database]
url = "postgres://ann:c4n4ry-X@db/x"
[webhooks]
allow_private = ["10.0.0.0/8", "::1/128"]
[[carriers]]
name = "one"
kind = "smpp"
host = "smsc"
password = "c4n4ry-X"
[[carriers]]
name = "two"
kind = "simulated"
password = { env = "SOME_NAME" }
[[routes]]
prefix = ""
carriers = ["one", "two"]
[[numbers]]
number = "447700900000"
account = "ann@example.com"
"#;

#[test]
fn each_value_says_where_it_comes_from() {
    let folder = folder(SAMPLE);
    let text = config(&folder, &[]);
    let says = |key: &str, origin: &str| {
        let line =
            text.lines().find(|l| l.starts_with(key)).unwrap_or_else(|| panic!("{key}: {text}"));
        assert!(line.ends_with(&format!(" # {origin}")), "{line}");
    };
    says("listen = \"127.0.0.1:9\"", "HELIOGRAPH_SERVER__LISTEN");
    says("data_dir = ", "heliograph.toml");
    says("url = \"postgres://ann:***@db/x\"", "heliograph.toml");
    says("connections = 16", "default");
    says("allow_private = [\"10.0.0.0/8\", \"::1/128\"]", "heliograph.toml");
    says("password = \"***\"", "heliograph.toml");
    says("password = { env = \"SOME_NAME\" }", "heliograph.toml");
    says("port = 2775", "default");
    says("# file = ", "nothing by default");
    let told: Value = serde_json::from_str(&config(&folder, &["--json"])).unwrap();
    assert_eq!(told["rates"]["file"], json!({ "value": null, "origin": "default" }));
    assert_eq!(told["carriers"][1]["name"], json!({ "value": "two", "origin": "heliograph.toml" }));
}

/// Every value of a document, without where it comes from.
fn values(mut told: Value) -> Value {
    fn strip(v: &mut Value) {
        if let Some(value) = v.get_mut("value") {
            *v = value.take();
        } else if let Some(all) = v.as_array_mut() {
            all.iter_mut().for_each(strip);
        } else if let Some(all) = v.as_object_mut() {
            all.values_mut().for_each(strip);
        }
    }
    strip(&mut told);
    told
}

#[test]
fn what_is_printed_can_be_read_again() {
    for sample in ["", SAMPLE] {
        let folder = folder(sample);
        std::fs::write(folder.path().join("printed.toml"), config(&folder, &[])).unwrap();
        let parse = |text: String| values(serde_json::from_str(&text).unwrap());
        let (one, two) = (
            config(&folder, &["--json"]),
            config(&folder, &["--json", "--config", "printed.toml"]),
        );
        assert_eq!(parse(one), parse(two));
    }
}

#[test]
fn what_is_wrong_is_told_without_what_stands_there() {
    let variable = OsStr::from_bytes(b"c4n4ry-X\xff");
    for (text, hint) in [
        ("[[carriers]]\nname = 'a'\nkind = 'smpp'\nhost = 'h'\npassword = c4n4ry-X", "line 5"),
        ("[database]\nurl = \"postgres://ann:c4n4ry-X@h/x", "line 2"),
        ("[database]\nurl = ['c4n4ry-X']", "{ file = \"PATH\" } or { env = \"NAME\" }"),
        ("[database]\nurl = { fiel = 'c4n4ry-X' }", "database.url"),
        ("[database]\nurl = { file = 'a', env = 'c4n4ry-X' }", "database.url"),
        (
            "[[carriers]]\nname = 'a'\nkind = 'smpp'\nhost = 'h'\npassword = ['c4n4ry-X']",
            "password",
        ),
        (
            "[[carriers]]\nname = 'a'\nkind = 'smpp'\nhost = 'h'\npasword = 'c4n4ry-X'",
            "did you mean 'password'?",
        ),
        ("[databse]\nurl = 'postgres://ann:c4n4ry-X@h/x'", "did you mean 'database'?"),
        ("[database]\nurl = 'host=h password=c4n4ry-X'", "database.url must begin with"),
        ("[database]\nurl = 'postgres://ann:c4n4ry-X@127.0.0.1:1/x'", "database.url"),
        ("[database]\nurl = 'postgres://ann:c4n4ry-X@[h/x'", "database.url can't be read"),
        ("[database]\nurl = { env = 'ODD' }", "the secret in $ODD can't be read: it is no text"),
        ("[database]\nurl = { file = 'gone' }", "database.url: the secret in gone can't be read"),
    ] {
        let folder = folder(text);
        for arguments in
            [&["check"][..], &["serve", "--listen", "127.0.0.1:0"], &["migrate", "--json"]]
        {
            let output = run(&folder, arguments, ("ODD", variable));
            let said = format!("{output:?}");
            assert_eq!(output.status.code(), Some(1), "{text}: {said}");
            assert!(String::from_utf8_lossy(&output.stderr).contains(hint), "{text}: {said}");
            assert!(!said.contains("c4n4ry"), "{text}: {said}");
        }
        let output = run(&folder, &["config"], ("ODD", variable));
        assert!(!format!("{output:?}").contains("c4n4ry"), "{text}: {output:?}");
    }
    let output = run(&folder(""), &["config"], ("HELIOGRAPH_DATABASE__URL", variable));
    let talk = String::from_utf8_lossy(&output.stderr);
    assert!(
        talk.contains("HELIOGRAPH_DATABASE__URL is no text") && !talk.contains("c4n4ry"),
        "{talk}"
    );
}

/// A database URL with a password that nobody asks for, where there is a URL.
fn with_password(server: &Server) -> String {
    let url = server.database.url().unwrap_or("sqlite:data/heliograph.db".to_owned());
    match url.split_once('@') {
        Some((user, rest)) => format!("{}:{CANARY}@{rest}", user.trim_end_matches(':')),
        None => url,
    }
}

/// A server and every command, with a canary in the place of each secret, at the most talkative.
fn nothing_shows_a_secret(engine: Engine) {
    let smsc = Smsc::start(&[]);
    let config = smsc.config(10).replace("system_id", &format!("password = '{CANARY}'\nsystem_id"));
    let mut server = Server::new(engine, &format!("[telemetry]\nlog = 'trace'\n{config}"));
    let url = with_password(&server);
    server.launch_with_variable("HELIOGRAPH_DATABASE__URL", &url);
    server.await_ready();
    let mut said = String::new();
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
            said += &format!("{arguments:?}: {:?}\n", command.output().unwrap());
        }
    }
    let key = server.told(&["key", "create", "--account", demo, "--live"]);
    server.ended(&key, &server.accepted(&key, &hello("+447700900123")));
    assert!(server.stop().success());
    let log = server.log();
    assert!(log.contains("TRACE") && log.contains("bound carrier=remote"), "it was not talkative");
    assert!(!log.contains(CANARY), "{log}");
    assert!(!said.contains(CANARY), "{said}");
}

fn secrets_are_looked_for_at_start(engine: Engine) {
    let mut server = Server::new(
        engine,
        "[[carriers]]\nname = 'a'\nkind = 'smpp'\nhost = 'h'\npassword = { file = 'secrets/a' }",
    );
    // Also by a node that would not need it.
    server.launch_with(&["serve", "--listen", "127.0.0.1:0", "--role", "web"]);
    assert_eq!(server.process().wait().code(), Some(1));
    let talk = server.process().stderr.text();
    assert!(talk.contains("the password of 'a': the secret in secrets/a can't be read"), "{talk}");
    // Who only looks needs none.
    server.told(&["account", "list"]);
    std::fs::create_dir(server.home.path().join("secrets")).unwrap();
    std::fs::write(server.home.path().join("secrets/a"), "hunter2\n").unwrap();
    server.launch_with(&["serve", "--listen", "127.0.0.1:0", "--role", "web"]);
    eventually("it starts", || server.listens());
    assert!(server.stop().success());
}
