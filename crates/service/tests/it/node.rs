//! A node without network: the service, the writer, and one carrier's local queue. The test is its
//! dispatcher.

use futures_util::future::join_all;
use heliograph_domain::account::{Mode, Scopes};
use heliograph_domain::fields::{CreditNote, Validity};
use heliograph_domain::id::{AccountId, CarrierId, MessageId};
use heliograph_domain::message::{MessageState, MessageStatus};
use heliograph_domain::money::Amount;
use heliograph_domain::phone::Recipient;
use heliograph_domain::receipt::{Receipt, ReceiptOutcome};
use heliograph_domain::submission::SubmitOutcome;
use heliograph_service::group_commit::batch::WriterDeps;
use heliograph_service::group_commit::run;
use heliograph_service::identity::accounts;
use heliograph_service::identity::api_keys::{self, KeySpec, Keyring};
use heliograph_service::kernel::audit::Actor;
use heliograph_service::kernel::caller::Caller;
use heliograph_service::kernel::commands::claim::{ClaimMessages, DispatchItem};
use heliograph_service::kernel::commands::command::Command;
use heliograph_service::kernel::commands::progress::{Progress, RecordProgress, Settlement};
use heliograph_service::kernel::context::Context;
use heliograph_service::kernel::error::{Error, Result};
use heliograph_service::kernel::idempotency::RequestKey;
use heliograph_service::kernel::writer::{self, Writer};
use heliograph_service::messaging::dispatch::{DispatchQueue, DispatchQueues, evaluate_outcomes};
use heliograph_service::messaging::messages::{self, SendRequest, SendResult};
use heliograph_service::operations::check;
use heliograph_service::operations::nodes;
use heliograph_service::webhooks::events::DeliveryQueues;
use heliograph_store::Db;
use heliograph_testing::{CARRIER, PART_PRICE, TestDb};
use std::cell::RefCell;
use std::sync::Arc;
use tokio::sync::{mpsc, oneshot};

pub(crate) const ANN: Recipient = Recipient(447_700_900_123);
/// The price of a part.
pub(crate) const PRICE: i64 = PART_PRICE.0;

pub(crate) struct Node {
    pub(crate) cx: Context,
    pub(crate) carrier: CarrierId,
    pub(crate) dispatch_queues: DispatchQueues,
    pub(crate) dispatch_queue: Arc<DispatchQueue>,
    pub(crate) delivery_queues: DeliveryQueues,
    arrivals: RefCell<mpsc::Receiver<Vec<DispatchItem>>>,
}

impl Node {
    /// Starts the first node of a test, with a local queue of 32 messages.
    pub(crate) async fn start(db: &TestDb) -> Self {
        Self::with(db, db.db.clone(), 1, 32).await
    }

    /// Starts a node with this identity and capacity of its local queue, on its own or a shared connections.
    pub(crate) async fn with(db: &TestDb, own: Db, identity: u128, capacity: usize) -> Self {
        let cx = heliograph_testing::node_context(db, own, identity).await;
        let carriers = nodes::carrier_ids(&cx.db, &[CARRIER.to_owned()]).await.unwrap().0;
        let carrier = carriers[0];
        let dispatch_queues = DispatchQueues::default();
        let (dispatch_queue, arrivals) = DispatchQueue::new(capacity);
        dispatch_queues.insert(carrier, dispatch_queue.clone());
        let delivery_queues = DeliveryQueues::default();
        Self {
            cx,
            carrier,
            dispatch_queues,
            dispatch_queue,
            delivery_queues,
            arrivals: RefCell::new(arrivals),
        }
    }

    /// Opens the local queue of a bound carrier without older messages.
    pub(crate) async fn open_queue(&self) {
        self.dispatch_queue.set_available(true);
        assert_eq!(self.claim().await.len(), 0);
    }

    /// Runs the writer during `work`. Commands sent before the first wait form one batch.
    pub(crate) async fn writing<T>(&self, work: impl AsyncFnOnce(Writer) -> T) -> T {
        let (writer, inbox) = writer::channel();
        let deps = WriterDeps {
            context: self.cx.clone(),
            dispatch_queues: self.dispatch_queues.clone(),
            delivery_queues: self.delivery_queues.clone(),
        };
        let run = run::run(deps, inbox);
        tokio::join!(Box::pin(work(writer)), Box::pin(run)).0
    }

    /// Writes commands as one batch.
    pub(crate) async fn write(&self, batch: Vec<Command>) {
        self.writing(async |writer: Writer| {
            for command in batch {
                writer.try_send(command).unwrap();
            }
        })
        .await;
    }

    /// Sends messages in one batch.
    pub(crate) async fn send_all(
        &self,
        caller: &Caller,
        all: Vec<(SendRequest, Option<RequestKey>)>,
    ) -> Vec<Result<SendResult>> {
        self.writing(async |writer: Writer| {
            let send = |(send, key)| messages::send(&self.cx, &writer, caller, send, key);
            join_all(all.into_iter().map(send)).await
        })
        .await
    }

    /// Sends one message, which must be accepted.
    pub(crate) async fn send(&self, caller: &Caller, send: SendRequest) -> MessageId {
        let sent = self.send_all(caller, vec![(send, None)]).await.pop().unwrap();
        sent.unwrap().message.id
    }

