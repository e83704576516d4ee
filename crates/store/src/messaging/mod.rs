//! Messages, their parts and the queue, carrier references, and inbound messages.

pub mod carrier_refs;
pub mod conversations;
pub mod handset_replies;
pub mod inbound_messages;
pub mod inbound_parts;
pub mod keyword_replies;
pub mod messages;
pub mod parts;
pub mod queue;
