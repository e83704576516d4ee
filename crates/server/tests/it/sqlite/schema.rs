//! The migration of the file of an older version.

use crate::support::engine::Engine;
use crate::support::server::Server;

#[test]
fn an_older_schema_is_migrated() {
    let (new, old) = (Server::on(Engine::Sqlite, ""), Server::on(Engine::Sqlite, ""));
    new.stdout(&["migrate"]);
    let (new, file) =
        (new.home.path().join("data/heliograph.db"), old.home.path().join("data/heliograph.db"));
    std::fs::create_dir(file.parent().unwrap()).unwrap();
    let first =
        concat!(env!("CARGO_MANIFEST_DIR"), "/../store/migrations/sqlite/V1__initial_schema.sql");
    let conn = rusqlite::Connection::open(&file).unwrap();
    conn.execute_batch(&std::fs::read_to_string(first).unwrap()).unwrap();
    conn.execute("ATTACH $1 AS new", [new.to_str().unwrap()]).unwrap();
    let history =
        "CREATE TABLE schema_migrations AS SELECT * FROM new.schema_migrations WHERE version = 1";
    conn.execute_batch(history).unwrap();
    drop(conn);
    let before = std::fs::read(&file).unwrap();
    let (code, stdout, _) = old.run_text(&["migrate", "--check"]);
    assert_eq!(
        (code, stdout.starts_with("Migrations pending: schema version 1 to ")),
        (Some(1), true),
        "{stdout}"
    );
    assert!(std::fs::read(&file).unwrap() == before);
    assert!(old.stdout(&["migrate"]).starts_with("Migrated schema version 1 to "));
    assert_eq!(old.run_text(&["migrate", "--check"]).0, Some(0));
    old.check();
}
