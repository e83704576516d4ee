//! What things are: plain types and pure rules, without any input or output.
//!
//! Nothing here reads a clock, a random source, a file or a socket; whoever needs one hands it in.

pub mod account;
pub mod carrier;
pub mod email;
pub mod event;
pub mod id;
pub mod inbound;
pub mod inbound_message;
pub mod lease;
pub mod message;
pub mod money;
#[cfg(feature = "openapi")]
pub mod openapi;
pub mod optout;
pub mod originator;
pub mod password;
pub mod phone;
pub mod rate;
pub mod receipt;
pub mod recovery;
pub mod retry;
pub mod secret;
pub mod stats;
pub mod submission;
pub mod target;
pub mod text;
pub mod time;
pub mod totp;
pub mod trouble;
pub mod webhook;
