//! SMPP 3.4: the codec, and the client that sends messages over it.

pub(crate) mod alarm;
pub mod bind;
pub mod body;
pub mod command;
mod end;
pub(crate) mod link;
pub mod options;
mod outbox;
pub(crate) mod pace;
pub mod pdu;
mod pulse;
pub mod receipt;
pub(crate) mod session;
pub mod status;
pub(crate) mod submit;
pub(crate) mod text;
mod window;
