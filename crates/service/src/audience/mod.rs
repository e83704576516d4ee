//! The people an account writes to: opt-out lists.

pub mod number_file;
pub mod optouts;
