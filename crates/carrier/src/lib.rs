//! Carriers: everything that speaks SMPP, in both directions, and nothing that knows the database.

pub mod carrier;
pub mod condition;
pub mod smpp;
pub mod smsc;
mod stop;
