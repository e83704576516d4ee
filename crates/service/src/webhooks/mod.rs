//! Webhooks: endpoints, events, deliveries, test deliveries, history and replay.

pub mod deliveries;
pub mod endpoints;
pub mod events;
pub mod history;
pub mod replay;
pub mod test_delivery;
