//! `heliograph config`: values, their origin, and errors.

use crate::support::process::command;
use crate::support::server::Server;
use serde_json::{Value, json};
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::process::Output;
use tempfile::TempDir;

/// Creates a folder with this heliograph.toml.
fn folder(config: &str) -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("heliograph.toml"), config).unwrap();
    folder
}

/// Runs a command in this folder, with one environment variable.
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
fn each_value_has_its_origin() {
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
    says("# file = ", "no default");
    let document: Value = serde_json::from_str(&config(&folder, &["--json"])).unwrap();
    assert_eq!(document["rates"]["file"], json!({ "value": null, "origin": "default" }));
    assert_eq!(
        document["carriers"][1]["name"],
        json!({ "value": "two", "origin": "heliograph.toml" })
    );
}

/// Returns all values of a document, without their origins.
fn values(mut document: Value) -> Value {
    fn strip(v: &mut Value) {
        if let Some(value) = v.get_mut("value") {
            *v = value.take();
        } else if let Some(all) = v.as_array_mut() {
            all.iter_mut().for_each(strip);
        } else if let Some(all) = v.as_object_mut() {
            all.values_mut().for_each(strip);
        }
    }
    strip(&mut document);
    document
}

#[test]
fn the_output_is_a_valid_configuration() {
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
fn errors_do_not_contain_the_value() {
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
        ("[database]\nurl = 'postgres://ann:c4n4ry-X@[h/x'", "invalid database.url"),
        (
            "[database]\nurl = { env = 'ODD' }",
            "failed to read the secret in $ODD: the value is not valid UTF-8",
        ),
        ("[database]\nurl = { file = 'gone' }", "database.url: failed to read the secret in gone"),
    ] {
        let folder = folder(text);
        for arguments in
            [&["check"][..], &["serve", "--listen", "127.0.0.1:0"], &["migrate", "--json"]]
        {
            let output = run(&folder, arguments, ("ODD", variable));
            let output_text = format!("{output:?}");
            assert_eq!(output.status.code(), Some(1), "{text}: {output_text}");
            assert!(
                String::from_utf8_lossy(&output.stderr).contains(hint),
                "{text}: {output_text}"
            );
            assert!(!output_text.contains("c4n4ry"), "{text}: {output_text}");
        }
        let output = run(&folder, &["config"], ("ODD", variable));
        assert!(!format!("{output:?}").contains("c4n4ry"), "{text}: {output:?}");
    }
    let output = run(&folder(""), &["config"], ("HELIOGRAPH_DATABASE__URL", variable));
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(
        stderr.contains("HELIOGRAPH_DATABASE__URL is not valid UTF-8")
            && !stderr.contains("c4n4ry"),
        "{stderr}"
    );
}

#[test]
fn the_risks_of_a_configuration_are_listed() {
    let safe = Server::new("");
    let (code, stdout, stderr) = safe.run_text(&["config", "--check"]);
    assert_eq!((code, stdout.as_str(), stderr.trim()), (Some(0), "", "No problems found"));
    let carrier = "[[carriers]]\nname = 'a'\nkind = 'smpp'\nhost = 'x'\n";
    let free = Server::new(&format!("{carrier}[rates]\ndefault = '0'"));
    let (code, stdout, stderr) = free.run_text(&["config", "--check"]);
    assert!(stdout.starts_with("error: accounts.sign_up is open, and some"), "{stdout}");
    assert!(stdout.contains("\nwarning: The sealing key is stored next to"), "{stdout}");
    assert_eq!(code, Some(1));
    assert!(stderr.contains("does not start with this configuration. Errors: 1"), "{stderr}");
    let risky = Server::new(carrier);
    let (code, stdout, _) = risky.run_text(&["--json", "config", "--check"]);
    let found = serde_json::from_str::<serde_json::Value>(&stdout).unwrap();
    assert_eq!((code, &found["errors"]), (Some(0), &serde_json::json!([])));
    assert!(found["warnings"][0].as_str().unwrap().contains("There are no prices"), "{found}");
}

#[test]
fn unknown_variables_are_named() {
    let server = Server::new("");
    let mut command = server.command();
    let command = command.args(["config", "--check"]).env("HELIOGRAPH_LISTEN", "127.0.0.1:1");
    let output = command.output().unwrap();
    let stdout = String::from_utf8(output.stdout).unwrap();
    assert!(output.status.success(), "{stdout}");
    let hint = "HELIOGRAPH_LISTEN has no effect. Did you mean HELIOGRAPH_SERVER__LISTEN?";
    assert!(stdout.contains(hint), "{stdout}");
}
