//! A small world at random: accounts that send, nodes that die, and a carrier with all its moods.

use crate::node::{ANN, Node, PRICE, accepted, parts, receipt};
use crate::support::TestDb;
use fastrand::Rng;
use futures_util::future::join_all;
use heliograph_domain::account::Mode;
use heliograph_domain::id::{AccountId, Ids, MessageId};
use heliograph_domain::lease::{LEASE, Leased};
use heliograph_domain::message::{Failure, FailureCode, Message};
use heliograph_domain::money::Amount;
use heliograph_domain::receipt::{Receipt, Verdict};
use heliograph_domain::submission::Outcome;
use heliograph_domain::text::{self, Encoding};
use heliograph_domain::time::{Clock, Timestamp};
use heliograph_service::caller::Caller;
use heliograph_service::dispatch::judge;
use heliograph_service::writer::{Accept, Accepted, Claim, Command, Handed, Progress};
use heliograph_store::idempotency::{Key, SEND_SMS};
use heliograph_store::{Error, Result};
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::oneshot;

/// How often things go wrong, in percent.
#[derive(Clone, Copy)]
pub(crate) struct Moods {
    /// A part is refused.
    pub(crate) refused: u8,
    /// A part is put off.
    pub(crate) put_off: u8,
    /// The response to a part is lost.
    pub(crate) lost: u8,
    /// A node dies in a round.
    pub(crate) deaths: u8,
    /// A minute goes by in which no node does anything.
    pub(crate) naps: u8,
}

/// Who has how much; the last one soon has nothing left.
pub(crate) const CREDITS: [(&str, i64); 3] =
    [("ann@x.org", 60_000), ("bob@x.org", 25_000), ("zoe@x.org", 900)];

pub(crate) struct World<'a> {
    db: &'a TestDb,
    pub(crate) rng: Rng,
    pub(crate) moods: Moods,
    pub(crate) machines: Vec<Machine>,
    pub(crate) callers: Vec<Arc<Caller>>,
    /// What was accepted: the number of its caller, and its id.
    pub(crate) made: Vec<(usize, MessageId)>,
    pub(crate) verdicts: HashMap<&'static str, usize>,
    keys: Vec<Key>,
    receipts: Vec<Receipt>,
    named: u64,
    /// How often the carrier took a part.
    taken: HashMap<(MessageId, u8), usize>,
    /// How often it was in doubt whether a message had been submitted.
    doubts: HashMap<MessageId, usize>,
}

/// A node, and what it has in hand.
pub(crate) struct Machine {
    pub(crate) node: Node,
    identity: u128,
    held: Vec<(Handed, Timestamp)>,
    /// Handed back by the writer.
    untold: Progress,
}

