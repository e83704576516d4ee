//! The business rules and the transactions of Heliograph.
//!
//! Functions that take a [`kernel::context::Context`] open their own transaction; functions that take a
//! connection run inside the caller's transaction.
//!
//! # Errors
//! Every function that reads or writes returns [`kernel::error::Error::Overloaded`] while the database is
//! unavailable and [`kernel::error::Error::CommitUnknown`] when the answer to a commit was lost. Functions
//! that take a [`kernel::caller::Caller`] return [`kernel::error::Error::Scope`] when it lacks the permission, and
//! [`kernel::error::Error::NotFound`] also for objects of another account or mode. Only other errors are
//! documented at the function.

pub mod audience;
pub mod billing;
pub mod group_commit;
pub mod identity;
pub mod kernel;
pub mod messaging;
pub mod operations;
pub mod webhooks;
