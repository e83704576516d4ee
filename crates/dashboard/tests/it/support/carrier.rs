//! The carrier: takes messages from the queue, and reports their outcomes and inbound messages.

use crate::support::client::Client;
use crate::support::site::Site;
use heliograph_domain::account::Mode;
use heliograph_domain::id::CarrierId;
use heliograph_domain::inbound::IncomingSms;
use heliograph_domain::receipt::{Receipt, ReceiptOutcome};
use heliograph_domain::submission::SubmitOutcome;
use heliograph_service::kernel::commands::claim::{ClaimMessages, DispatchItem};
use heliograph_service::kernel::commands::command::Command;
use heliograph_service::kernel::commands::progress::{InboundUpdate, Progress, RecordProgress};
use heliograph_service::messaging::dispatch::{DispatchQueue, evaluate_outcomes};
use heliograph_service::messaging::inbound;
use heliograph_service::operations::nodes;
use heliograph_testing::CARRIER;
use tokio::sync::oneshot;

impl Site {
    /// Submits the queued messages of a mode, each of one part, with this outcome.
    pub(crate) async fn submit(&self, mode: Mode, outcome: &SubmitOutcome) -> Vec<DispatchItem> {
        let items = self.lease(mode).await;
        let settle = |i: &DispatchItem| evaluate_outcomes(&i.leased, vec![(1, outcome.clone())]);
        let settlements = items.iter().map(settle).collect();
        self.record(Progress { settlements, ..Progress::default() }).await;
        items
    }

    /// Submits the queued message of a mode, and delivers it.
    pub(crate) async fn deliver(&self, mode: Mode) {
        let smsc_id = "4711".to_owned();
        let outcome = SubmitOutcome::Accepted { smsc_id: smsc_id.clone() };
        let recipient = self.submit(mode, &outcome).await[0].leased.message.recipient;
        let receipt =
            Receipt { smsc_id, recipient, destination: None, outcome: ReceiptOutcome::Delivered };
        let receipts = vec![(self.carrier(mode).await, receipt)];
        self.record(Progress { receipts, ..Progress::default() }).await;
    }

    /// Receives a test message from a handset, in reply to a message of the client's account.
    pub(crate) async fn receive(&self, client: &Client<'_>, from: &str, to: &str, text: &str) {
        let account = client.user().await.details.session.account;
        let label = Some(inbound::label(account, Mode::Test));
        let [from, to, text] = [from, to, text].map(str::to_owned);
        let sms = IncomingSms { from, to, text, concat: None, label };
        let inbound = vec![InboundUpdate::Incoming(self.carrier(Mode::Test).await, sms)];
        self.record(Progress { inbound, ..Progress::default() }).await;
    }

    async fn carrier(&self, mode: Mode) -> CarrierId {
        let names = [CARRIER.to_owned()];
        let (carriers, simulated) = nodes::carrier_ids(&self.cx().db, &names).await.unwrap();
        if mode == Mode::Test { simulated } else { carriers[0] }
    }

    /// Takes all messages of a mode from the queue.
    pub(crate) async fn lease(&self, mode: Mode) -> Vec<DispatchItem> {
        let (carrier, room) = (self.carrier(mode).await, DispatchQueue::new(8).0);
        let room = room.reserve_up_to(8).unwrap();
        let (reply, leased) = oneshot::channel();
        let claim = Command::ClaimMessages(ClaimMessages { carrier, room, reply });
        self.app.writer.try_send(claim).unwrap();
        leased.await.unwrap().unwrap()
    }

    async fn record(&self, progress: Progress) {
        let (reply, recorded) = oneshot::channel();
        let command = Command::RecordProgress(RecordProgress { progress, reply });
        self.app.writer.try_send(command).unwrap();
        recorded.await.unwrap().unwrap();
    }
}
