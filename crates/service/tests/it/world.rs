//! A small world at random: accounts that send, nodes that die, and a carrier in between.

use crate::carrier::{Carrier, Moods};
use crate::listeners::{Listeners, Round, Walk};
use crate::node::{ANN, Node, PRICE, parts};
use crate::support::TestDb;
use fastrand::Rng;
use futures_util::future::join_all;
use heliograph_domain::account::Mode;
use heliograph_domain::id::{AccountId, Ids, MessageId};
use heliograph_domain::lease::LEASE;
use heliograph_domain::message::Message;
use heliograph_domain::money::Amount;
use heliograph_domain::text::{self, Encoding};
use heliograph_domain::time::Timestamp;
use heliograph_service::caller::Caller;
use heliograph_service::dispatch::judge;
use heliograph_service::replies::Confirmation;
use heliograph_service::writer::{Accept, Accepted, Claim, Command, Handed, Progress};
use heliograph_store::idempotency::{Key, SEND_SMS};
use heliograph_store::{Error, Result};
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::oneshot;

/// Who has how much; the last one soon has nothing left.
pub(crate) const CREDITS: [(&str, i64); 3] =
    [("ann@x.org", 60_000), ("bob@x.org", 25_000), ("zoe@x.org", 900)];

pub(crate) struct World<'a> {
    db: &'a TestDb,
    pub(crate) rng: Rng,
    pub(crate) carrier: Carrier,
    pub(crate) machines: Vec<Machine>,
    pub(crate) callers: Vec<Arc<Caller>>,
    /// What was accepted: the number of its caller, and its id.
    pub(crate) made: Vec<(usize, MessageId)>,
    pub(crate) verdicts: HashMap<&'static str, usize>,
    pub(crate) listeners: Listeners,
    keys: Vec<Key>,
}

/// A node, and what it has in hand.
pub(crate) struct Machine {
    pub(crate) node: Node,
    identity: u128,
    /// Each with the end of its lease.
    held: Vec<(Handed, Timestamp)>,
    /// Handed back by the writer.
    untold: Progress,
    walks: Vec<Walk>,
}

/// What a machine waits for in a round.
struct Waiting {
    accepts: Vec<(usize, MessageId, oneshot::Receiver<Result<Accepted>>)>,
    told: oneshot::Receiver<std::result::Result<Vec<Confirmation>, (Error, Progress)>>,
    _places: Vec<Handed>,
    claimed: Option<oneshot::Receiver<Result<Vec<Handed>>>>,
}

impl<'a> World<'a> {
    pub(crate) async fn new(db: &'a TestDb, seed: u64, moods: Moods) -> Self {
        let mut machines = Vec::new();
        for identity in 1..=if db.db.is_shared() { 2 } else { 1 } {
            machines.push(Machine::start(db, db.again().await, identity).await);
        }
        let mut callers = Vec::new();
        for (email, amount) in CREDITS {
            callers.push(machines[0].node.account(email, amount).await);
        }
        let listeners = Listeners::new(&machines[0].node, &callers, seed).await;
        for machine in &mut machines {
            machine.walks = listeners.walks(&machine.node);
        }
        Self {
            db,
            rng: Rng::with_seed(seed),
            carrier: Carrier::new(seed, moods),
            machines,
            callers,
            made: Vec::new(),
            verdicts: HashMap::new(),
            listeners,
            keys: Vec::new(),
        }
    }

    fn chance(&mut self, percent: u8) -> bool {
        self.rng.u8(..100) < percent
    }

    /// All machines at once: each writes one batch of all that happened to it.
    pub(crate) async fn round(&mut self, sending: bool) {
        let nap = if self.chance(self.carrier.moods.naps) { 61 } else { 0 };
        self.db.clock.advance(Duration::from_secs(self.rng.u64(0..5) + nap));
        for i in 0..self.machines.len() {
            if self.chance(self.carrier.moods.deaths) {
                self.die(i).await;
            }
        }
        let mut batches = Vec::new();
        let (mut waiting, mut rounds) = (Vec::new(), Vec::new());
        for i in 0..self.machines.len() {
            let (mut batch, answers) = self.batch(i, sending);
            let mut round = self.walk(i, !sending);
            batch.append(&mut round.commands);
            batches.push(batch);
            waiting.push(answers);
            rounds.push(round);
        }
        let nodes = self.machines.iter().zip(batches);
        join_all(nodes.map(|(machine, batch)| machine.node.write(batch))).await;
        for (machine, round) in self.machines.iter_mut().zip(rounds) {
            round.answered(&mut machine.walks);
        }
        let mut replayed = Vec::new();
        for (i, answers) in waiting.into_iter().enumerate() {
            self.hear(i, answers, &mut replayed);
        }
        for (caller, id) in replayed {
            assert!(self.made.contains(&(caller, id)), "{id} was replayed, but never made");
        }
    }

    fn walk(&mut self, i: usize, good: bool) -> Round {
        let machine = &mut self.machines[i];
        self.listeners.batch(&machine.node, &mut machine.walks, good)
    }

