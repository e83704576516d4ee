//! Messages: accepting, dispatching, progress, cancelling, replies and conversations.

pub mod accept;
pub mod cancel;
pub mod conversations;
pub mod dispatch;
pub mod handsets;
pub mod inbound_messages;
pub mod messages;
pub mod progress;
pub mod replies;
