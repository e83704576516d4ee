//! An endpoint worker without HTTP: a local queue for one endpoint. The test decides its answers.

use crate::node::{Node, accepted, delivered, outcome, text};
use heliograph_domain::account::Mode;
use heliograph_domain::event::EventKind;
use heliograph_domain::id::{EndpointId, EventId, MessageId};
use heliograph_domain::webhook::{EventKinds, SECRET_BYTES, WebhookEndpoint, WebhookSecret};
use heliograph_service::kernel::audit::Actor;
use heliograph_service::kernel::caller::Caller;
use heliograph_service::kernel::commands::claim_deliveries::{ClaimDeliveries, LeasedDelivery};
use heliograph_service::kernel::commands::command::Command;
use heliograph_service::kernel::commands::report_deliveries::{
    AttemptResult, DeliveryOutcome, DeliveryReport, ReportDeliveries,
};
use heliograph_service::kernel::local_queue::LocalQueue;
use heliograph_service::webhooks::deliveries::{self, DeliveryAttemptInfo, WebhookResponse};
use heliograph_service::webhooks::endpoints::{self, NewEndpoint};
use heliograph_testing::TestDb;
use std::cell::RefCell;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{mpsc, oneshot};

/// The HTTP statuses of an endpoint.
pub(crate) const OK: u16 = 200;
pub(crate) const BROKEN: u16 = 500;
pub(crate) const GONE: u16 = 410;

pub(crate) struct EndpointWorker {
    pub(crate) id: EndpointId,
    pub(crate) queue: Arc<LocalQueue<LeasedDelivery>>,
    arrivals: RefCell<mpsc::Receiver<Vec<LeasedDelivery>>>,
}

impl EndpointWorker {
    /// Starts a worker without older deliveries.
    pub(crate) async fn start(node: &Node, id: EndpointId) -> Self {
        let worker = Self::idle(node, id);
        worker.queue.set_available(true);
        assert_eq!(worker.claim(node).await.len(), 0);
        worker
    }

    /// Starts a worker that has not claimed yet, so that no deliveries are handed to it directly.
    pub(crate) fn idle(node: &Node, id: EndpointId) -> Self {
        let (queue, arrivals) = LocalQueue::new(32);
        node.delivery_queues.insert(id, queue.clone());
        Self { id, queue, arrivals: RefCell::new(arrivals) }
    }

    /// Returns the deliveries that were handed over since the last call.
    pub(crate) fn arrived(&self) -> Vec<LeasedDelivery> {
        let mut arrivals = self.arrivals.borrow_mut();
        std::iter::from_fn(|| arrivals.try_recv().ok()).flatten().collect()
    }

    /// Claims as many deliveries as there is room for.
    pub(crate) async fn claim(&self, node: &Node) -> Vec<LeasedDelivery> {
        self.claim_leased(node, false).await
    }

    /// Claims only test deliveries.
    pub(crate) async fn claim_urgent(&self, node: &Node) -> Vec<LeasedDelivery> {
        self.claim_leased(node, true).await
    }

    async fn claim_leased(&self, node: &Node, urgent: bool) -> Vec<LeasedDelivery> {
        let room = self.queue.reserve_up_to(usize::MAX).unwrap();
        let (reply, mut answer) = oneshot::channel();
        node.write(vec![Command::ClaimDeliveries(ClaimDeliveries {
            endpoint: self.id,
            urgent,
            room,
            reply,
        })])
        .await;
        answer.try_recv().unwrap().unwrap()
    }

    /// Reports the same HTTP status for all of these deliveries.
    pub(crate) async fn answer(&self, node: &Node, deliveries: Vec<LeasedDelivery>, status: u16) {
        let results = deliveries.into_iter().map(|p| (http_result(&p, status), p)).collect();
        self.report(node, results).await;
    }

    pub(crate) async fn report(&self, node: &Node, all: Vec<(DeliveryOutcome, LeasedDelivery)>) {
        let (reply, mut answer) = oneshot::channel();
        let report = self.delivery_report(node, &all);
        node.write(vec![Command::ReportDeliveries(ReportDeliveries { report, reply })]).await;
        answer.try_recv().unwrap().unwrap();
    }

