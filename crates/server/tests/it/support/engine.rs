//! The database engine of this test run, from the environment variable `HELIOGRAPH_TEST_ENGINE`.

use std::io::Write;

const VARIABLE: &str = "HELIOGRAPH_TEST_ENGINE";

/// A database engine that the server supports.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Engine {
    Sqlite,
    Postgres,
}

impl Engine {
    /// Returns the engine of this run: SQLite, unless the variable says `postgres`.
    pub(crate) fn current() -> Self {
        let value = std::env::var_os(VARIABLE).unwrap_or_default();
        match value.to_str() {
            Some("" | "sqlite") => Self::Sqlite,
            Some("postgres") => Self::Postgres,
            _ => panic!("{VARIABLE} is {value:?}: use sqlite or postgres"),
        }
    }

    /// Returns the engines that can be used here: PostgreSQL only where a server is configured.
    pub(crate) fn available() -> Vec<Self> {
        let mut engines = vec![Self::Sqlite];
        if Self::current() == Self::Postgres || crate::support::postgres::is_configured() {
            engines.push(Self::Postgres);
        }
        engines
    }

    /// Returns whether this run uses this engine; if not, prints why the test is skipped.
    pub(crate) fn is_current_or_skip(self, reason: &str) -> bool {
        let is_current = Self::current() == self;
        if !is_current {
            // Unlike `eprintln!`, this is not captured by the test harness.
            let _ = writeln!(std::io::stderr(), "skipped, for {self:?} only: {reason}");
        }
        is_current
    }
}
