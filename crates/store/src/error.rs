//! What can go wrong in the store, by what the caller can do about it.

use std::fmt;

/// A store's failure. What is missing is `None`, not an error.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The database can't be reached, or has no room: nothing happened, and trying later may help.
    #[error("the database is not available: {0}")]
    Unavailable(String),
    /// Two transactions wanted the same rows: nothing happened, and trying at once may help.
    #[error("two transactions met: {0}")]
    Conflict(String),
    /// The connection broke while a commit was under way: it may or may not have happened.
    #[error("the answer to a commit was lost: {0}")]
    CommitLost(String),
    /// The database holds something that this program never writes.
    #[error("the database is corrupt: {0}")]
    Corrupt(String),
    /// A statement failed for a reason of its own.
    #[error("the database refused a statement: {0}")]
    Db(String),
    /// The secrets in the database are sealed with another key.
    #[error(
        "the sealing key is not the one with which this database's secrets are sealed: name the file that holds that \
         key in database.sealing_key, or put it in the place of sealing.key in server.data_dir; every node on one \
         database needs the same key"
    )]
    WrongKey,
    /// A backup can't be written or used: which, and why.
    #[error("{0}")]
    Backup(String),
}

/// A result of the store.
pub type Result<T> = std::result::Result<T, Error>;

impl Error {
    /// A stored value that no version of this program writes.
    pub(crate) fn corrupt(what: impl fmt::Display) -> Self {
        Self::Corrupt(what.to_string())
    }

    /// The same error for one of several callers who wait for one transaction.
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
