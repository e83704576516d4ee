//! The sealing key: made once, for its owner alone, and asked for wherever sealed secrets go.

use crate::backup::refused;
use crate::database::{Engine, each_engine};
use crate::server::Server;
use std::os::unix::fs::PermissionsExt;

each_engine!(sealing: the_key_is_made_once_and_is_its_owners_alone a_node_with_another_key_says_what_to_do
    a_backup_whose_secrets_cannot_be_opened_changes_nothing);

const WEBHOOK: [&str; 6] =
    ["webhook", "add", "--account", "demo@localhost", "--url", "http://127.0.0.1:9/hook"];
const CONFIG: &str = "[webhooks]\nallow_private = ['127.0.0.1/32']";

fn the_key_is_made_once_and_is_its_owners_alone(engine: Engine) {
    let mut server = Server::with(engine, CONFIG);
    let file = server.home.path().join("data/sealing.key");
    assert_eq!(file.metadata().unwrap().permissions().mode() & 0o777, 0o600);
    let key = std::fs::read_to_string(&file).unwrap();
    let secret = server.json(&WEBHOOK)["secret"].as_str().unwrap().to_owned();
    let stored = server.database.number("SELECT count(*) FROM endpoints WHERE secret LIKE 'v1.%'");
    assert_eq!(stored, 1);
    assert!(server.stop().success());
    server.launch();
    server.await_ready();
    assert_eq!(std::fs::read_to_string(&file).unwrap(), key);
    let rotated = server.json(&["webhook", "rotate", "1"])["secret"].as_str().unwrap().to_owned();
    assert_ne!(rotated, secret);
    assert!(!server.log().contains(key.trim()));
}

fn a_node_with_another_key_says_what_to_do(engine: Engine) {
    let mut server = Server::start(engine);
    assert!(server.stop().success());
    let file = server.home.path().join("data/sealing.key");
    let ours = std::fs::read(&file).unwrap();
    std::fs::remove_file(&file).unwrap();
    for arguments in [&["account", "list"][..], &["serve", "--listen", "127.0.0.1:0"]] {
        let talk = refused(&server, arguments);
        assert!(talk.contains("the sealing key is not the one"), "{talk}");
        assert!(talk.contains("database.sealing_key"), "{talk}");
    }
    std::fs::write(&file, "half a ke").unwrap();
    assert!(refused(&server, &["account", "list"]).contains("sealing.key is no sealing key"));
    std::fs::write(&file, ours).unwrap();
    server.launch();
    server.await_ready();
}

fn a_backup_whose_secrets_cannot_be_opened_changes_nothing(engine: Engine) {
    let source = Server::with(engine, CONFIG);
    source.told(&WEBHOOK);
    let file = source.home.path().join("one.db");
    let file = file.to_str().unwrap();
    source.told(&["backup", file]);
    let target = Server::new(engine, "");
    let talk = refused(&target, &["restore", "--force", file]);
    assert!(talk.contains("the sealing key is not the one"), "{talk}");
    assert_eq!(target.database.number("SELECT count(*) FROM accounts"), 0);
    target.take_key(&source);
    target.told(&["restore", file]);
    target.told(&["webhook", "rotate", "1"]);
}
