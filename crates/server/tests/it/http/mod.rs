//! The HTTP listener, which does not depend on the database engine.

mod https;
mod limits;
mod metrics;
mod protocol_errors;
mod proxies;
mod security_log;
