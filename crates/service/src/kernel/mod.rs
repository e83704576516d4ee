//! The foundation of every business rule: context, errors, audit log, idempotency and the commands of the writer.

pub mod account_limits;
pub mod audit;
pub mod caller;
pub mod commands;
pub mod context;
pub mod error;
pub mod idempotency;
pub mod local_queue;
pub mod log_limit;
pub mod metrics;
pub mod name_resolution;
pub mod notifier;
pub mod security_log;
pub mod writer;
