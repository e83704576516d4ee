//! Tests of the schema: both engines have the same migrations, tables and columns.

use crate::fixtures::account;
use heliograph_store::identity::accounts;
use heliograph_store::{Db, Options};
use heliograph_testing::{TestDb, sealing_key};
use std::path::Path;
use tokio::task::JoinSet;

/// The file names of an engine's migrations, in order.
pub(crate) fn migration_files(engine: &str) -> Vec<String> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("migrations").join(engine);
    let name =
        |e: std::io::Result<std::fs::DirEntry>| e.unwrap().file_name().into_string().unwrap();
    let mut names: Vec<_> = std::fs::read_dir(folder).unwrap().map(name).collect();
    names.sort();
    names
}

#[test]
fn both_engines_have_the_same_migrations() {
    assert_eq!(migration_files("sqlite"), migration_files("postgres"));
    assert_eq!(migration_files("sqlite")[0], "V1__initial_schema.sql");
}

async fn history(db: &TestDb) -> Vec<Vec<String>> {
    db.query_raw("SELECT CAST(version AS text), name, applied_at FROM schema_migrations ORDER BY 1")
        .await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn opening_again_changes_nothing() {
    let db = TestDb::new().await;
    let ann = account(&db, "ann@example.com", 500).await;
    let before = history(&db).await;
    for _ in 0..2 {
        let again = db.reopen().await;
        let all = accounts::all(&mut again.read().await.unwrap()).await.unwrap();
        assert_eq!((all.len(), all[0].id), (1, ann));
    }
    assert_eq!(history(&db).await, before);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_migration_was_applied() {
    let db = TestDb::new().await;
    let applied = history(&db).await.into_iter();
    let mut applied: Vec<_> = applied.map(|row| format!("V{}__{}.sql", row[0], row[1])).collect();
    applied.sort();
    assert_eq!(applied, migration_files("sqlite"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn concurrent_nodes_migrate_a_new_database_one_at_a_time() {
    let db = TestDb::new().await;
    // Several rounds, because the processes do not always collide at the same point.
    for round in 0..10 {
        let url = if db.url.starts_with("sqlite:") {
            format!("{}.{round}", db.url)
        } else {
            db.execute_raw("DROP SCHEMA public CASCADE; CREATE SCHEMA public").await;
            db.url.clone()
        };
        let mut opening = JoinSet::new();
        for _ in 0..4 {
            let options = Options {
                url: url.clone(),
                connections: 2,
                key: sealing_key(),
                clock: db.clock.clone(),
            };
            opening.spawn(async move { Db::open(options).await.map(drop) });
        }
        while let Some(opened) = opening.join_next().await {
            opened.unwrap().unwrap();
        }
    }
}
