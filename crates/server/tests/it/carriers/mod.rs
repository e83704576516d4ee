//! Carriers: SMPP with other implementations.

#[cfg(feature = "test-peers")]
mod node_smpp;
mod outages;
