//! The simulated SMSC: an SMPP 3.4 server with virtual handsets.

mod accept_loop;
mod address;
mod behaviour;
pub mod control;
mod delivery;
mod delivery_queue;
pub mod handset;
mod journal;
pub mod options;
mod receipt;
mod reply;
pub mod server;
mod session;
pub mod simulator;
mod state;
