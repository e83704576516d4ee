//! Webhook deliveries.

mod delivery;
mod tls;
