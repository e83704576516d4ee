//! The schema: the same steps, tables and columns on both engines, and opening twice does no harm.

use crate::rows::{account, look};
use crate::support::{TestDb, key, on_both_engines};
use heliograph_store::{Db, Options, accounts};
use std::path::Path;
use tokio::task::JoinSet;

on_both_engines!(schema:
    opening_again_changes_nothing,
    every_step_was_taken,
    nodes_that_open_a_new_database_at_once_take_turns,
);

/// The file names of an engine's migrations, in order.
fn steps(engine: &str) -> Vec<String> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("migrations").join(engine);
    let name =
        |e: std::io::Result<std::fs::DirEntry>| e.unwrap().file_name().into_string().unwrap();
    let mut names: Vec<_> = std::fs::read_dir(folder).unwrap().map(name).collect();
    names.sort();
    names
}

#[test]
fn both_engines_have_the_same_steps() {
    assert_eq!(steps("sqlite"), steps("postgres"));
    assert_eq!(steps("sqlite")[0], "V1__foundation.sql");
}

async fn history(db: &TestDb) -> Vec<Vec<String>> {
    look(
        db,
        "SELECT CAST(version AS text), name, applied_on FROM refinery_schema_history ORDER BY 1",
    )
    .await
}

async fn opening_again_changes_nothing(db: TestDb) {
    let ann = account(&db, "ann@example.com", 500).await;
    let before = history(&db).await;
    for _ in 0..2 {
        let again = db.again().await;
        let all = accounts::all(&mut again.read().await.unwrap()).await.unwrap();
        assert_eq!((all.len(), all[0].id), (1, ann));
    }
    assert_eq!(history(&db).await, before);
}

async fn every_step_was_taken(db: TestDb) {
    let taken = history(&db).await.into_iter();
    let mut taken: Vec<_> = taken.map(|row| format!("V{}__{}.sql", row[0], row[1])).collect();
    taken.sort();
    assert_eq!(taken, steps("sqlite"));
}

async fn nodes_that_open_a_new_database_at_once_take_turns(db: TestDb) {
    // Two processes that meet do not always meet at the same point: several times.
    for round in 0..10 {
        let url = if db.url.starts_with("sqlite:") {
            format!("{}.{round}", db.url)
        } else {
            db.behind("DROP SCHEMA public CASCADE; CREATE SCHEMA public").await;
            db.url.clone()
        };
        let mut opening = JoinSet::new();
        for _ in 0..4 {
            let options =
                Options { url: url.clone(), connections: 2, key: key(), clock: db.clock.clone() };
            opening.spawn(async move { Db::open(options).await.map(drop) });
        }
        while let Some(opened) = opening.join_next().await {
            opened.unwrap().unwrap();
        }
    }
}

#[cfg(feature = "test-postgres")]
mod both {
    use crate::rows::look;
    use crate::support::{TestDb, on_postgres, on_sqlite};

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

    fn seen([sqlite, postgres]: [&'static str; 2]) -> [Vec<Vec<String>>; 2] {
        let (mut a, mut b) = (Vec::new(), Vec::new());
        on_sqlite(async |db: TestDb| a = look(&db, sqlite).await);
        on_postgres(async |db: TestDb| b = look(&db, postgres).await);
        // Refinery's own table is refinery's business, and SQLite's is SQLite's.
        let theirs = ["refinery_schema_history", "sqlite_sequence"];
        [a, b].map(|all| all.into_iter().filter(|r| !theirs.contains(&&*r[0])).collect())
    }

    #[test]
    fn tables_columns_keys_and_defaults_are_the_same() {
        let [sqlite, postgres] = seen(TABLES);
        assert!(sqlite.len() > 80, "{sqlite:?}");
        assert_eq!(sqlite, postgres);
    }

    #[test]
    fn indexes_are_the_same() {
        let [sqlite, postgres] = seen(INDEXES);
        assert!(sqlite.len() > 5, "{sqlite:?}");
        assert_eq!(sqlite, postgres);
    }
}
