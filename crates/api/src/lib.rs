//! The REST API under `/v1`, its OpenAPI document and the pages under `/docs`, and the monitoring
//! endpoints.
//!
//! Handlers parse the request, call one function of the service crate, and render the response.

mod account_shares;
mod auth;
mod balance;
mod body;
mod docs;
mod error;
mod header;
mod health;
mod idempotency;
mod inbound_messages;
mod media_type;
mod messages;
mod metrics_access;
mod openapi;
mod optout_lists;
mod query;
mod rate_limit;
mod rate_limit_layer;
mod readiness;
mod request;
mod response;
mod router;
mod security_events;
mod state;
mod unknown_path;

pub use error::{
    PROBLEM_TYPE, ProblemDocuments, https_required, invalid_host, method_not_allowed, not_found,
    overloaded, too_many_open_requests,
};
pub use health::{ALWAYS_SERVED, PATHS as MONITORING_PATHS, SERVED_WHILE_DRAINING, metrics_router};
pub use messages::MessageView;
pub use metrics_access::MetricsAccess;
pub use optout_lists::OptoutView;
pub use rate_limit::RateLimit;
pub use rate_limit_layer::RateLimitByKey;
pub use router::router;
pub use security_events::SecurityEvents;
pub use state::ApiState;
