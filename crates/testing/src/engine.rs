//! The database engine of a test run, from the environment.

/// The variable that selects the engine.
const VARIABLE: &str = "HELIOGRAPH_TEST_ENGINE";

/// A database engine.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum TestEngine {
    /// SQLite, in a temporary file.
    Sqlite,
    /// PostgreSQL, on the server named by `HELIOGRAPH_TEST_POSTGRES`.
    Postgres,
}

/// Returns the engine that this test run uses.
///
/// # Panics
/// If `HELIOGRAPH_TEST_ENGINE` names no engine.
pub fn engine() -> TestEngine {
    match std::env::var(VARIABLE).as_deref() {
        Err(std::env::VarError::NotPresent) | Ok("" | "sqlite") => TestEngine::Sqlite,
        Ok("postgres") => TestEngine::Postgres,
        other => panic!("{VARIABLE} must be `sqlite` or `postgres`, not {other:?}"),
    }
}

/// Returns the URL of the PostgreSQL server for tests.
///
/// # Panics
/// If `HELIOGRAPH_TEST_POSTGRES` is not set.
pub(crate) fn postgres_server() -> String {
    std::env::var("HELIOGRAPH_TEST_POSTGRES").expect(
        "HELIOGRAPH_TEST_POSTGRES must be the URL of a PostgreSQL server on which tests may create \
         and drop databases: `scripts/postgres-cluster start DIR` starts one and prints its URL",
    )
}
