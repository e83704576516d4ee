//! A node without its wires: the rules, the writer, and one carrier's desk. The test is its
//! dispatcher.

use crate::support::TestDb;
use futures_util::future::join_all;
use heliograph_domain::account::{Mode, Scopes};
use heliograph_domain::carrier::{Route, Routes};
use heliograph_domain::id::{AccountId, CarrierId, MessageId};
use heliograph_domain::message::{State, Status};
use heliograph_domain::money::Amount;
use heliograph_domain::phone::Recipient;
use heliograph_domain::rate::Rates;
use heliograph_domain::receipt::{Receipt, Verdict};
use heliograph_domain::secret::Random;
use heliograph_domain::submission::Outcome;
use heliograph_domain::target::{Reach, Resolved, Resolver};
use heliograph_service::api_keys::{self, Keyring};
use heliograph_service::audit::Actor;
use heliograph_service::bells::Bells;
use heliograph_service::caller::Caller;
use heliograph_service::context::{Context, Entrance, Replies, Settings};
use heliograph_service::dispatch::{Desk, Desks, judge};
use heliograph_service::error::{Error, Result};
use heliograph_service::events::Couriers;
use heliograph_service::messages::{self, DEFAULT_VALIDITY, Send, Sent};
use heliograph_service::once::Once;
use heliograph_service::transaction::Road;
use heliograph_service::writer::{self, Claim, Command, Handed, Progress, Settlement, Writer};
use heliograph_service::{accounts, check, nodes};
use heliograph_store::Db;
use std::cell::RefCell;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{mpsc, oneshot, watch};
use uuid::Uuid;

pub(crate) const ANN: Recipient = Recipient(447_700_900_123);
/// What a part costs.
pub(crate) const PRICE: i64 = 100;

/// The machine's own randomness.
struct Always;

impl Random for Always {
    fn fill(&self, bytes: &mut [u8]) -> bool {
        getrandom::fill(bytes).is_ok()
    }
}

/// Knows `example.com`, which is public, and `inside.example.com`, which is not.
struct Names;

impl Resolver for Names {
    fn resolve(&self, host: String) -> Resolved {
        Box::pin(async move {
            match host.as_str() {
                "example.com" => Ok(vec![[93, 184, 216, 34].into()]),
                "inside.example.com" => Ok(vec![[10, 0, 0, 1].into()]),
                "both.example.com" => Ok(vec![[93, 184, 216, 34].into(), [127, 0, 0, 1].into()]),
                _ => Err(std::io::ErrorKind::NotFound.into()),
            }
        })
    }
}

pub(crate) struct Node {
    pub(crate) cx: Context,
    pub(crate) carrier: CarrierId,
    pub(crate) desks: Desks,
    pub(crate) desk: Arc<Desk>,
    pub(crate) couriers: Couriers,
    arrivals: RefCell<mpsc::Receiver<Vec<Handed>>>,
}

impl Node {
    /// The first node of a test, with room for 32 messages at the desk.
    pub(crate) async fn start(db: &TestDb) -> Self {
        Self::with(db, db.db.clone(), (1, 32)).await
    }

    /// A node with an identity and so much room, on a connection of its own or a shared one.
    pub(crate) async fn with(db: &TestDb, own: Db, (identity, room): (u128, usize)) -> Self {
        let node = nodes::start(&own, Uuid::from_u128(identity)).await.unwrap();
        let (carriers, simulated) = nodes::carriers(&own, &["acme".to_owned()]).await.unwrap();
        let carrier = carriers[0];
        let settings = Settings {
            routes: Routes::new(vec![Route { prefix: String::new(), carriers }]),
            rates: Rates::new(Amount(PRICE), Vec::new()),
            simulated,
            replies: Replies::default(),
            entrance: Entrance {
                open: true,
                currency: "EUR".to_owned(),
                base_url: "http://localhost".to_owned(),
                named: false,
                mail: true,
            },
            reach: Reach::default(),
            webhook_timeout: Duration::from_secs(15),
            webhook_retention: Duration::from_secs(30 * 86_400),
        };
        let (_, settings) = watch::channel(Arc::new(settings));
        let (clock, ids) = (db.clock.clone(), db.ids.clone());
        let (random, bells) = (Arc::new(Always), Bells::default());
        let resolver = Arc::new(Names);
        let cx = Context { db: own, clock, ids, random, bells, resolver, node, settings };
        let desks = Desks::default();
        let (desk, arrivals) = Desk::new(room);
        desks.set(carrier, desk.clone());
        let couriers = Couriers::default();
        Self { cx, carrier, desks, desk, couriers, arrivals: RefCell::new(arrivals) }
    }

    /// The carrier is there, and nothing older waits.
    pub(crate) async fn open(&self) {
        self.desk.set_bound(true);
        assert_eq!(self.claim().await.len(), 0);
    }

    /// Runs the writer while `work` goes on. What is sent before the first wait is one batch.
    pub(crate) async fn writing<T>(&self, work: impl AsyncFnOnce(Writer) -> T) -> T {
        let (writer, inbox) = writer::channel();
        let road = Road::new(self.cx.clone(), self.desks.clone(), self.couriers.clone());
        let run = writer::run(self.cx.clone(), inbox, road);
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
        all: Vec<(Send, Option<Once>)>,
    ) -> Vec<Result<Sent>> {
        self.writing(async |writer: Writer| {
            let send = |(send, once)| messages::send(&self.cx, &writer, caller, send, once);
            join_all(all.into_iter().map(send)).await
        })
        .await
    }

