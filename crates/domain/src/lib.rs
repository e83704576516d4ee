//! The domain model: plain types and pure rules, without I/O.
//!
//! Nothing in this crate reads a clock, a random source, a file or a socket: callers inject them
//! ([`time::Clock`], [`id::Ids`], [`secret::Random`], [`egress_policy::Resolver`]).
//!
//! Enums have up to two representations: `code` and `from_code` for the database, `name` and
//! `from_name` for the wire (API, webhooks, command line). A parser returns `None`, or an error
//! whose text tells the user what to change. The texts of codes are in [`wording`].

pub mod account;
pub mod account_limit;
pub mod account_ref;
pub mod carrier;
pub mod delivery_error;
pub mod egress_policy;
pub mod email;
pub mod endpoint_error;
pub mod event;
pub mod fields;
pub mod id;
pub mod inbound;
pub mod inbound_message;
pub mod lease;
pub mod lease_fence;
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
pub mod text;
pub mod time;
pub mod totp;
pub mod webhook;
pub mod webhook_url;
pub mod wording;
