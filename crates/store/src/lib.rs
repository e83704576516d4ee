//! All SQL, for SQLite and PostgreSQL alike: one text, one set of rules, two engines.

pub mod accounts;
pub mod api_keys;
pub mod attempts;
pub mod backup;
mod bulk;
pub mod carrier_refs;
pub mod carriers;
pub mod check;
mod db;
mod db_copy;
mod db_postgres;
mod db_sqlite;
pub mod deliveries;
pub mod endpoints;
mod error;
pub mod events;
pub mod idempotency;
pub mod inbound_messages;
pub mod inbound_parts;
pub mod installation;
pub mod ledger;
pub mod messages;
mod migrations;
pub mod nodes;
pub mod numbers;
pub mod optouts;
pub mod parts;
pub mod queue;
mod row;
mod sealing;
mod value;

pub use bulk::Ask;
pub use db::{Conn, Db, Options, Schema, Tx};
pub use error::{Error, Result};
pub use sealing::{KEY_BYTES, SealingKey};
