//! The server behind a webhook endpoint.

use crate::support::site::Site;
use heliograph_domain::id::EndpointId;
use heliograph_service::kernel::commands::claim_deliveries::{ClaimDeliveries, LeasedDelivery};
use heliograph_service::kernel::commands::command::Command;
use heliograph_service::kernel::commands::report_deliveries::{
    AttemptResult, DeliveryReport, ReportDeliveries,
};
use heliograph_service::kernel::local_queue::LocalQueue;
use heliograph_service::webhooks::deliveries::{
    DeliveryAttemptInfo, WebhookResponse, evaluate_response,
};
use std::time::Duration;
use tokio::sync::oneshot;

impl Site {
    /// Answers the pending deliveries of the endpoint on this page, and returns their number.
    pub(crate) async fn answer(&self, page: &str, status: u16, body: &str) -> usize {
        let endpoint = EndpointId(page.rsplit('/').next().unwrap().parse().unwrap());
        let room = LocalQueue::<LeasedDelivery>::new(8).0.reserve_up_to(8).unwrap();
        let (reply, leased) = oneshot::channel();
        let claim = ClaimDeliveries { endpoint, urgent: false, room, reply };
        self.app.writer.try_send(Command::ClaimDeliveries(claim)).unwrap();
        let leased = leased.await.unwrap().unwrap();
        let response =
            || WebhookResponse::Http { status, body: body.to_owned(), retry_after: None };
        let info =
            |tries| DeliveryAttemptInfo { tries, age: Duration::ZERO, endpoint_works: false };
        let attempt = |d: &LeasedDelivery| AttemptResult {
            lease: d.lease.clone(),
            account: d.event.account,
            primary: d.primary,
            at: self.cx().db.now(),
            took: Duration::from_millis(7),
            outcome: evaluate_response(info(d.lease.tries), response(), 0.5),
        };
        let report = DeliveryReport { endpoint, attempts: leased.iter().map(attempt).collect() };
        let (reply, reported) = oneshot::channel();
        let report = ReportDeliveries { report, reply };
        self.app.writer.try_send(Command::ReportDeliveries(report)).unwrap();
        reported.await.unwrap().unwrap();
        leased.len()
    }
}
