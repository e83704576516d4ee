//! The outgoing HTTP client for webhooks and `heliograph listen`, with SSRF protection.

pub(crate) mod authorities;
pub(crate) mod client;
pub(crate) mod connection;
