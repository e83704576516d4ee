//! Messages: accepting, dispatching, progress and cancelling; inbound messages, keywords and conversations.

pub mod accept;
pub mod cancel;
pub mod conversations;
pub mod dispatch;
pub mod handsets;
pub mod inbound;
pub mod inbound_messages;
pub mod keywords;
pub mod messages;
pub mod progress;