    fn batch(&mut self, i: usize, sending: bool) -> (Vec<Command>, Waiting) {
        let mut commands = Vec::new();
        let mut accepts = Vec::new();
        for _ in 0..if sending { self.rng.u8(..6) } else { 0 } {
            let (caller, message) = self.compose();
            let (reply, verdict) = oneshot::channel();
            accepts.push((caller, message.id, verdict));
            let idempotency = self.idempotency(message.account);
            commands.push(Command::Accept(Accept { message, idempotency, reply }));
        }
        let mut news = std::mem::take(&mut self.machines[i].untold);
        let mut places = Vec::new();
        for (handed, until) in std::mem::take(&mut self.machines[i].held) {
            if self.chance(70) {
                news.settlements.push(judge(&handed.leased, self.carrier.submit(&handed.leased)));
                places.push(handed);
            } else {
                self.machines[i].held.push((handed, until));
            }
        }
        let told = self.carrier.tell().into_iter().map(|r| (self.machines[i].node.carrier, r));
        news.receipts.extend(told);
        let (reply, told) = oneshot::channel();
        commands.push(Command::Progress(news, reply));
        let most = self.rng.usize(1..9);
        let node = &self.machines[i].node;
        let claimed = node.desk.free_room(most).map(|room| {
            let (reply, claimed) = oneshot::channel();
            commands.push(Command::Claim(Claim { carrier: node.carrier, room, reply }));
            claimed
        });
        self.rng.shuffle(&mut commands);
        (commands, Waiting { accepts, told, _places: places, claimed })
    }

    fn compose(&mut self) -> (usize, Arc<Message>) {
        let caller = self.rng.usize(..self.callers.len());
        let send = parts(self.rng.usize(1..4));
        let now = self.machines[0].node.cx.db.now();
        let message = Message {
            id: MessageId(self.db.ids.next(now)),
            account: self.callers[caller].account,
            mode: Mode::Live,
            api_key: self.callers[caller].key,
            campaign: None,
            recipient: ANN,
            country: None,
            originator: send.originator,
            parts: text::measure(&send.text).parts,
            text: send.text,
            reference: None,
            encoding: Encoding::Gsm7,
            part_price: Amount(PRICE),
            carrier: self.machines[0].node.carrier,
            optout_list: None,
            accepted_at: now,
            scheduled_for: None,
            expires_at: now.after(Duration::from_secs(86_400)),
        };
        (caller, Arc::new(message))
    }

    /// Some requests come twice, and some keys are used for something else.
    fn idempotency(&mut self, account: AccountId) -> Option<(Key, [u8; 32])> {
        let fingerprint = if self.chance(80) { 1 } else { 2 };
        let used: Vec<_> = self.keys.iter().filter(|k| k.account == account).cloned().collect();
        if self.chance(25) && !used.is_empty() {
            return Some((used[self.rng.usize(..used.len())].clone(), [fingerprint; 32]));
        }
        let key = format!("key {}", self.keys.len());
        let key = Key { account, mode: Mode::Live, route: SEND_SMS, key };
        self.keys.push(key.clone());
        self.rng.bool().then_some((key, [fingerprint; 32]))
    }

    fn hear(&mut self, i: usize, answers: Waiting, replayed: &mut Vec<(usize, MessageId)>) {
        for (caller, id, mut verdict) in answers.accepts {
            let told = match verdict.try_recv().unwrap() {
                Ok(Accepted::Done) => {
                    self.made.push((caller, id));
                    "done"
                }
                Ok(Accepted::Replayed(id)) => {
                    replayed.push((caller, id));
                    "replayed"
                }
                Ok(Accepted::KeyReused) => "key reused",
                Ok(Accepted::InsufficientBalance) => "no money",
                other => panic!("unexpected: {other:?}"),
            };
            *self.verdicts.entry(told).or_default() += 1;
        }
        let mut told = answers.told;
        if let Err((error, news)) = told.try_recv().unwrap() {
            assert!(matches!(error, Error::Conflict(_)), "{error}");
            self.machines[i].untold = news;
        }
        let claimed = answers.claimed.map(|mut c| c.try_recv().unwrap().unwrap());
        let arrived = self.machines[i].node.arrived();
        for handed in claimed.into_iter().flatten().chain(arrived) {
            self.take_in(i, handed);
        }
    }

    /// Nobody else may hold what a machine is given.
    fn take_in(&mut self, i: usize, handed: Handed) {
        let id = handed.leased.message.id;
        let now = self.machines[i].node.cx.db.now();
        let all = self.machines.iter().flat_map(|m| &m.held);
        for (_, until) in all.filter(|(h, _)| h.leased.message.id == id) {
            assert!(*until < now, "{id} has two holders");
        }
        if handed.leased.in_doubt {
            self.carrier.doubt(id);
        }
        self.machines[i].held.push((handed, now.after(LEASE)));
    }

    /// A machine stops without a word and starts anew. Part of what it held has been submitted.
    async fn die(&mut self, i: usize) {
        for (handed, _) in std::mem::take(&mut self.machines[i].held) {
            if self.rng.bool() {
                self.carrier.submit(&handed.leased);
            }
        }
        self.listeners.die(std::mem::take(&mut self.machines[i].walks));
        let Machine { node, identity, .. } = &self.machines[i];
        let (own, identity) = (node.cx.db.clone(), *identity);
        self.machines[i] = Machine::start(self.db, own, identity).await;
        self.machines[i].walks = self.listeners.walks(&self.machines[i].node);
    }

    /// The last receipts come.
    pub(crate) async fn hear_the_rest(&mut self) {
        self.machines[0].node.hear(self.carrier.tell_the_rest()).await;
    }
}

impl Machine {
    async fn start(db: &TestDb, own: heliograph_store::Db, identity: u128) -> Self {
        let node = Node::with(db, own, (identity, 16)).await;
        node.desk.set_bound(true);
        Self { node, identity, held: Vec::new(), untold: Progress::default(), walks: Vec::new() }
    }
}