    /// Sends one message that is taken.
    pub(crate) async fn send(&self, caller: &Caller, send: Send) -> MessageId {
        let sent = self.send_all(caller, vec![(send, None)]).await.pop().unwrap();
        sent.unwrap().message.id
    }

    /// Claims as much as there is room for.
    pub(crate) async fn claim(&self) -> Vec<Handed> {
        let Some(room) = self.desk.free_room(usize::MAX) else { return Vec::new() };
        let (reply, mut answer) = oneshot::channel();
        self.write(vec![Command::Claim(Claim { carrier: self.carrier, room, reply })]).await;
        answer.try_recv().unwrap().unwrap()
    }

    /// What was handed over since the last look.
    pub(crate) fn arrived(&self) -> Vec<Handed> {
        let mut arrivals = self.arrivals.borrow_mut();
        std::iter::from_fn(|| arrivals.try_recv().ok()).flatten().collect()
    }

    /// Tells what became of messages, in one batch.
    pub(crate) async fn settle(&self, settlements: Vec<Settlement>) {
        self.tell(Progress { settlements, ..Progress::default() }).await;
    }

    /// Tells what receipts say, in one batch.
    pub(crate) async fn hear(&self, receipts: Vec<Receipt>) {
        let receipts = receipts.into_iter().map(|r| (self.carrier, r)).collect();
        self.tell(Progress { receipts, ..Progress::default() }).await;
    }

    pub(crate) async fn tell(&self, news: Progress) {
        let (reply, mut answer) = oneshot::channel();
        self.write(vec![Command::Progress(news, reply)]).await;
        answer.try_recv().unwrap().unwrap();
    }

    pub(crate) async fn state(&self, caller: &Caller, id: MessageId) -> State {
        messages::get(&self.cx, caller, id).await.unwrap().1
    }

    pub(crate) async fn status(&self, caller: &Caller, id: MessageId) -> Status {
        self.state(caller, id).await.status
    }

    /// What an account has: (available, reserved).
    pub(crate) async fn balance(&self, caller: &Caller) -> (i64, i64) {
        let all = accounts::list(&self.cx).await.unwrap();
        let found = all.into_iter().find(|a| a.id == caller.account).unwrap();
        (found.available.0, found.reserved.0)
    }

    pub(crate) async fn check(&self) {
        assert_eq!(check::violations(&self.cx).await.unwrap(), [""; 0]);
    }

    /// An account with so much money, and a key of it.
    pub(crate) async fn account(&self, email: &str, amount: i64) -> Arc<Caller> {
        let made = accounts::create(&self.cx, email, "EUR", false).await.unwrap().unwrap();
        if amount > 0 {
            accounts::credit(&self.cx, made, Amount(amount), "thanks").await.unwrap();
        }
        self.key(made, Mode::Live).await
    }

    /// One more key of an account.
    pub(crate) async fn key(&self, account: AccountId, mode: Mode) -> Arc<Caller> {
        let (name, _) = self.cx.next_id();
        let mut random = [0; 64];
        random[..16].copy_from_slice(name.as_bytes());
        random.iter_mut().for_each(|b| *b %= 248);
        let (by, what) = (Actor::operator(account), (mode, Scopes::ALL));
        let (_, key) = api_keys::create(&self.cx, &by, what, "key", &random).await.unwrap();
        Keyring::default().verify(&self.cx, key.reveal()).await.unwrap()
    }
}

/// A text on its way to Ann.
pub(crate) fn text(text: &str) -> Send {
    Send {
        originator: "Shop".parse().unwrap(),
        recipient: ANN,
        text: text.to_owned(),
        reference: None,
        validity: DEFAULT_VALIDITY,
        max_parts: None,
        block_optout: true,
    }
}

/// A text of so many parts.
pub(crate) fn parts(n: usize) -> Send {
    text(&"x".repeat(if n == 1 { 5 } else { n * 153 }))
}

pub(crate) fn once(key: &str, fingerprint: u8) -> Option<Once> {
    Some(Once { key: key.to_owned(), fingerprint: [fingerprint; 32] })
}

pub(crate) fn accepted(smsc_id: &str) -> Outcome {
    Outcome::Accepted { smsc_id: smsc_id.to_owned() }
}

/// What one outcome means for a message of one part.
pub(crate) fn outcome(handed: &Handed, outcome: Outcome) -> Settlement {
    judge(&handed.leased, vec![(1, outcome)])
}

pub(crate) fn receipt(smsc_id: &str, verdict: &Verdict) -> Receipt {
    Receipt { smsc_id: smsc_id.to_owned(), recipient: ANN, verdict: verdict.clone() }
}

pub(crate) fn delivered(smsc_id: &str) -> Receipt {
    receipt(smsc_id, &Verdict::Delivered)
}

/// Whether an error is the one that is expected.
pub(crate) fn is_overloaded<T: std::fmt::Debug>(done: &Result<T>) -> bool {
    matches!(done, Err(Error::Overloaded(_)))
}
