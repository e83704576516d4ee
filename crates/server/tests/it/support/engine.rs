//! The database engine of this test run, from the environment variable `HELIOGRAPH_TEST_ENGINE`.

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
}
