//! Opens either engine and runs statements on both through one thin handle.
//!
//! A statement is written once, with `$1` placeholders. Parameters are [`Value`](value::Value)s and
//! results are [`Row`](row::Row)s, so no type of a driver leaves this folder.

pub(crate) mod bulk;
pub(crate) mod conn;
pub(crate) mod copy;
pub(crate) mod database;
pub(crate) mod field;
pub(crate) mod installation;
pub(crate) mod key_rotation;
pub(crate) mod migrations;
mod postgres;
mod postgres_error;
mod postgres_row;
mod postgres_tls;
pub(crate) mod record;
pub(crate) mod row;
pub(crate) mod sealing;
mod sqlite;
mod sqlite_error;
mod sqlite_row;
pub(crate) mod table;
mod time;
pub(crate) mod value;

pub use conn::{Conn, Tx};
pub use database::{Db, Options, Schema};