    /// Returns the report of these attempts.
    pub(crate) fn delivery_report(
        &self,
        node: &Node,
        all: &[(DeliveryOutcome, LeasedDelivery)],
    ) -> DeliveryReport {
        let attempted = |(outcome, p): &(DeliveryOutcome, LeasedDelivery)| AttemptResult {
            lease: p.lease.clone(),
            account: p.event.account,
            primary: p.primary,
            at: node.cx.db.now(),
            took: Duration::from_millis(7),
            outcome: outcome.clone(),
        };
        let attempts = all.iter().map(attempted).collect();
        DeliveryReport { endpoint: self.id, attempts }
    }

    /// Returns the endpoint's present state.
    pub(crate) async fn endpoint(&self, node: &Node) -> WebhookEndpoint {
        endpoints::by_number(&node.cx, self.id).await.unwrap()
    }

    /// Returns the operator as actor for the endpoint's account.
    pub(crate) async fn owner(&self, node: &Node) -> Actor {
        Actor::operator(self.endpoint(node).await.account)
    }
}

/// Returns the result of an attempt with this HTTP status, with medium jitter.
pub(crate) fn http_result(delivery: &LeasedDelivery, status: u16) -> DeliveryOutcome {
    let (body, retry_after) = (String::new(), None);
    let response = WebhookResponse::Http { status, body, retry_after };
    deliveries::evaluate_response(attempt(delivery.lease.tries), response, 0.5)
}

/// Returns an attempt at an endpoint that only fails.
pub(crate) const fn attempt(tries: u16) -> DeliveryAttemptInfo {
    DeliveryAttemptInfo { tries, age: Duration::ZERO, endpoint_works: false }
}

pub(crate) fn secret() -> WebhookSecret {
    WebhookSecret::from_random(&[5; SECRET_BYTES])
}

pub(crate) fn new_endpoint(caller: &Caller, url: &str) -> NewEndpoint {
    let (mode, kinds) = (caller.mode, EventKinds::ALL);
    NewEndpoint { mode, url: url.to_owned(), kinds, listening_until: None }
}

/// Returns a URL that no endpoint of the account has.
async fn fresh_url(node: &Node, caller: &Caller) -> String {
    let there = endpoints::list(&node.cx, caller.account).await.unwrap().len();
    format!("https://example.com/hook/{there}")
}

/// Registers an endpoint for all event kinds.
pub(crate) async fn endpoint(node: &Node, caller: &Caller) -> EndpointId {
    let new = new_endpoint(caller, &fresh_url(node, caller).await);
    endpoints::add(&node.cx, &Actor::operator(caller.account), new, secret()).await.unwrap().id
}

/// Registers an endpoint for one event kind.
pub(crate) async fn endpoint_for_kind(
    node: &Node,
    caller: &Caller,
    mode: Mode,
    kind: EventKind,
) -> EndpointId {
    let kinds = [kind].into_iter().collect();
    let new = NewEndpoint { mode, kinds, ..new_endpoint(caller, &fresh_url(node, caller).await) };
    endpoints::add(&node.cx, &Actor::operator(caller.account), new, secret()).await.unwrap().id
}

/// Sends a message that is delivered at once. The carrier's local queue is open.
pub(crate) async fn send_delivered(node: &Node, caller: &Caller) -> MessageId {
    let id = node.send(caller, text("Hello")).await;
    let held = node.arrived().pop().unwrap();
    let name = id.to_string();
    node.settle(vec![outcome(&held, accepted(&name))]).await;
    node.commit_receipts(vec![delivered(&name)]).await;
    id
}

pub(crate) fn events(deliveries: &[LeasedDelivery]) -> Vec<EventId> {
    deliveries.iter().map(|p| p.event.id).collect()
}

/// Returns the number of pending deliveries of an endpoint.
pub(crate) async fn waiting(node: &Node, id: EndpointId) -> i64 {
    let account = endpoints::by_number(&node.cx, id).await.unwrap().account;
    endpoints::waiting(&node.cx, account, id).await.unwrap()
}

/// Counts the rows of a table without the store.
pub(crate) async fn rows(db: &TestDb, table: &str) -> i64 {
    let counted = db.query_raw(&format!("SELECT CAST(count(*) AS text) FROM {table}")).await;
    counted[0][0].parse().unwrap()
}
