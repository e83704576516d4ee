//! A full disk and a locked file.

use crate::support::api::hello;
use crate::support::backups::large;
use crate::support::engine::Engine;
use crate::support::http::Request;
use crate::support::outages::{delivered_once, send_all, turned_away};
use crate::support::process;
use crate::support::server::Server;
use crate::support::smsc::Smsc;
use crate::support::wait::{eventually, pause};
use std::path::Path;
use std::process::Output;
use std::time::Duration;

/// A limit on file sizes has the effect of a full disk, and needs no privileges.
#[test]
fn a_full_disk_rejects_messages() {
    let smsc = Smsc::start(&["--receipt-delay", "50"]);
    let mut server = Server::on(Engine::Sqlite, &smsc.config(10));
    server.launch_without_sigxfsz();
    server.wait_until_ready();
    let key = server.live_key("ann@example.com", "0");
    let mut ids = send_all(&server, &key, 100..130);
    server.process().limit_files(Some(1));
    let rows = "SELECT count(*) FROM messages";
    let before = server.database.number(rows);
    for n in 200..205 {
        turned_away(&server.post(&key, &hello(&format!("447700900{n}"))));
    }
    assert_eq!(server.database.number(rows), before);
    let ready = |server: &Server| server.ask(&Request::get("/readyz")).status;
    eventually("the node is not ready", || (ready(&server) == 503).then_some(()));
    // Stored messages can be read; receipts of carriers have to wait.
    let shown: Vec<_> = ids.iter().map(|id| server.message(&key, id)).collect();
    assert!(shown.iter().all(|m| m.status == 200));
    pause(Duration::from_millis(1_500));
    turned_away(&server.post(&key, &hello("447700900300")));
    assert!(server.process().ended().is_none());
    server.process().limit_files(None);
    ids.push(eventually("the disk has space again", || {
        let response = server.post(&key, &hello("447700900400"));
        (response.status == 201).then(|| response.json()["id"].as_str().unwrap().to_owned())
    }));
    eventually("the node is ready again", || (ready(&server) == 200).then_some(()));
    delivered_once(&server, &smsc, &key, &ids);
    assert!(server.stop().success());
}

/// Another process locks the file for longer than the writer waits.
#[test]
fn a_locked_database_rejects_messages() {
    let server = Server::start_on(Engine::Sqlite, "");
    let key = server.key();
    let id = server.accepted(&key, &hello("447700900123"));
    server.wait_until_ended(&key, &id);
    let lock = server.database.lock();
    turned_away(&server.post(&key, &hello("447700900124")));
    assert_eq!(server.message(&key, &id).status, 200);
    drop(lock);
    server.wait_until_ended(&key, &server.accepted(&key, &hello("447700900125")));
    assert_eq!(server.database.number("SELECT count(*) FROM messages"), 2);
    server.check();
}

/// Runs a command with a file size limit in blocks of 512 bytes, which has the effect of a full
/// disk.
fn on_a_full_disk(server: &Server, blocks: u32, arguments: &str) -> Output {
    let script = format!("trap '' XFSZ; ulimit -f {blocks}; exec \"$0\" {arguments}");
    let mut command = std::process::Command::new("sh");
    process::clear(&mut command);
    let command = command.current_dir(server.home.path()).args(["-c", &script]);
    command.arg(process::program()).output().unwrap()
}

/// The first start on a full disk fails, and the next one succeeds.
#[test]
fn a_first_start_on_a_full_disk_can_be_repeated() {
    let mut server = Server::new("");
    let output = on_a_full_disk(&server, 0, "serve --listen 127.0.0.1:0");
    let stderr = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(1), "{stderr}");
    assert!(stderr.contains("failed to write data/"), "{stderr}");
    // As an earlier version left it.
    std::fs::write(server.home.path().join("data/node"), "").unwrap();
    server.launch();
    server.wait_until_ready();
    assert!(server.stop().success());
}

fn names(folder: &Path) -> Vec<String> {
    let all = std::fs::read_dir(folder).unwrap();
    all.map(|e| e.unwrap().file_name().into_string().unwrap()).collect()
}

#[test]
fn a_full_disk_fails_a_backup_and_a_restore() {
    let mut server = Server::start_on(Engine::Sqlite, "");
    large(&server);
    let output = on_a_full_disk(&server, 100, "backup one.db");
    let stderr = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(1), "{stderr}");
    assert!(stderr.starts_with("heliograph: database unavailable"), "{stderr}");
    assert!(!names(server.home.path()).iter().any(|n| n.starts_with("one.db")));
    server.stdout(&["account", "create", "--email", "ann@example.com"]);
    assert!(server.stop().success());
    let output = on_a_full_disk(&server, 4_000, "restore --force large.db");
    let stderr = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(1), "{stderr}");
    assert_eq!(server.stdout(&["account", "list"]).lines().count(), 2);
    server.check();
}