    /// Claims as many messages as there is room for.
    pub(crate) async fn claim(&self) -> Vec<DispatchItem> {
        let Some(room) = self.dispatch_queue.reserve_up_to(usize::MAX) else { return Vec::new() };
        let (reply, mut answer) = oneshot::channel();
        self.write(vec![Command::ClaimMessages(ClaimMessages {
            carrier: self.carrier,
            room,
            reply,
        })])
        .await;
        answer.try_recv().unwrap().unwrap()
    }

    /// Returns the messages that were handed over since the last call.
    pub(crate) fn arrived(&self) -> Vec<DispatchItem> {
        let mut arrivals = self.arrivals.borrow_mut();
        std::iter::from_fn(|| arrivals.try_recv().ok()).flatten().collect()
    }

    /// Commits outcomes of messages in one batch.
    pub(crate) async fn settle(&self, settlements: Vec<Settlement>) {
        self.commit_progress(Progress { settlements, ..Progress::default() }).await;
    }

    /// Commits receipts in one batch.
    pub(crate) async fn commit_receipts(&self, receipts: Vec<Receipt>) {
        let receipts = receipts.into_iter().map(|r| (self.carrier, r)).collect();
        self.commit_progress(Progress { receipts, ..Progress::default() }).await;
    }

    /// Commits progress, which must succeed.
    pub(crate) async fn commit_progress(&self, progress: Progress) {
        let (reply, mut answer) = oneshot::channel();
        self.write(vec![Command::RecordProgress(RecordProgress { progress, reply })]).await;
        answer.try_recv().unwrap().unwrap();
    }

    pub(crate) async fn state(&self, caller: &Caller, id: MessageId) -> MessageState {
        messages::get(&self.cx, caller, id).await.unwrap().1
    }

    pub(crate) async fn status(&self, caller: &Caller, id: MessageId) -> MessageStatus {
        self.state(caller, id).await.status
    }

    /// Returns the balance of an account: (available, reserved).
    pub(crate) async fn balance(&self, caller: &Caller) -> (i64, i64) {
        let all = accounts::list(&self.cx).await.unwrap();
        let found = all.into_iter().find(|a| a.id == caller.account).unwrap();
        (found.available.0, found.reserved.0)
    }

    pub(crate) async fn check(&self) {
        assert_eq!(check::violations(&self.cx).await.unwrap(), [""; 0]);
    }

    /// Creates an account with this balance and an API key.
    pub(crate) async fn account(&self, email: &str, amount: i64) -> Arc<Caller> {
        let made = accounts::create(&self.cx, email, "EUR", false).await.unwrap().unwrap();
        if amount > 0 {
            accounts::credit(
                &self.cx,
                &Actor::operator(made),
                Amount(amount),
                &CreditNote::default(),
            )
            .await
            .unwrap();
        }
        self.key(made, Mode::Live).await
    }

    /// Creates another API key for an account.
    pub(crate) async fn key(&self, account: AccountId, mode: Mode) -> Arc<Caller> {
        let (name, _) = self.cx.next_id();
        let mut random = [0; 64];
        random[..16].copy_from_slice(name.as_bytes());
        random.iter_mut().for_each(|b| *b %= 248);
        let by = Actor::operator(account);
        let name = "key".parse().unwrap();
        let spec = KeySpec { mode, scopes: Scopes::ALL, name: &name };
        let (_, key) = api_keys::create(&self.cx, &by, spec, &random).await.unwrap();
        Keyring::default().authenticate(&self.cx, key.reveal()).await.unwrap()
    }
}

/// Returns a message to Ann.
pub(crate) fn text(text: &str) -> SendRequest {
    SendRequest {
        originator: "Shop".parse().unwrap(),
        recipient: ANN,
        text: text.parse().unwrap(),
        reference: None,
        validity: Validity::DEFAULT,
        max_parts: None,
        block_optout: true,
    }
}

/// Returns a message to Ann with `n` parts.
pub(crate) fn parts(n: usize) -> SendRequest {
    text(&"x".repeat(if n == 1 { 5 } else { n * 153 }))
}

pub(crate) fn idempotency_key(key: &str, fingerprint: u8) -> Option<RequestKey> {
    Some(RequestKey { key: key.parse().unwrap(), fingerprint: [fingerprint; 32] })
}

pub(crate) fn accepted(smsc_id: &str) -> SubmitOutcome {
    SubmitOutcome::Accepted { smsc_id: smsc_id.to_owned() }
}

/// Returns the settlement of a message of one part with this outcome.
pub(crate) fn outcome(handed: &DispatchItem, outcome: SubmitOutcome) -> Settlement {
    evaluate_outcomes(&handed.leased, vec![(1, outcome)])
}

pub(crate) fn receipt(smsc_id: &str, outcome: &ReceiptOutcome) -> Receipt {
    Receipt {
        smsc_id: smsc_id.to_owned(),
        recipient: ANN,
        destination: None,
        outcome: outcome.clone(),
    }
}

pub(crate) fn delivered(smsc_id: &str) -> Receipt {
    receipt(smsc_id, &ReceiptOutcome::Delivered)
}

/// Returns true when the result is the expected overload error.
pub(crate) fn is_overloaded<T: std::fmt::Debug>(done: &Result<T>) -> bool {
    matches!(done, Err(Error::Overloaded(_)))
}
