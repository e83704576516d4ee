//! The result of a test delivery, as the endpoint's page shows it.

use crate::format;
use heliograph_domain::event::EventKind;
use heliograph_domain::wording::{capitalized, deliveries};
use heliograph_service::webhooks::test_delivery::TestDelivery;

/// A test and its outcome.
pub(super) struct TestResult {
    pub(super) kind: &'static str,
    /// `good` or `bad`.
    pub(super) state: &'static str,
    pub(super) outcome: String,
    pub(super) duration: String,
    pub(super) problem: String,
    pub(super) fix: String,
    /// Head and body of the request.
    pub(super) request: String,
    pub(super) response: String,
}

impl TestResult {
    /// Describes the outcome of a test delivery.
    pub(super) fn new(kind: EventKind, trial: TestDelivery, request: String) -> Self {
        let (status, body) = (trial.outcome.status(), trial.body.unwrap_or_default());
        let response = match status {
            Some(status) => format!("HTTP {status}\n\n{body}"),
            None => {
                let detail = trial.detail.as_deref().unwrap_or_default();
                capitalized(&deliveries::outcome(trial.outcome, detail))
            }
        };
        let outcome = match status {
            Some(status) => format!("Response {status}"),
            None => "No response".to_owned(),
        };
        let advice = deliveries::advice(trial.outcome);
        Self {
            kind: kind.name(),
            state: if trial.outcome.is_success() { "good" } else { "bad" },
            outcome,
            duration: format::millis(trial.took),
            problem: advice.map_or("", |a| a.problem).to_owned(),
            fix: advice.map_or("", |a| a.fix).to_owned(),
            request,
            response: response.trim_end().to_owned(),
        }
    }

    /// Returns the result when no worker sent the test in time.
    pub(super) fn not_sent(kind: EventKind) -> Self {
        let fix = "No node of this installation is sending webhooks, or all workers are busy. The test stays queued \
                   and appears under Deliveries when it is sent.";
        Self {
            kind: kind.name(),
            state: "bad",
            outcome: "Not sent in time".to_owned(),
            duration: String::new(),
            problem: "The test is still pending".to_owned(),
            fix: fix.to_owned(),
            request: String::new(),
            response: String::new(),
        }
    }
}
