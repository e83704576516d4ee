//! Backups and restores that are killed.

use crate::support::backups::{COUNT, EVENTS, large};
use crate::support::engine::Engine;
use crate::support::process::Process;
use crate::support::server::Server;
use crate::support::wait::eventually;

/// Returns whether a restore is in its transaction.
fn is_restoring(server: &Server) -> bool {
    match Engine::current() {
        Engine::Sqlite => {
            let file = server.home.path().join("data/heliograph.db");
            let conn = rusqlite::Connection::open(file).unwrap();
            conn.busy_timeout(std::time::Duration::ZERO).unwrap();
            conn.execute_batch("BEGIN IMMEDIATE").is_err()
        }
        Engine::Postgres => {
            let copying = "SELECT count(*) FROM pg_stat_activity
                WHERE datname = current_database() AND query LIKE 'COPY events%'";
            server.database.number(copying) > 0
        }
    }
}

#[test]
fn a_killed_restore_changes_nothing() {
    let mut server = Server::start();
    large(&server);
    server.stdout(&["account", "create", "--email", "ann@example.com"]);
    assert!(server.stop().success());
    let mut restore = Process::start(server.command().args(["restore", "--force", "large.db"]));
    eventually("the command has begun", || is_restoring(&server).then_some(()));
    assert!(restore.ended().is_none(), "the restore had already ended");
    restore.kill();
    assert_eq!(server.stdout(&["account", "list"]).lines().count(), 2);
    assert_eq!(server.database.number(COUNT), 0);
    server.check();
    server.stdout(&["restore", "--force", "large.db"]);
    assert_eq!(server.database.number(COUNT), EVENTS);
    server.check();
}

#[test]
fn a_killed_backup_leaves_no_incomplete_file() {
    let mut server = Server::start();
    large(&server);
    assert!(server.stop().success());
    server.stdout(&["restore", "--force", "large.db"]);
    let (file, part) = (server.home.path().join("one.db"), server.home.path().join("one.db.part"));
    let mut backup = Process::start(server.command().args(["backup", "one.db"]));
    let begun = || part.metadata().is_ok_and(|m| m.len() > 0) || file.exists();
    eventually("the command has begun", || begun().then_some(()));
    backup.kill();
    // A backup that ended before the signal is complete.
    if !file.exists() {
        assert!(server.fails(&["restore", "--force", "one.db"]).contains("one.db: No such file"));
        server.stdout(&["backup", "one.db"]);
    }
    server.stdout(&["restore", "--force", "one.db"]);
    assert_eq!(server.database.number(COUNT), EVENTS);
    server.stdout(&["backup", "two.db"]);
    assert!(!server.home.path().join("two.db.part").exists());
}
