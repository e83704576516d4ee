//! The texts of webhook endpoints that are switched off or invalid. All of them are clauses, which
//! [`sentence`](crate::wording::sentence) turns into sentences.

use crate::endpoint_error::{DisabledReason, InvalidEndpoint};

/// Explains why an endpoint is off.
pub const fn disabled(reason: DisabledReason) -> &'static str {
    match reason {
        DisabledReason::Gone => "the endpoint responded with 410 Gone",
        DisabledReason::Failing => "every delivery failed for five days",
        DisabledReason::Manual => "the endpoint was disabled manually",
    }
}

/// Explains why an endpoint cannot be registered or used, and what to do.
pub fn invalid(why: &InvalidEndpoint) -> String {
    match why {
        InvalidEndpoint::Url(why) => why.to_string(),
        InvalidEndpoint::Denied(why) => why.to_string(),
        InvalidEndpoint::HostNotFound { host, error } => {
            format!("the host {host} can't be resolved: {error}")
        }
        InvalidEndpoint::NoAddress(host) => format!("the host {host} has no address"),
        InvalidEndpoint::Duplicate(id) => {
            format!("endpoint {id} already has this URL: change that endpoint, or use another URL")
        }
        InvalidEndpoint::Off(id, reason) => {
            format!("endpoint {id} is disabled ({}): enable it first", disabled(*reason))
        }
    }
}
