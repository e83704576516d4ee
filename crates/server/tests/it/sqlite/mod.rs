//! Tests of SQLite only. They use SQLite, whichever engine the run uses.

mod data_file;
mod full_disk;
mod live_updates;
mod schema;
