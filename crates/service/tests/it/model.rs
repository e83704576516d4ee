//! A randomized model of an installation: accounts that send, nodes that crash, and a carrier.

use crate::fake_carrier::{FakeCarrier, FaultRates};
use crate::fake_endpoints::{FakeEndpoints, Round, WorkerState};
use crate::node::{ANN, Node, PRICE, parts};
use fastrand::Rng;
use futures_util::future::join_all;
use heliograph_domain::account::Mode;
use heliograph_domain::id::{AccountId, Ids, MessageId};
use heliograph_domain::lease::LEASE;
use heliograph_domain::message::Message;
use heliograph_domain::money::Amount;
use heliograph_domain::text::{self, Encoding};
use heliograph_domain::time::Timestamp;
use heliograph_service::kernel::caller::Caller;
use heliograph_service::kernel::commands::accept::{Accept, AcceptOutcome};
use heliograph_service::kernel::commands::claim::{ClaimMessages, DispatchItem};
use heliograph_service::kernel::commands::command::Command;
use heliograph_service::kernel::commands::progress::{KeywordReply, Progress, RecordProgress};
use heliograph_service::messaging::dispatch::evaluate_outcomes;
use heliograph_store::idempotency::{SEND_SMS, ScopedKey};
use heliograph_store::{StoreError, StoreResult};
use heliograph_testing::TestDb;
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::oneshot;

/// The accounts and their credit. The last one soon has nothing left.
pub(crate) const CREDITS: [(&str, i64); 3] =
    [("ann@x.org", 60_000), ("bob@x.org", 25_000), ("zoe@x.org", 900)];

pub(crate) struct Model<'a> {
    db: &'a TestDb,
    pub(crate) rng: Rng,
    pub(crate) carrier: FakeCarrier,
    pub(crate) nodes: Vec<ModelNode>,
    pub(crate) callers: Vec<Arc<Caller>>,
    /// The accepted messages: the index of the caller, and the message id.
    pub(crate) made: Vec<(usize, MessageId)>,
    pub(crate) outcomes: HashMap<&'static str, usize>,
    pub(crate) endpoints: FakeEndpoints,
    keys: Vec<ScopedKey>,
}

/// A node and the messages that it holds.
pub(crate) struct ModelNode {
    pub(crate) node: Node,
    identity: u128,
    /// The leased messages, each with the end of its lease.
    held: Vec<(DispatchItem, Timestamp)>,
    /// The progress that the writer could not commit.
    uncommitted: Progress,
    workers: Vec<WorkerState>,
}

/// The replies that a node waits for in a round.
struct PendingReplies {
    accepts: Vec<(usize, MessageId, oneshot::Receiver<StoreResult<AcceptOutcome>>)>,
    committed: oneshot::Receiver<std::result::Result<Vec<KeywordReply>, (StoreError, Progress)>>,
    _slots: Vec<DispatchItem>,
    claimed: Option<oneshot::Receiver<StoreResult<Vec<DispatchItem>>>>,
}

impl<'a> Model<'a> {
    pub(crate) async fn new(db: &'a TestDb, seed: u64, fault_rates: FaultRates) -> Self {
        let mut nodes = Vec::new();
        for identity in 1..=if db.db.is_shared() { 2 } else { 1 } {
            nodes.push(ModelNode::start(db, db.reopen().await, identity).await);
        }
        let mut callers = Vec::new();
        for (email, amount) in CREDITS {
            callers.push(nodes[0].node.account(email, amount).await);
        }
        let endpoints = FakeEndpoints::new(&nodes[0].node, &callers, seed).await;
        for model_node in &mut nodes {
            model_node.workers = endpoints.workers(&model_node.node);
        }
        Self {
            db,
            rng: Rng::with_seed(seed),
            carrier: FakeCarrier::new(seed, fault_rates),
            nodes,
            callers,
            made: Vec::new(),
            outcomes: HashMap::new(),
            endpoints,
            keys: Vec::new(),
        }
    }

    fn chance(&mut self, percent: u8) -> bool {
        self.rng.u8(..100) < percent
    }

