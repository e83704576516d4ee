//! The command that records the results of webhook deliveries.

use crate::kernel::commands::writer_command::WriterCommand;
use heliograph_domain::delivery_error::AttemptOutcome;
use heliograph_domain::id::{AccountId, EndpointId};
use heliograph_domain::lease::DeliveryLease;
use heliograph_domain::time::Timestamp;
use heliograph_store::StoreError;
use std::time::Duration;
use tokio::sync::oneshot;

/// A request of an endpoint worker to record results.
#[derive(Debug)]
pub struct ReportDeliveries {
    /// The results.
    pub report: DeliveryReport,
    /// Receives the outcome.
    pub reply: DeliveryReportReply,
}

/// Confirms that a report is durable, or returns the report.
pub type DeliveryReportReply = oneshot::Sender<Result<(), (StoreError, DeliveryReport)>>;

/// The results of delivery attempts at one endpoint.
#[derive(Debug)]
pub struct DeliveryReport {
    /// The endpoint.
    pub endpoint: EndpointId,
    /// One result for each leased delivery.
    pub attempts: Vec<AttemptResult>,
}

/// The result of one leased delivery.
#[derive(Debug)]
pub struct AttemptResult {
    /// The lease, which authorizes the result.
    pub lease: DeliveryLease,
    /// The account of the event.
    pub account: AccountId,
    /// True if the endpoint is the event's first one, whose first attempt is stored with the event.
    pub primary: bool,
    /// The end of the attempt.
    pub at: Timestamp,
    /// The duration of the attempt.
    pub took: Duration,
    /// The outcome.
    pub outcome: DeliveryOutcome,
}

/// The outcome of a delivery attempt.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum DeliveryOutcome {
    /// No attempt was made: the lease is released.
    NotAttempted,
    /// The endpoint accepted the delivery (2xx).
    Delivered {
        /// The HTTP status.
        status: u16,
        /// The beginning of the response body.
        body: Option<String>,
    },
    /// The attempt failed.
    Failed {
        /// The failure.
        failure: DeliveryFailure,
        /// The delay until the next attempt; `None` after the last one.
        retry_after: Option<Duration>,
        /// False if the attempt does not count as one of the schedule.
        counts: bool,
        /// True if the endpoint responded with 410 Gone.
        gone: bool,
    },
}

/// A failed delivery attempt.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct DeliveryFailure {
    /// The status of the response, or the kind of the error.
    pub outcome: AttemptOutcome,
    /// The technical detail of the error.
    pub detail: Option<String>,
    /// The beginning of the response body.
    pub body: Option<String>,
}

impl WriterCommand for ReportDeliveries {
    fn weight(&self) -> usize {
        self.report.attempts.len()
    }

    fn refuse(self, error: &StoreError) {
        let _ = self.reply.send(Err((error.share(), self.report)));
    }
}
