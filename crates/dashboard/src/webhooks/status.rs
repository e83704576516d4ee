//! The status badge of a webhook endpoint, and its explanation.

use crate::format;
use heliograph_domain::endpoint_error::DisabledReason;
use heliograph_domain::webhook::WebhookEndpoint;
use heliograph_domain::wording::endpoints;

/// Returns class and text of the status badge.
pub(super) const fn badge(e: &WebhookEndpoint) -> (&'static str, &'static str) {
    match (e.off, e.failing_since) {
        (Some(_), _) => ("off", "Disabled"),
        (None, Some(_)) => ("bad", "Failing"),
        (None, None) => ("on", "Enabled"),
    }
}

/// Explains why an endpoint is disabled or failing, and what to do; empty for a healthy endpoint.
pub(super) fn explanation(e: &WebhookEndpoint) -> String {
    match (e.off, e.failing_since) {
        (Some((since, reason)), _) => {
            let (_, since) = format::date_time(since);
            let detail = endpoints::disabled(reason);
            let next = match reason {
                DisabledReason::Manual => "After enabling it, you can replay missed events.",
                _ => {
                    "Fix the cause, send a test event, enable the endpoint and replay missed events."
                }
            };
            format!("Disabled since {since}: {detail}. {next}")
        }
        (None, Some(since)) => {
            let (_, since) = format::date_time(since);
            format!(
                "All deliveries have failed since {since}. Failed events are retried; the endpoint is disabled after five days \
                 of failures."
            )
        }
        (None, None) => String::new(),
    }
}
