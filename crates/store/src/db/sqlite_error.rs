//! Errors of SQLite.

use crate::error::StoreError;
use rusqlite::ErrorCode;

/// Classifies an error of SQLite by what the caller can do about it. Lack of space or access and a
/// lock that is held too long may go away, or the operator can resolve them.
pub(crate) fn failed(e: rusqlite::Error) -> StoreError {
    match e.sqlite_error_code() {
        Some(
            ErrorCode::DiskFull
            | ErrorCode::SystemIoFailure
            | ErrorCode::CannotOpen
            | ErrorCode::ReadOnly
            | ErrorCode::DatabaseBusy
            | ErrorCode::DatabaseLocked
            | ErrorCode::FileLockingProtocolFailed
            | ErrorCode::OutOfMemory,
        ) => StoreError::Unavailable(e.to_string()),
        Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase) => {
            StoreError::Corrupt(e.to_string())
        }
        _ => StoreError::Db(e.to_string()),
    }
}
