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
    db.query_raw(
        "SELECT CAST(version AS text), name, applied_on FROM refinery_schema_history ORDER BY 1",
    )
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

mod both {
    use heliograph_testing::TestDb;

    const TABLES: [&str; 2] = [
        "SELECT t.name, c.name, CAST(c.pk AS text),
             CASE WHEN c.\"notnull\" OR c.pk THEN 'NO' ELSE 'YES' END, coalesce(c.dflt_value, '')
         FROM sqlite_schema t JOIN pragma_table_info(t.name) c
         WHERE t.type = 'table' ORDER BY 1, 2",
        "SELECT c.table_name::text COLLATE \"C\", c.column_name::text COLLATE \"C\",
             coalesce(k.ordinal_position, 0)::text, c.is_nullable::text,
             coalesce(c.column_default, '')
         FROM information_schema.columns c
         LEFT JOIN (information_schema.key_column_usage k
             JOIN information_schema.table_constraints t
               ON t.constraint_name = k.constraint_name AND t.constraint_type = 'PRIMARY KEY')
           ON k.table_name = c.table_name AND k.column_name = c.column_name
         WHERE c.table_schema = 'public' ORDER BY 1, 2",
    ];
    const INDEXES: [&str; 2] = [
        "SELECT name FROM sqlite_schema WHERE type = 'index' AND sql IS NOT NULL ORDER BY 1",
        "SELECT c.relname::text FROM pg_index i JOIN pg_class c ON c.oid = i.indexrelid
         WHERE c.relnamespace = 'public'::regnamespace
           AND NOT EXISTS (SELECT 1 FROM pg_constraint k WHERE k.conindid = c.oid) ORDER BY 1",
    ];

    /// Returns the results of a query on SQLite and of another on PostgreSQL; `None` when the tests
    /// run without PostgreSQL.
    async fn query([sqlite, postgres]: [&str; 2]) -> Option<[Vec<Vec<String>>; 2]> {
        let on_postgres = TestDb::postgres().await?.query_raw(postgres).await;
        let on_sqlite = TestDb::sqlite().await.query_raw(sqlite).await;
        // The tables of refinery and of SQLite itself are not compared.
        let others = ["refinery_schema_history", "sqlite_sequence"];
        let compared =
            |all: Vec<Vec<String>>| all.into_iter().filter(|r| !others.contains(&&*r[0])).collect();
        Some([on_sqlite, on_postgres].map(compared))
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn tables_columns_keys_and_defaults_are_the_same() {
        let Some([sqlite, postgres]) = query(TABLES).await else { return };
        assert!(sqlite.len() > 80, "{sqlite:?}");
        assert_eq!(sqlite, postgres);
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn indexes_are_the_same() {
        let Some([sqlite, postgres]) = query(INDEXES).await else { return };
        assert!(sqlite.len() > 5, "{sqlite:?}");
        assert_eq!(sqlite, postgres);
    }
}
