//! Opt-out lists.

pub mod optouts;
