//! The business rules and the transactions of Heliograph.
//!
//! Functions that take a [`kernel::context::Context`] open their own transaction; functions that take a
//! connection run inside the caller's transaction.
//!
//! Functions with the attribute `boxed` return a boxed future. The code of a plain `async fn` is compiled
//! again in every crate that awaits it, together with all that it awaits; the code of a boxed future is
//! compiled once, in this crate. See `docs/decisions/0014-release-profile-and-boxed-futures.md`.
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
