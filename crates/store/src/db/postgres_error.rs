//! Errors of PostgreSQL.

use crate::error::StoreError;
use deadpool_postgres::PoolError;
use std::error::Error as _;
use std::fmt::Write;
use tokio_postgres::error::SqlState;

/// Converts an error of the pool: there is no connection.
pub(crate) fn lost(e: PoolError) -> StoreError {
    match e {
        PoolError::Backend(e) => StoreError::Unavailable(words(&e)),
        other => StoreError::Unavailable(other.to_string()),
    }
}

/// Returns the messages of an error and its causes; tokio-postgres itself says only "db error".
pub(crate) fn words(e: &tokio_postgres::Error) -> String {
    let mut text = e.to_string();
    let mut cause = e.source();
    while let Some(c) = cause {
        let _ = write!(text, ": {c}");
        cause = c.source();
    }
    text
}

/// Classifies an error of PostgreSQL by what the caller can do about it.
pub(crate) fn failed(e: &tokio_postgres::Error) -> StoreError {
    let Some(code) = e.code() else { return StoreError::Unavailable(words(e)) };
    if [
        SqlState::T_R_DEADLOCK_DETECTED,
        SqlState::T_R_SERIALIZATION_FAILURE,
        SqlState::LOCK_NOT_AVAILABLE,
    ]
    .contains(code)
    {
        return StoreError::Conflict(words(e));
    }
    // Classes: 08 connection, 53 insufficient resources (disk, memory, connections), 57 operator
    // intervention (shutdown, time-out), 58 system error; 25006 is a standby that only reads.
    match code.code() {
        "25006" => StoreError::Unavailable(words(e)),
        c if ["08", "53", "57", "58"].iter().any(|class| c.starts_with(class)) => {
            StoreError::Unavailable(words(e))
        }
        c if c.starts_with("XX") => StoreError::Corrupt(words(e)),
        _ => StoreError::Db(words(e)),
    }
}
