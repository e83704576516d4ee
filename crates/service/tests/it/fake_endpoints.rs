//! The webhook endpoints of the model: one for each account, which answers at random and records
//! the events that it accepted.

use crate::endpoint_worker::{BROKEN, EndpointWorker, OK, endpoint, http_result, waiting};
use crate::node::Node;
use fastrand::Rng;
use heliograph_domain::event::EventContent;
use heliograph_domain::id::{EndpointId, EventId, MessageId};
use heliograph_service::kernel::caller::Caller;
use heliograph_service::kernel::commands::claim_deliveries::{ClaimDeliveries, LeasedDelivery};
use heliograph_service::kernel::commands::command::Command;
use heliograph_service::kernel::commands::report_deliveries::{DeliveryOutcome, ReportDeliveries};
use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use tokio::sync::oneshot;

/// The maximum number of consecutive failures, so that no event is given up.
const MAX_FAILURES: u16 = 4;

pub(crate) struct FakeEndpoints {
    rng: Rng,
    all: Vec<EndpointId>,
    /// The accepted events by message.
    pub(crate) accepted: HashMap<MessageId, HashSet<EventId>>,
}

/// One node's endpoint worker and the deliveries that it holds.
pub(crate) struct WorkerState {
    worker: EndpointWorker,
    held: Vec<LeasedDelivery>,
}

impl FakeEndpoints {
    pub(crate) async fn new(node: &Node, callers: &[Arc<Caller>], seed: u64) -> Self {
        let mut all = Vec::new();
        for caller in callers {
            all.push(endpoint(node, caller).await);
        }
        Self { rng: Rng::with_seed(seed ^ 0x55), all, accepted: HashMap::new() }
    }

    /// Starts a worker for each endpoint on a new node.
    pub(crate) fn workers(&self, node: &Node) -> Vec<WorkerState> {
        let state = |id: &EndpointId| {
            let worker = EndpointWorker::idle(node, *id);
            worker.queue.set_available(true);
            WorkerState { worker, held: Vec::new() }
        };
        self.all.iter().map(state).collect()
    }

    /// Returns the commands of a node's workers: their reports and claims.
    pub(crate) fn batch(&mut self, node: &Node, workers: &mut [WorkerState], good: bool) -> Round {
        let mut round = Round::default();
        for (i, state) in workers.iter_mut().enumerate() {
            state.held.extend(state.worker.arrived());
            let mut reported = Vec::new();
            for delivery in std::mem::take(&mut state.held) {
                match self.attempt_result(&delivery, good) {
                    Some(result) => reported.push((result, delivery)),
                    None => state.held.push(delivery),
                }
            }
            if !reported.is_empty() {
                let report = state.worker.delivery_report(node, &reported);
                round.commands.push(Command::ReportDeliveries(ReportDeliveries {
                    report,
                    reply: oneshot::channel().0,
                }));
            }
            if let Some(room) = state.worker.queue.reserve_up_to(self.rng.usize(1..9)) {
                let (reply, found) = oneshot::channel();
                let (endpoint, urgent) = (state.worker.id, false);
                round.commands.push(Command::ClaimDeliveries(ClaimDeliveries {
                    endpoint,
                    urgent,
                    room,
                    reply,
                }));
                round.claimed.push((i, found));
            }
        }
        self.rng.shuffle(&mut round.commands);
        round
    }

    /// Returns the result of an attempt; `None` while the endpoint has not answered yet.
    fn attempt_result(&mut self, delivery: &LeasedDelivery, good: bool) -> Option<DeliveryOutcome> {
        let roll = self.rng.u8(..100);
        match roll {
            _ if good => {}
            0..20 => return None,
            20..30 => return Some(DeliveryOutcome::NotAttempted),
            30..50 if delivery.lease.tries < MAX_FAILURES => {
                return Some(http_result(delivery, BROKEN));
            }
            _ => {}
        }
        self.accept(delivery);
        Some(http_result(delivery, OK))
    }

    fn accept(&mut self, delivery: &LeasedDelivery) {
        let EventContent::Message(content) = &delivery.event.content else {
            panic!("{delivery:?}")
        };
        self.accepted.entry(content.message.id).or_default().insert(delivery.event.id);
    }

    /// Crashes a node: half of the deliveries that it held were accepted but not reported.
    pub(crate) fn crash(&mut self, workers: Vec<WorkerState>) {
        for state in workers {
            let arrived = state.worker.arrived();
            for delivery in state.held.into_iter().chain(arrived) {
                if self.rng.bool() {
                    self.accept(&delivery);
                }
            }
        }
    }

    /// Returns the number of pending deliveries.
    pub(crate) async fn waiting(&self, node: &Node) -> i64 {
        let mut sum = 0;
        for id in &self.all {
            sum += waiting(node, *id).await;
        }
        sum
    }
}

type ClaimReply = oneshot::Receiver<heliograph_store::StoreResult<Vec<LeasedDelivery>>>;

/// The commands of a node's workers in one round, and the replies that they wait for.
#[derive(Default)]
pub(crate) struct Round {
    pub(crate) commands: Vec<Command>,
    claimed: Vec<(usize, ClaimReply)>,
}

impl Round {
    /// Takes the replies after the commands were written.
    pub(crate) fn take_replies(self, workers: &mut [WorkerState]) {
        for (i, mut found) in self.claimed {
            workers[i].held.extend(found.try_recv().unwrap().unwrap());
        }
    }
}
