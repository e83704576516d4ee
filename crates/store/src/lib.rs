//! All SQL of Heliograph. Every statement runs on SQLite and on PostgreSQL.
//!
//! Each table has a module with its name, which declares the columns once (`db/record.rs`) and
//! holds the statements. The drivers are in `db/`.
//!
//! Functions that read return [`StoreError::Unavailable`] when the database cannot be reached, and
//! [`StoreError::Corrupt`] when a stored value cannot be read. Functions that write also return
//! [`StoreError::Conflict`] when another transaction holds the rows for too long or PostgreSQL
//! detects a deadlock. Only further errors are documented at a function.

pub mod audience;
pub mod billing;
mod db;
mod error;
pub mod idempotency;
pub mod identity;
pub mod messaging;
pub mod operations;
pub mod webhooks;

pub use db::bulk::BulkQuery;
pub use db::installation::verify_sealing_key;
pub use db::key_rotation::rotate_sealing_key;
pub use db::sealing::{KEY_BYTES, SealingKey};
pub use db::{Conn, Db, Options, Schema, Tx};
pub use error::{StoreError, StoreResult};
