//! The carrier of a test: it accepts queued messages, and reports deliveries and replies.

use crate::support::TestApi;
use heliograph_domain::id::CarrierId;
use heliograph_domain::inbound::IncomingSms;
use heliograph_domain::phone::Recipient;
use heliograph_domain::receipt::{Receipt, ReceiptOutcome};
use heliograph_domain::submission::SubmitOutcome;
use heliograph_service::kernel::commands::claim::ClaimMessages;
use heliograph_service::kernel::commands::command::Command;
use heliograph_service::kernel::commands::progress::{InboundUpdate, Progress, RecordProgress};
use heliograph_service::messaging::dispatch::evaluate_outcomes;
use heliograph_service::operations::nodes;
use heliograph_testing::CARRIER;
use std::sync::Arc;
use tokio::sync::{Semaphore, oneshot};

pub(crate) struct FakeCarrier<'a> {
    api: &'a TestApi,
    id: CarrierId,
}

impl<'a> FakeCarrier<'a> {
    pub(crate) async fn new(api: &'a TestApi) -> Self {
        let (ids, _) = nodes::carrier_ids(&api.context.db, &[CARRIER.to_owned()]).await.unwrap();
        Self { api, id: ids[0] }
    }

    /// Accepts all queued messages, which have one part each. The carrier's id of a message is its
    /// reference.
    pub(crate) async fn accept_all(&self) {
        let room = Arc::new(Semaphore::new(8)).try_acquire_many_owned(8).unwrap();
        let (reply, answer) = oneshot::channel();
        let claim = ClaimMessages { carrier: self.id, room, reply };
        self.api.writer.writer.try_send(Command::ClaimMessages(claim)).unwrap();
        let claimed = answer.await.unwrap().unwrap();
        assert!(!claimed.is_empty());
        let settlements = claimed.iter().map(|item| {
            let smsc_id = item.leased.message.reference.clone().unwrap();
            evaluate_outcomes(&item.leased, vec![(1, SubmitOutcome::Accepted { smsc_id })])
        });
        self.record(Progress { settlements: settlements.collect(), ..Progress::default() }).await;
    }

    /// Sends a delivery receipt.
    pub(crate) async fn report(
        &self,
        smsc_id: &str,
        recipient: Recipient,
        outcome: ReceiptOutcome,
    ) {
        let receipt =
            Receipt { smsc_id: smsc_id.to_owned(), recipient, destination: None, outcome };
        let receipts = vec![(self.id, receipt)];
        self.record(Progress { receipts, ..Progress::default() }).await;
    }

    /// Delivers a message from a person.
    pub(crate) async fn deliver(&self, from: &str, to: &str, text: &str) {
        let (from, to, text) = (from.to_owned(), to.to_owned(), text.to_owned());
        let incoming = IncomingSms { from, to, text, concat: None, label: None };
        let inbound = vec![InboundUpdate::Incoming(self.id, incoming)];
        self.record(Progress { inbound, ..Progress::default() }).await;
    }

    async fn record(&self, progress: Progress) {
        let (reply, answer) = oneshot::channel();
        let record = RecordProgress { progress, reply };
        self.api.writer.writer.try_send(Command::RecordProgress(record)).unwrap();
        answer.await.unwrap().unwrap();
    }
}
