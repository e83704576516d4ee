//! The database of one test: created for it, queried directly, and dropped.

use crate::support::engine::Engine;
use crate::support::postgres::Postgres;
use rusqlite::OpenFlags;
use std::path::PathBuf;
use std::time::Duration;

/// The database of one test.
#[derive(Debug)]
pub(crate) enum Database {
    /// The path of the file in the data folder.
    Sqlite(PathBuf),
    Postgres(Postgres),
}

impl Database {
    /// Creates a database for a server with this working directory.
    pub(crate) fn new(engine: Engine, home: &std::path::Path) -> Self {
        match engine {
            Engine::Sqlite => Self::Sqlite(home.join("data/heliograph.db")),
            Engine::Postgres => Self::Postgres(Postgres::create()),
        }
    }

    /// Returns the value for `database.url`, unless it is the default.
    pub(crate) fn url(&self) -> Option<String> {
        match self {
            Self::Sqlite(_) => None,
            Self::Postgres(p) => Some(p.url()),
        }
    }

    /// Executes a statement, which must change rows.
    pub(crate) fn change(&self, sql: &str) {
        match self {
            Self::Sqlite(path) => {
                let conn = rusqlite::Connection::open(path).unwrap();
                conn.busy_timeout(Duration::from_secs(5)).unwrap();
                assert!(conn.execute(sql, []).unwrap() > 0);
            }
            Self::Postgres(p) => p.change(sql),
        }
    }

    /// Locks an SQLite file for other writers, until the connection is dropped.
    pub(crate) fn lock(&self) -> rusqlite::Connection {
        let path = match self {
            Self::Sqlite(path) => path,
            Self::Postgres(_) => panic!("only an SQLite file can be locked"),
        };
        let conn = rusqlite::Connection::open(path).unwrap();
        conn.busy_timeout(Duration::from_secs(5)).unwrap();
        conn.execute_batch("BEGIN IMMEDIATE").unwrap();
        conn
    }

    /// Calls `meanwhile` while the database cannot be written.
    pub(crate) fn while_unavailable(&self, meanwhile: impl FnOnce()) {
        match self {
            Self::Sqlite(_) => {
                let _lock = self.lock();
                meanwhile();
            }
            Self::Postgres(p) => {
                p.disconnect();
                meanwhile();
                p.reconnect();
            }
        }
    }

    /// Returns the single number that a query selects.
    pub(crate) fn number(&self, sql: &str) -> i64 {
        match self {
            Self::Sqlite(path) => {
                let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
                let conn = rusqlite::Connection::open_with_flags(path, flags).unwrap();
                conn.busy_timeout(Duration::from_secs(5)).unwrap();
                conn.query_row(sql, [], |row| row.get(0)).unwrap()
            }
            Self::Postgres(p) => p.number(sql),
        }
    }

    /// Returns the rows that a query selects, as text.
    pub(crate) fn rows(&self, sql: &str) -> Vec<String> {
        match self {
            Self::Sqlite(path) => {
                let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
                let conn = rusqlite::Connection::open_with_flags(path, flags).unwrap();
                conn.busy_timeout(Duration::from_secs(5)).unwrap();
                let mut statement = conn.prepare(sql).unwrap();
                let columns = 0..statement.column_count();
                let row = |row: &rusqlite::Row<'_>| {
                    let value = |n| row.get::<_, rusqlite::types::Value>(n).unwrap();
                    Ok(columns.clone().map(|n| format!("{:?} ", value(n))).collect())
                };
                statement.query_map([], row).unwrap().map(Result::unwrap).collect()
            }
            Self::Postgres(p) => p.rows(sql),
        }
    }
}
