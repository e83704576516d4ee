//! SMPP 3.4: the codec and the client (ESME).

pub mod bind;
pub mod body;
mod close_reason;
pub mod command;
mod event_queue;
mod keepalive;
pub(crate) mod link;
pub mod options;
pub mod pdu;
pub(crate) mod rate;
pub mod receipt;
pub(crate) mod session;
pub mod status;
pub(crate) mod submit;
pub(crate) mod text;
pub(crate) mod timer;
mod window;
