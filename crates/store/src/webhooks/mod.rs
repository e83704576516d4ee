//! Webhook endpoints, events, deliveries and delivery attempts.

pub mod attempts;
pub mod deliveries;
pub mod endpoints;
pub mod events;
