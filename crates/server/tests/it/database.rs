//! A database for one test, on either engine: made for it, looked into from outside, then dropped.

use rusqlite::OpenFlags;
use std::path::PathBuf;
use std::time::Duration;

/// On what a test runs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Engine {
    Sqlite,
    #[cfg(feature = "test-postgres")]
    Postgres,
}

impl Engine {
    /// All on which this test run is.
    #[allow(dead_code, reason = "only one of the two test binaries restores backups")]
    pub(crate) const ALL: &[Self] = &[
        Self::Sqlite,
        #[cfg(feature = "test-postgres")]
        Self::Postgres,
    ];
}

/// One test's database.
#[derive(Debug)]
pub(crate) enum Database {
    /// The file in the data folder.
    Sqlite(PathBuf),
    #[cfg(feature = "test-postgres")]
    Postgres(crate::postgres::Postgres),
}

impl Database {
    /// For a server whose working directory is `home`.
    pub(crate) fn new(engine: Engine, home: &std::path::Path) -> Self {
        match engine {
            Engine::Sqlite => Self::Sqlite(home.join("data/heliograph.db")),
            #[cfg(feature = "test-postgres")]
            Engine::Postgres => Self::Postgres(crate::postgres::Postgres::create()),
        }
    }

    /// What `database.url` must say; nothing when the default is right.
    pub(crate) fn url(&self) -> Option<String> {
        match self {
            Self::Sqlite(_) => None,
            #[cfg(feature = "test-postgres")]
            Self::Postgres(p) => Some(p.url()),
        }
    }

    /// Changes something behind the server's back.
    pub(crate) fn change(&self, sql: &str) {
        match self {
            Self::Sqlite(path) => {
                let conn = rusqlite::Connection::open(path).unwrap();
                conn.busy_timeout(Duration::from_secs(5)).unwrap();
                assert!(conn.execute(sql, []).unwrap() > 0);
            }
            #[cfg(feature = "test-postgres")]
            Self::Postgres(p) => p.change(sql),
        }
    }

    /// Keeps every other writer out of an SQLite file, until the connection is dropped.
    pub(crate) fn lock(&self) -> rusqlite::Connection {
        let path = match self {
            Self::Sqlite(path) => path,
            #[cfg(feature = "test-postgres")]
            Self::Postgres(_) => panic!("only a file can be locked"),
        };
        let conn = rusqlite::Connection::open(path).unwrap();
        conn.busy_timeout(Duration::from_secs(5)).unwrap();
        conn.execute_batch("BEGIN IMMEDIATE").unwrap();
        conn
    }

    /// Does something while nothing can be written.
    pub(crate) fn away(&self, meanwhile: impl FnOnce()) {
        match self {
            Self::Sqlite(_) => {
                let _lock = self.lock();
                meanwhile();
            }
            #[cfg(feature = "test-postgres")]
            Self::Postgres(p) => {
                p.lose();
                meanwhile();
                p.find_again();
            }
        }
    }

    /// The one number that a query gives.
    pub(crate) fn number(&self, sql: &str) -> i64 {
        match self {
            Self::Sqlite(path) => {
                let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
                let conn = rusqlite::Connection::open_with_flags(path, flags).unwrap();
                conn.busy_timeout(Duration::from_secs(5)).unwrap();
                conn.query_row(sql, [], |row| row.get(0)).unwrap()
            }
            #[cfg(feature = "test-postgres")]
            Self::Postgres(p) => p.number(sql),
        }
    }

    /// All that a query gives, each row as text.
    #[allow(dead_code, reason = "only one of the two test binaries compares rows")]
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
            #[cfg(feature = "test-postgres")]
            Self::Postgres(p) => p.rows(sql),
        }
    }
}

/// Makes of each function in `$module` that takes an engine a test for each engine.
macro_rules! each_engine {
    ($module:ident: $($name:ident)+) => {
        mod sqlite {
            $(#[test]
            fn $name() {
                crate::$module::$name(crate::database::Engine::Sqlite);
            })+
        }

        #[cfg(feature = "test-postgres")]
        mod postgres {
            $(#[test]
            fn $name() {
                crate::$module::$name(crate::database::Engine::Postgres);
            })+
        }
    };
}

pub(crate) use each_engine;
