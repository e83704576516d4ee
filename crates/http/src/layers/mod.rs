//! Middleware that fits every route.

pub mod access_log;
pub mod around;
pub mod in_flight;
pub mod request_id;
pub mod require_https;
pub mod security_headers;
pub mod valid_host;
