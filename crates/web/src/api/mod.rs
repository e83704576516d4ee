//! The REST API under `/v1`.

pub(crate) mod balance;
pub(crate) mod inbound_messages;
pub(crate) mod messages;
pub(crate) mod optout_lists;
