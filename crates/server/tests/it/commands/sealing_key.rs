//! The sealing key: created once, readable by its owner only, and required for sealed secrets.

use crate::support::server::Server;
use std::os::unix::fs::PermissionsExt;

const WEBHOOK: [&str; 6] =
    ["webhook", "add", "--account", "demo@localhost", "--url", "http://127.0.0.1:9009/hook"];
const CONFIG: &str = "[webhooks]\nallow_private = ['127.0.0.1/32']";

#[test]
fn the_key_is_created_once_and_private() {
    let mut server = Server::with(CONFIG);
    let file = server.home.path().join("data/sealing.key");
    assert_eq!(file.metadata().unwrap().permissions().mode() & 0o777, 0o600);
    let key = std::fs::read_to_string(&file).unwrap();
    let secret = server.json(&WEBHOOK)["secret"].as_str().unwrap().to_owned();
    let stored = server.database.number("SELECT count(*) FROM endpoints WHERE secret LIKE 'v1.%'");
    assert_eq!(stored, 1);
    assert!(server.stop().success());
    server.launch();
    server.wait_until_ready();
    assert_eq!(std::fs::read_to_string(&file).unwrap(), key);
    let rotated = server.json(&["webhook", "rotate", "1"])["secret"].as_str().unwrap().to_owned();
    assert_ne!(rotated, secret);
    assert!(!server.log().contains(key.trim()));
}

#[test]
fn a_node_with_another_key_fails_with_advice() {
    let mut server = Server::start();
    assert!(server.stop().success());
    let file = server.home.path().join("data/sealing.key");
    let ours = std::fs::read(&file).unwrap();
    std::fs::remove_file(&file).unwrap();
    for arguments in [&["account", "list"][..], &["serve", "--listen", "127.0.0.1:0"]] {
        let stderr = server.fails(arguments);
        assert!(stderr.contains("sealing.key is missing, but the database exists"), "{stderr}");
        assert!(!file.exists(), "no wrong key is written");
    }
    std::fs::write(&file, format!("{}=\n", "A".repeat(43))).unwrap();
    for arguments in [&["account", "list"][..], &["serve", "--listen", "127.0.0.1:0"]] {
        let stderr = server.fails(arguments);
        assert!(stderr.contains("sealed with another sealing key"), "{stderr}");
        assert!(stderr.contains("database.sealing_key"), "{stderr}");
    }
    std::fs::write(&file, "half a ke").unwrap();
    assert!(server.fails(&["account", "list"]).contains("sealing.key is not a valid sealing key"));
    std::fs::write(&file, ours).unwrap();
    server.launch();
    server.wait_until_ready();
}

#[test]
fn a_backup_with_another_sealing_key_changes_nothing() {
    let source = Server::with(CONFIG);
    source.stdout(&WEBHOOK);
    let file = source.home.path().join("one.db");
    let file = file.to_str().unwrap();
    source.stdout(&["backup", file]);
    let target = Server::new("");
    let stderr = target.fails(&["restore", "--force", file]);
    assert!(stderr.contains("sealed with another sealing key"), "{stderr}");
    assert_eq!(target.database.number("SELECT count(*) FROM accounts"), 0);
    target.copy_sealing_key(&source);
    target.stdout(&["restore", file]);
    target.stdout(&["webhook", "rotate", "1"]);
}

#[test]
fn the_key_is_rotated_while_the_service_is_stopped() {
    let mut server = Server::with(CONFIG);
    let secret = server.json(&WEBHOOK)["secret"].as_str().unwrap().to_owned();
    assert!(server.fails(&["seal", "rotate"]).contains("another heliograph is running"));
    assert!(server.stop().success());
    let file = |name: &str| server.home.path().join("data").join(name);
    let old = std::fs::read(file("sealing.key")).unwrap();
    let sealed = || server.database.rows("SELECT secret FROM endpoints");
    let before = sealed();
    let done = server.json(&["seal", "rotate"]);
    assert_eq!(done["secrets"], 1);
    let new = std::fs::read(file("sealing.key")).unwrap();
    assert_ne!((&new, sealed()), (&old, before.clone()));
    assert_eq!(std::fs::read(file("sealing.key.old")).unwrap(), old);
    assert!(!file("sealing.key.new").exists());
    assert_eq!(file("sealing.key").metadata().unwrap().permissions().mode() & 0o777, 0o600);
    assert!(server.fails(&["seal", "rotate", "--to", "k"]).contains("database.sealing_key"));
    // A crash after the commit leaves the new key beside the old one; the next start completes.
    std::fs::rename(file("sealing.key"), file("sealing.key.new")).unwrap();
    std::fs::write(file("sealing.key"), &old).unwrap();
    server.stdout(&["account", "list"]);
    assert_eq!(std::fs::read(file("sealing.key")).unwrap(), new);
    // A crash before the commit leaves a key that seals nothing; the next rotation replaces it.
    std::fs::write(file("sealing.key.new"), &old).unwrap();
    server.stdout(&["account", "list"]);
    server.stdout(&["seal", "rotate"]);
    assert_ne!(std::fs::read(file("sealing.key")).unwrap(), old);
    server.launch();
    server.wait_until_ready();
    let rotated = server.json(&["webhook", "rotate", "1"])["secret"].as_str().unwrap().to_owned();
    assert_ne!(rotated, secret);
}

#[test]
fn a_configured_key_is_rotated_into_a_file() {
    let key = format!("{}=", "A".repeat(43));
    let config =
        |file: &str| format!("{CONFIG}\n[database]\nsealing_key = {{ file = '{file}' }}\n");
    let mut server = Server::new(&config("one.key"));
    std::fs::write(server.home.path().join("one.key"), key).unwrap();
    server.launch();
    server.wait_until_ready();
    server.stdout(&WEBHOOK);
    assert!(server.stop().success());
    assert!(server.fails(&["seal", "rotate"]).contains("--to FILE"));
    assert_eq!(server.json(&["seal", "rotate", "--to", "two.key"])["file"], "two.key");
    assert!(server.fails(&["account", "list"]).contains("another sealing key"));
    std::fs::write(server.home.path().join("heliograph.toml"), config("two.key")).unwrap();
    server.launch();
    server.wait_until_ready();
    server.stdout(&["webhook", "rotate", "1"]);
}