    /// Runs one round: every node writes one batch with everything that happened to it.
    pub(crate) async fn round(&mut self, sending: bool) {
        let pause = if self.chance(self.carrier.fault_rates.pauses) { 61 } else { 0 };
        self.db.clock.advance(Duration::from_secs(self.rng.u64(0..5) + pause));
        for i in 0..self.nodes.len() {
            if self.chance(self.carrier.fault_rates.crashes) {
                self.crash(i).await;
            }
        }
        let mut batches = Vec::new();
        let (mut waiting, mut rounds) = (Vec::new(), Vec::new());
        for i in 0..self.nodes.len() {
            let (mut batch, answers) = self.batch(i, sending);
            let mut round = self.endpoint_round(i, !sending);
            batch.append(&mut round.commands);
            batches.push(batch);
            waiting.push(answers);
            rounds.push(round);
        }
        let writes = self.nodes.iter().zip(batches);
        join_all(writes.map(|(model_node, batch)| model_node.node.write(batch))).await;
        for (model_node, round) in self.nodes.iter_mut().zip(rounds) {
            round.take_replies(&mut model_node.workers);
        }
        let mut replayed = Vec::new();
        for (i, answers) in waiting.into_iter().enumerate() {
            self.take_replies(i, answers, &mut replayed);
        }
        for (caller, id) in replayed {
            assert!(self.made.contains(&(caller, id)), "{id} was replayed but never accepted");
        }
    }

    fn endpoint_round(&mut self, i: usize, good: bool) -> Round {
        let model_node = &mut self.nodes[i];
        self.endpoints.batch(&model_node.node, &mut model_node.workers, good)
    }

    fn batch(&mut self, i: usize, sending: bool) -> (Vec<Command>, PendingReplies) {
        let mut commands = Vec::new();
        let mut accepts = Vec::new();
        for _ in 0..if sending { self.rng.u8(..6) } else { 0 } {
            let (caller, message) = self.compose();
            let (reply, answer) = oneshot::channel();
            accepts.push((caller, message.id, answer));
            let idempotency = self.idempotency(message.account);
            commands.push(Command::Accept(Accept { message, idempotency, reply }));
        }
        let mut progress = std::mem::take(&mut self.nodes[i].uncommitted);
        let mut slots = Vec::new();
        for (handed, until) in std::mem::take(&mut self.nodes[i].held) {
            if self.chance(70) {
                progress
                    .settlements
                    .push(evaluate_outcomes(&handed.leased, self.carrier.submit(&handed.leased)));
                slots.push(handed);
            } else {
                self.nodes[i].held.push((handed, until));
            }
        }
        let receipts =
            self.carrier.some_receipts().into_iter().map(|r| (self.nodes[i].node.carrier, r));
        progress.receipts.extend(receipts);
        let (reply, committed) = oneshot::channel();
        commands.push(Command::RecordProgress(RecordProgress { progress, reply }));
        let most = self.rng.usize(1..9);
        let node = &self.nodes[i].node;
        let claimed = node.dispatch_queue.reserve_up_to(most).map(|room| {
            let (reply, claimed) = oneshot::channel();
            commands.push(Command::ClaimMessages(ClaimMessages {
                carrier: node.carrier,
                room,
                reply,
            }));
            claimed
        });
        self.rng.shuffle(&mut commands);
        (commands, PendingReplies { accepts, committed, _slots: slots, claimed })
    }

    fn compose(&mut self) -> (usize, Arc<Message>) {
        let caller = self.rng.usize(..self.callers.len());
        let send = parts(self.rng.usize(1..4));
        let now = self.nodes[0].node.cx.db.now();
        let message = Message {
            id: MessageId(self.db.ids.next(now)),
            account: self.callers[caller].account,
            mode: Mode::Live,
            api_key: self.callers[caller].key,
            sent_by: None,
            campaign: None,
            recipient: ANN,
            originator: send.originator,
            parts: text::measure(send.text.as_str()).parts,
            text: send.text.into_string(),
            reference: None,
            encoding: Encoding::Gsm7,
            part_price: Amount(PRICE),
            carrier: self.nodes[0].node.carrier,
            optout_list: None,
            accepted_at: now,
            scheduled_for: None,
            expires_at: now.after(Duration::from_secs(86_400)),
        };
        (caller, Arc::new(message))
    }

