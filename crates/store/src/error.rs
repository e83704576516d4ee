//! Errors of the store, by what the caller can do about them.

use std::fmt;

/// An error of the store. A missing row is `None`, not an error.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// The database cannot be reached or has no space: nothing was changed, and a retry later may
    /// help.
    #[error("database unavailable: {0}")]
    Unavailable(String),
    /// A deadlock, serialization failure or lock timeout: nothing was changed, and an immediate
    /// retry may help.
    #[error("transaction conflict: {0}")]
    Conflict(String),
    /// The connection broke during a commit, whose outcome is therefore unknown.
    #[error("commit outcome unknown: {0}")]
    CommitLost(String),
    /// The database contains a value that this version cannot read.
    #[error("database corrupt: {0}")]
    Corrupt(String),
    /// A statement failed for another reason.
    #[error("database statement failed: {0}")]
    Db(String),
    /// The secrets in the database are sealed with another key.
    #[error(
        "the secrets of this database are sealed with another sealing key: set database.sealing_key to the file that \
         holds that key, or replace sealing.key in server.data_dir; all nodes on one database need the same key"
    )]
    WrongKey,
    /// A backup cannot be written or read; the text names the file and the reason.
    #[error("{0}")]
    Backup(String),
}

/// A result of the store.
pub type StoreResult<T> = std::result::Result<T, StoreError>;

impl StoreError {
    /// Returns an error about a stored value.
    pub(crate) fn corrupt(what: impl fmt::Display) -> Self {
        Self::Corrupt(what.to_string())
    }

    /// Copies the error for one of several callers that wait for the same transaction.
    pub fn share(&self) -> Self {
        match self {
            Self::Unavailable(e) => Self::Unavailable(e.clone()),
            Self::Conflict(e) => Self::Conflict(e.clone()),
            Self::CommitLost(e) => Self::CommitLost(e.clone()),
            Self::Corrupt(e) => Self::Corrupt(e.clone()),
            Self::Db(e) => Self::Db(e.clone()),
            Self::WrongKey => Self::WrongKey,
            Self::Backup(e) => Self::Backup(e.clone()),
        }
    }
}
