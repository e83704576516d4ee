//! Those who listen to the small world: each account has an endpoint, which answers at random, and what it took is
//! remembered.

use crate::courier::{BROKEN, Courier, OK, endpoint, says, waiting};
use crate::node::Node;
use fastrand::Rng;
use heliograph_domain::event::Content;
use heliograph_domain::id::{EndpointId, EventId, MessageId};
use heliograph_service::caller::Caller;
use heliograph_service::parcel::{Collect, Parcel, Verdict};
use heliograph_service::writer::Command;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use tokio::sync::oneshot;

/// Failures in a row that an endpoint allows itself: it never gives up an event.
const MOST_FAILURES: u16 = 4;

pub(crate) struct Listeners {
    rng: Rng,
    all: Vec<EndpointId>,
    /// The events that were taken, by what they tell of.
    pub(crate) taken: HashMap<MessageId, HashSet<EventId>>,
}

/// One machine's courier, and what it has in hand.
pub(crate) struct Walk {
    courier: Courier,
    held: Vec<Parcel>,
}

impl Listeners {
    pub(crate) async fn new(node: &Node, callers: &[Arc<Caller>], seed: u64) -> Self {
        let mut all = Vec::new();
        for caller in callers {
            all.push(endpoint(node, caller).await);
        }
        Self { rng: Rng::with_seed(seed ^ 0x55), all, taken: HashMap::new() }
    }

    /// A courier for each, on a machine that has just begun.
    pub(crate) fn walks(&self, node: &Node) -> Vec<Walk> {
        let walk = |id: &EndpointId| {
            let courier = Courier::idle(node, *id);
            courier.desk.set_bound(true);
            Walk { courier, held: Vec::new() }
        };
        self.all.iter().map(walk).collect()
    }

    /// What a machine's couriers report and ask for.
    pub(crate) fn batch(&mut self, node: &Node, walks: &mut [Walk], good: bool) -> Round {
        let mut round = Round::default();
        for (i, walk) in walks.iter_mut().enumerate() {
            walk.held.extend(walk.courier.arrived());
            let mut told = Vec::new();
            for parcel in std::mem::take(&mut walk.held) {
                match self.verdict(&parcel, good) {
                    Some(verdict) => told.push((verdict, parcel)),
                    None => walk.held.push(parcel),
                }
            }
            if !told.is_empty() {
                let report = walk.courier.told(node, &told);
                round.commands.push(Command::Report(report, oneshot::channel().0));
            }
            if let Some(room) = walk.courier.desk.free_room(self.rng.usize(1..9)) {
                let (reply, found) = oneshot::channel();
                let (endpoint, urgent) = (walk.courier.id, false);
                round.commands.push(Command::Collect(Collect { endpoint, urgent, room, reply }));
                round.collected.push((i, found));
            }
        }
        self.rng.shuffle(&mut round.commands);
        round
    }

    /// `None` while the endpoint has not answered yet.
    fn verdict(&mut self, parcel: &Parcel, good: bool) -> Option<Verdict> {
        let mood = self.rng.u8(..100);
        match mood {
            _ if good => {}
            0..20 => return None,
            20..30 => return Some(Verdict::NotTried),
            30..50 if parcel.lease.tries < MOST_FAILURES => return Some(says(parcel, BROKEN)),
            _ => {}
        }
        self.take(parcel);
        Some(says(parcel, OK))
    }

    fn take(&mut self, parcel: &Parcel) {
        let Content::Message(told) = &parcel.event.content else { panic!("{parcel:?}") };
        self.taken.entry(told.message.id).or_default().insert(parcel.event.id);
    }

    /// Half of what a machine held when it died had been taken, and nobody was told.
    pub(crate) fn die(&mut self, walks: Vec<Walk>) {
        for walk in walks {
            let arrived = walk.courier.arrived();
            for parcel in walk.held.into_iter().chain(arrived) {
                if self.rng.bool() {
                    self.take(&parcel);
                }
            }
        }
    }

    /// How much is still to be told.
    pub(crate) async fn waiting(&self, node: &Node) -> i64 {
        let mut sum = 0;
        for id in &self.all {
            sum += waiting(node, *id).await;
        }
        sum
    }
}

type Found = oneshot::Receiver<heliograph_store::Result<Vec<Parcel>>>;

/// What a machine's couriers write in a round, and wait for.
#[derive(Default)]
pub(crate) struct Round {
    pub(crate) commands: Vec<Command>,
    collected: Vec<(usize, Found)>,
}

impl Round {
    /// The commands are written.
    pub(crate) fn answered(self, walks: &mut [Walk]) {
        for (i, mut found) in self.collected {
            walks[i].held.extend(found.try_recv().unwrap().unwrap());
        }
    }
}