/// What a machine waits for in a round.
struct Waiting {
    accepts: Vec<(usize, MessageId, oneshot::Receiver<Result<Accepted>>)>,
    told: oneshot::Receiver<std::result::Result<(), (Error, Progress)>>,
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
        Self {
            db,
            rng: Rng::with_seed(std::env::var("SOAK").map_or(seed, |s| s.parse().unwrap())),
            moods,
            machines,
            callers,
            made: Vec::new(),
            verdicts: HashMap::new(),
            keys: Vec::new(),
            receipts: Vec::new(),
            named: 0x4000_0000,
            taken: HashMap::new(),
            doubts: HashMap::new(),
        }
    }

    fn chance(&mut self, percent: u8) -> bool {
        self.rng.u8(..100) < percent
    }

    /// All machines at once: each writes one batch of all that happened to it.
    pub(crate) async fn round(&mut self, sending: bool) {
        let nap = if self.chance(self.moods.naps) { 61 } else { 0 };
        self.db.clock.advance(Duration::from_secs(self.rng.u64(0..5) + nap));
        for i in 0..self.machines.len() {
            if self.chance(self.moods.deaths) {
                self.die(i).await;
            }
        }
        let mut batches = Vec::new();
        let mut waiting = Vec::new();
        for i in 0..self.machines.len() {
            let (batch, answers) = self.batch(i, sending);
            batches.push(batch);
            waiting.push(answers);
        }
        let nodes = self.machines.iter().zip(batches);
        join_all(nodes.map(|(machine, batch)| machine.node.write(batch))).await;
        let mut replayed = Vec::new();
        for (i, answers) in waiting.into_iter().enumerate() {
            self.hear(i, answers, &mut replayed);
        }
        for (caller, id) in replayed {
            assert!(self.made.contains(&(caller, id)), "{id} was replayed, but never made");
        }
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
                news.settlements.push(judge(&handed.leased, self.submit(&handed.leased)));
                places.push(handed);
            } else {
                self.machines[i].held.push((handed, until));
            }
        }
        for receipt in std::mem::take(&mut self.receipts) {
            if self.chance(50) {
                news.receipts.push((self.machines[i].node.carrier, receipt));
            } else {
                self.receipts.push(receipt);
            }
        }
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
            api_key: Some(self.callers[caller].key),
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

    /// What the carrier says to all parts that it has not taken yet.
    fn submit(&mut self, leased: &Leased) -> Vec<(u8, Outcome)> {
        let count = u8::try_from(leased.message.parts).unwrap();
        let left = (1..=count).filter(|part| !leased.parts_taken.contains(part));
        left.map(|part| (part, self.answer(leased, part))).collect()
    }

    fn answer(&mut self, leased: &Leased, part: u8) -> Outcome {
        let id = leased.message.id;
        let Moods { refused, put_off, lost, .. } = self.moods;
        let mood = self.rng.u8(..100);
        if mood < refused {
            return Outcome::Refused(Failure::plain(FailureCode::RejectedContent));
        }
        if mood < refused + put_off {
            let status = 0x45;
            let all = [
                Outcome::Throttled,
                Outcome::Temporary { status },
                Outcome::Ambiguous { status },
                Outcome::NotSent,
            ];
            return all[self.rng.usize(..all.len())].clone();
        }
        if mood < refused + put_off + lost {
            *self.doubts.entry(id).or_default() += 1;
            if self.rng.bool() {
                self.take(id, part);
            }
            return Outcome::InDoubt;
        }
        accepted(&self.take(id, part))
    }

    /// The carrier takes a part, and in most cases tells later what became of it.
    fn take(&mut self, id: MessageId, part: u8) -> String {
        let taken = self.taken.entry((id, part)).or_default();
        *taken += 1;
        let doubts = self.doubts.get(&id).copied().unwrap_or(0);
        assert!(*taken <= 1 + doubts, "part {part} of {id} was sent {taken} times");
        self.named += 1;
        let name = self.named.to_string();
        let told = if self.chance(15) { format!("{:X}", self.named) } else { name.clone() };
        let failed = Verdict::Failed(Failure::plain(FailureCode::Unreachable));
        let verdict = if self.chance(20) { failed } else { Verdict::Delivered };
        for _ in 0..[0, 1, 1, 1, 1, 1, 1, 1, 1, 2][self.rng.usize(..10)] {
            self.receipts.push(receipt(&told, &verdict));
        }
        name
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
        let now = self.db.clock.now();
        let all = self.machines.iter().flat_map(|m| &m.held);
        for (_, until) in all.filter(|(h, _)| h.leased.message.id == id) {
            // Each node measures the database's clock by itself: a second leaves room for that.
            assert!(*until <= now.after(Duration::from_secs(1)), "{id} has two holders");
        }
        if handed.leased.in_doubt {
            *self.doubts.entry(id).or_default() += 1;
        }
        self.machines[i].held.push((handed, now.after(LEASE)));
    }

    /// A machine stops without a word and starts anew. Part of what it held has been submitted.
    async fn die(&mut self, i: usize) {
        for (handed, _) in std::mem::take(&mut self.machines[i].held) {
            if self.rng.bool() {
                self.submit(&handed.leased);
            }
        }
        let Machine { node, identity, .. } = &self.machines[i];
        let (own, identity) = (node.cx.db.clone(), *identity);
        self.machines[i] = Machine::start(self.db, own, identity).await;
    }

    /// The last receipts come.
    pub(crate) async fn hear_the_rest(&mut self) {
        self.machines[0].node.hear(std::mem::take(&mut self.receipts)).await;
    }
}

impl Machine {
    async fn start(db: &TestDb, own: heliograph_store::Db, identity: u128) -> Self {
        let node = Node::with(db, own, (identity, 16)).await;
        node.desk.set_bound(true);
        Self { node, identity, held: Vec::new(), untold: Progress::default() }
    }
}
