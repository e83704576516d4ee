//! Webhook deliveries.

mod delivery;
mod name_resolution;
mod tls;
