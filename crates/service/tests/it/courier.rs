//! A courier without its wires: a desk for one endpoint. The test decides how it answers.

use crate::node::{Node, accepted, delivered, outcome, text};
use crate::support::TestDb;
use heliograph_domain::account::Mode;
use heliograph_domain::event::Kind;
use heliograph_domain::id::{EndpointId, EventId, MessageId};
use heliograph_domain::webhook::{Endpoint, Kinds, SECRET_BYTES, Secret};
use heliograph_service::audit::Actor;
use heliograph_service::caller::Caller;
use heliograph_service::deliveries::{self, Response};
use heliograph_service::desk::Desk;
use heliograph_service::parcel::{Attempted, Collect, Parcel, Report, Verdict};
use heliograph_service::webhooks::{self, Wish};
use heliograph_service::writer::Command;
use std::cell::RefCell;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{mpsc, oneshot};

/// What an endpoint says.
pub(crate) const OK: u16 = 200;
pub(crate) const BROKEN: u16 = 500;
pub(crate) const GONE: u16 = 410;

pub(crate) struct Courier {
    pub(crate) id: EndpointId,
    pub(crate) desk: Arc<Desk<Parcel>>,
    arrivals: RefCell<mpsc::Receiver<Vec<Parcel>>>,
}

impl Courier {
    /// At work, and nothing older waits.
    pub(crate) async fn open(node: &Node, id: EndpointId) -> Self {
        let courier = Self::idle(node, id);
        courier.desk.set_bound(true);
        assert_eq!(courier.collect(node).await.len(), 0);
        courier
    }

    /// Has not looked yet what waits, so that nothing is handed to it.
    pub(crate) fn idle(node: &Node, id: EndpointId) -> Self {
        let (desk, arrivals) = Desk::new(32);
        node.couriers.set(id, desk.clone());
        Self { id, desk, arrivals: RefCell::new(arrivals) }
    }

    /// What was handed over since the last look.
    pub(crate) fn arrived(&self) -> Vec<Parcel> {
        let mut arrivals = self.arrivals.borrow_mut();
        std::iter::from_fn(|| arrivals.try_recv().ok()).flatten().collect()
    }

    /// Claims as much as there is room for.
    pub(crate) async fn collect(&self, node: &Node) -> Vec<Parcel> {
        self.claim(node, false).await
    }

    /// Claims tests alone.
    pub(crate) async fn collect_urgent(&self, node: &Node) -> Vec<Parcel> {
        self.claim(node, true).await
    }

    async fn claim(&self, node: &Node, urgent: bool) -> Vec<Parcel> {
        let room = self.desk.free_room(usize::MAX).unwrap();
        let (reply, mut answer) = oneshot::channel();
        node.write(vec![Command::Collect(Collect { endpoint: self.id, urgent, room, reply })])
            .await;
        answer.try_recv().unwrap().unwrap()
    }

    /// Reports one answer for all of these.
    pub(crate) async fn answer(&self, node: &Node, parcels: Vec<Parcel>, status: u16) {
        let judged = parcels.into_iter().map(|p| (says(&p, status), p)).collect();
        self.report(node, judged).await;
    }

    pub(crate) async fn report(&self, node: &Node, all: Vec<(Verdict, Parcel)>) {
        let (reply, mut answer) = oneshot::channel();
        let report = self.told(node, &all);
        node.write(vec![Command::Report(report, reply)]).await;
        answer.try_recv().unwrap().unwrap();
    }

    /// What it has to say of these.
    pub(crate) fn told(&self, node: &Node, all: &[(Verdict, Parcel)]) -> Report {
        let attempted = |(verdict, p): &(Verdict, Parcel)| Attempted {
            lease: p.lease.clone(),
            account: p.event.account,
            primary: p.primary,
            at: node.cx.db.now(),
            took: Duration::from_millis(7),
            verdict: verdict.clone(),
        };
        let attempts = all.iter().map(attempted).collect();
        Report { endpoint: self.id, attempts }
    }

    /// The endpoint as it is now.
    pub(crate) async fn endpoint(&self, node: &Node) -> Endpoint {
        webhooks::by_number(&node.cx, self.id).await.unwrap()
    }

    /// Whose it is, at the command line.
    pub(crate) async fn owner(&self, node: &Node) -> Actor {
        Actor::operator(self.endpoint(node).await.account)
    }
}

/// What this status means for a parcel, in the middle of the schedule's jitter.
pub(crate) fn says(parcel: &Parcel, status: u16) -> Verdict {
    let (body, retry_after) = (String::new(), None);
    deliveries::judge(parcel.lease.tries, Response::Answered { status, body, retry_after }, 0.5)
}

pub(crate) fn secret() -> Secret {
    Secret::from_random(&[5; SECRET_BYTES])
}

pub(crate) fn wish(caller: &Caller, url: &str) -> Wish {
    let (mode, kinds) = (caller.mode, Kinds::ALL);
    Wish { mode, url: url.to_owned(), kinds, listening_until: None }
}

/// Registers an endpoint that wants to be told everything.
pub(crate) async fn endpoint(node: &Node, caller: &Caller) -> EndpointId {
    let wish = wish(caller, "https://example.com/hook");
    webhooks::add(&node.cx, &Actor::operator(caller.account), wish, secret()).await.unwrap().id
}

/// Registers one that wants to be told only this.
pub(crate) async fn choosy(node: &Node, caller: &Caller, mode: Mode, kind: Kind) -> EndpointId {
    let kinds = [kind].into_iter().collect();
    let wish = Wish { mode, kinds, ..wish(caller, "https://example.com/hook") };
    webhooks::add(&node.cx, &Actor::operator(caller.account), wish, secret()).await.unwrap().id
}

/// Sends a message that is delivered at once. The carrier's desk is open.
pub(crate) async fn ended(node: &Node, caller: &Caller) -> MessageId {
    let id = node.send(caller, text("Hello")).await;
    let held = node.arrived().pop().unwrap();
    let name = id.to_string();
    node.settle(vec![outcome(&held, accepted(&name))]).await;
    node.hear(vec![delivered(&name)]).await;
    id
}

pub(crate) fn events(parcels: &[Parcel]) -> Vec<EventId> {
    parcels.iter().map(|p| p.event.id).collect()
}

/// How much waits for an endpoint.
pub(crate) async fn waiting(node: &Node, id: EndpointId) -> i64 {
    let account = webhooks::by_number(&node.cx, id).await.unwrap().account;
    webhooks::waiting(&node.cx, account, id).await.unwrap()
}

/// How many rows there are behind the store's back.
pub(crate) async fn rows(db: &TestDb, of: &str) -> i64 {
    let sql = format!("SELECT count(*) FROM {of}");
    if let Some(path) = db.url.strip_prefix("sqlite:") {
        let conn = rusqlite::Connection::open(path).unwrap();
        return conn.query_row(&sql, [], |r| r.get(0)).unwrap();
    }
    let (client, connection) =
        tokio_postgres::connect(&db.url, tokio_postgres::NoTls).await.unwrap();
    let ask = async move { client.query_one(&sql, &[]).await.unwrap().get(0) };
    let (closed, found) = tokio::join!(connection, ask);
    closed.unwrap();
    found
}
