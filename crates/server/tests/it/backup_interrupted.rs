//! Backups and restores that end too early: what was there stays as it was.

use crate::backup::refused;
use crate::database::{Engine, each_engine};
use crate::patience::eventually;
use crate::process::{self, Process};
use crate::server::Server;
use std::path::Path;
use std::process::Output;

each_engine!(backup_interrupted: a_killed_restore_changes_nothing a_killed_backup_leaves_no_file);

/// So many that a restore takes its time.
const EVENTS: i64 = 200_000;
const COUNT: &str = "SELECT count(*) FROM events";

/// A backup of a server with one account, made large behind its back.
fn large(server: &Server) {
    server.told(&["backup", "large.db"]);
    let conn = rusqlite::Connection::open(server.home.path().join("large.db")).unwrap();
    let sql = "WITH RECURSIVE n(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM n WHERE n < $1)
        INSERT INTO events SELECT 1, randomblob(16), 0, 0, 0, NULL, 1795165200000, 1, NULL, NULL, NULL FROM n";
    conn.execute(sql, [EVENTS]).unwrap();
}

/// Whether a restore is in the middle of its transaction.
fn is_at_work(server: &Server, engine: Engine) -> bool {
    match engine {
        Engine::Sqlite => {
            let file = server.home.path().join("data/heliograph.db");
            let conn = rusqlite::Connection::open(file).unwrap();
            conn.busy_timeout(std::time::Duration::ZERO).unwrap();
            conn.execute_batch("BEGIN IMMEDIATE").is_err()
        }
        #[cfg(feature = "test-postgres")]
        Engine::Postgres => {
            let copying = "SELECT count(*) FROM pg_stat_activity
                WHERE datname = current_database() AND query LIKE 'COPY events%'";
            server.database.number(copying) > 0
        }
    }
}

fn a_killed_restore_changes_nothing(engine: Engine) {
    let mut server = Server::start(engine);
    large(&server);
    server.told(&["account", "create", "--email", "ann@example.com"]);
    assert!(server.stop().success());
    let mut restore = Process::start(server.command().args(["restore", "--force", "large.db"]));
    eventually("it is at work", || is_at_work(&server, engine).then_some(()));
    assert!(restore.ended().is_none(), "it was over already");
    restore.kill();
    assert_eq!(server.told(&["account", "list"]).lines().count(), 2);
    assert_eq!(server.database.number(COUNT), 0);
    server.check();
    server.told(&["restore", "--force", "large.db"]);
    assert_eq!(server.database.number(COUNT), EVENTS);
    server.check();
}

fn a_killed_backup_leaves_no_file(engine: Engine) {
    let mut server = Server::start(engine);
    large(&server);
    assert!(server.stop().success());
    server.told(&["restore", "--force", "large.db"]);
    let (file, part) = (server.home.path().join("one.db"), server.home.path().join("one.db.part"));
    let mut backup = Process::start(server.command().args(["backup", "one.db"]));
    let begun = || part.metadata().is_ok_and(|m| m.len() > 0) || file.exists();
    eventually("it is at work", || begun().then_some(()));
    backup.kill();
    // If it was faster than the kill, it is whole.
    if !file.exists() {
        assert!(
            refused(&server, &["restore", "--force", "one.db"]).contains("one.db: No such file")
        );
        server.told(&["backup", "one.db"]);
    }
    server.told(&["restore", "--force", "one.db"]);
    assert_eq!(server.database.number(COUNT), EVENTS);
    server.told(&["backup", "two.db"]);
    assert!(!server.home.path().join("two.db.part").exists());
}

/// Runs a command while no file may grow beyond so many blocks of 512 bytes: a full disk to it.
fn on_a_full_disk(server: &Server, blocks: u32, arguments: &str) -> Output {
    let script = format!("trap '' XFSZ; ulimit -f {blocks}; exec \"$0\" {arguments}");
    let mut command = std::process::Command::new("sh");
    process::clear(&mut command);
    let command = command.current_dir(server.home.path()).args(["-c", &script]);
    command.arg(process::program()).output().unwrap()
}

fn names(folder: &Path) -> Vec<String> {
    let all = std::fs::read_dir(folder).unwrap();
    all.map(|e| e.unwrap().file_name().into_string().unwrap()).collect()
}

#[test]
fn a_full_disk_is_told_and_changes_nothing() {
    let mut server = Server::start(Engine::Sqlite);
    large(&server);
    let output = on_a_full_disk(&server, 100, "backup one.db");
    let talk = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(1), "{talk}");
    assert!(talk.starts_with("heliograph: the database is not available"), "{talk}");
    assert!(!names(server.home.path()).iter().any(|n| n.starts_with("one.db")));
    server.told(&["account", "create", "--email", "ann@example.com"]);
    assert!(server.stop().success());
    let output = on_a_full_disk(&server, 4_000, "restore --force large.db");
    let talk = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(1), "{talk}");
    assert_eq!(server.told(&["account", "list"]).lines().count(), 2);
    server.check();
}
