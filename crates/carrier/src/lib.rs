//! SMPP 3.4 in both directions: a client (ESME) that submits messages to carriers, and a simulated
//! SMSC for tests and for test mode. Nothing in this crate knows the database.

pub mod carrier;
pub mod link_status;
pub mod smpp;
pub mod smsc;
mod stop;
