//! The schemas of both engines are the same.

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

/// Returns the results of a query on SQLite and of another on PostgreSQL.
async fn query([sqlite, postgres]: [&str; 2]) -> [Vec<Vec<String>>; 2] {
    let on_postgres = TestDb::postgres().await.query_raw(postgres).await;
    let on_sqlite = TestDb::sqlite().await.query_raw(sqlite).await;
    // The table of migrations and those of SQLite itself are not compared.
    let others = ["schema_migrations", "sqlite_sequence"];
    let compared =
        |all: Vec<Vec<String>>| all.into_iter().filter(|r| !others.contains(&&*r[0])).collect();
    [on_sqlite, on_postgres].map(compared)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn tables_columns_keys_and_defaults_are_the_same() {
    let [sqlite, postgres] = query(TABLES).await;
    assert!(sqlite.len() > 80, "{sqlite:?}");
    assert_eq!(sqlite, postgres);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn indexes_are_the_same() {
    let [sqlite, postgres] = query(INDEXES).await;
    assert!(sqlite.len() > 5, "{sqlite:?}");
    assert_eq!(sqlite, postgres);
}
