//! The simulated SMSC: a real SMPP server with virtual handsets behind it.

mod behaviour;
pub mod handset;
mod journal;
mod mailbox;
pub mod options;
mod receipt;
pub mod server;
mod session;
mod shared;