    /// Repeats some requests, and reuses some idempotency keys for other requests.
    fn idempotency(&mut self, account: AccountId) -> Option<(ScopedKey, [u8; 32])> {
        let fingerprint = if self.chance(80) { 1 } else { 2 };
        let used: Vec<_> = self.keys.iter().filter(|k| k.account == account).cloned().collect();
        if self.chance(25) && !used.is_empty() {
            return Some((used[self.rng.usize(..used.len())].clone(), [fingerprint; 32]));
        }
        let key = format!("key {}", self.keys.len());
        let key = ScopedKey { account, mode: Mode::Live, route: SEND_SMS, key };
        self.keys.push(key.clone());
        self.rng.bool().then_some((key, [fingerprint; 32]))
    }

    fn take_replies(
        &mut self,
        i: usize,
        answers: PendingReplies,
        replayed: &mut Vec<(usize, MessageId)>,
    ) {
        for (caller, id, mut answer) in answers.accepts {
            let outcome = match answer.try_recv().unwrap() {
                Ok(AcceptOutcome::Done) => {
                    self.made.push((caller, id));
                    "done"
                }
                Ok(AcceptOutcome::Replayed(id)) => {
                    replayed.push((caller, id));
                    "replayed"
                }
                Ok(AcceptOutcome::KeyReused) => "key reused",
                Ok(AcceptOutcome::InsufficientBalance) => "no money",
                other => panic!("unexpected: {other:?}"),
            };
            *self.outcomes.entry(outcome).or_default() += 1;
        }
        let mut committed = answers.committed;
        if let Err((error, progress)) = committed.try_recv().unwrap() {
            assert!(matches!(error, StoreError::Conflict(_)), "{error}");
            self.nodes[i].uncommitted = progress;
        }
        let claimed = answers.claimed.map(|mut c| c.try_recv().unwrap().unwrap());
        let arrived = self.nodes[i].node.arrived();
        for handed in claimed.into_iter().flatten().chain(arrived) {
            self.add_leased(i, handed);
        }
    }

    /// Adds a leased message to a node and asserts that no other node holds it.
    fn add_leased(&mut self, i: usize, handed: DispatchItem) {
        let id = handed.leased.message.id;
        let now = self.nodes[i].node.cx.db.now();
        let all = self.nodes.iter().flat_map(|m| &m.held);
        for (_, until) in all.filter(|(h, _)| h.leased.message.id == id) {
            assert!(*until < now, "{id} has two holders");
        }
        if handed.leased.in_doubt {
            self.carrier.doubt(id);
        }
        self.nodes[i].held.push((handed, now.after(LEASE)));
    }

    /// Crashes and restarts a node. Half of the messages that it held were submitted before.
    async fn crash(&mut self, i: usize) {
        for (handed, _) in std::mem::take(&mut self.nodes[i].held) {
            if self.rng.bool() {
                self.carrier.submit(&handed.leased);
            }
        }
        self.endpoints.crash(std::mem::take(&mut self.nodes[i].workers));
        let ModelNode { node, identity, .. } = &self.nodes[i];
        let (own, identity) = (node.cx.db.clone(), *identity);
        self.nodes[i] = ModelNode::start(self.db, own, identity).await;
        self.nodes[i].workers = self.endpoints.workers(&self.nodes[i].node);
    }

    /// Delivers the remaining receipts.
    pub(crate) async fn commit_remaining_receipts(&mut self) {
        self.nodes[0].node.commit_receipts(self.carrier.remaining_receipts()).await;
    }
}

impl ModelNode {
    async fn start(db: &TestDb, own: heliograph_store::Db, identity: u128) -> Self {
        let node = Node::with(db, own, identity, 16).await;
        node.dispatch_queue.set_available(true);
        Self {
            node,
            identity,
            held: Vec::new(),
            uncommitted: Progress::default(),
            workers: Vec::new(),
        }
    }
}
