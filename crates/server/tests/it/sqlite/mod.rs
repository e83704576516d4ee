//! Tests of SQLite only.

mod data_file;
mod full_disk;
mod live_updates;
mod schema;
