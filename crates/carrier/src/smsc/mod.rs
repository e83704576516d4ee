//! The simulated SMSC: a real SMPP server with virtual handsets behind it.

mod behaviour;
pub mod control;
mod delivery;
pub mod handset;
mod journal;
mod listen;
mod mailbox;
pub mod options;
mod party;
mod receipt;
mod reply;
pub mod server;
mod session;
mod shared;
pub mod simulator;
