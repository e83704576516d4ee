//! Middleware that fits every route, as tower layers.

pub mod access_log;
pub mod around;
pub mod in_flight;
pub mod request_id;
pub mod strict_transport;
