//! Events: what happened becomes what accounts are told, in the same transaction.

use crate::context::Context;
use crate::desk::Desks;
use crate::parcel::Parcel;
use heliograph_domain::account::Mode;
use heliograph_domain::event::{Content, Ended, Event, Kind, Occurrence};
use heliograph_domain::id::{AccountId, EndpointId, EventId, MessageId};
use heliograph_domain::inbound_message::InboundMessage;
use heliograph_domain::lease::{DeliveryLease, LEASE};
use heliograph_domain::message::Status;
use heliograph_domain::time::Timestamp;
use heliograph_store::deliveries::{self, Fresh};
use heliograph_store::endpoints::{self, Listener};
use heliograph_store::{Conn, Result, events, messages};
use std::collections::{BTreeSet, HashMap, HashSet};
use std::sync::Arc;
use std::time::Instant;
use uuid::Uuid;

/// The desks of this node's couriers.
pub type Couriers = Desks<EndpointId, Parcel>;

/// What has to be told to couriers when the transaction is durable.
#[derive(Debug, Default)]
pub struct Told {
    /// Leased already, for this node's couriers.
    pub handed: HashMap<EndpointId, Vec<Parcel>>,
    /// Endpoints whose courier has to claim, since not everything could be handed over.
    pub left: HashSet<EndpointId>,
}

/// A message that reached its final status.
pub type End = ((AccountId, MessageId), Status);

/// The events of one transaction, gathered for those who listen.
pub struct Events<'a> {
    cx: &'a Context,
    couriers: &'a Couriers,
    now: Timestamp,
    since: Instant,
    listeners: Vec<Listener>,
    rows: Vec<Occurrence>,
    deliveries: Vec<Fresh>,
    told: Told,
}

impl<'a> Events<'a> {
    /// Finds out who listens to what happens to these accounts. `since` is when the transaction began.
    ///
    /// # Errors
    /// As any read.
    pub async fn of(
        tx: &mut Conn,
        accounts: BTreeSet<AccountId>,
        (cx, couriers): (&'a Context, &'a Couriers),
        (now, since): (Timestamp, Instant),
    ) -> Result<Self> {
        let accounts: Vec<AccountId> = accounts.into_iter().collect();
        let listeners = endpoints::listening(tx, &accounts, now).await?;
        let (rows, deliveries, told) = (Vec::new(), Vec::new(), Told::default());
        Ok(Self { cx, couriers, now, since, listeners, rows, deliveries, told })
    }

    /// Adds messages that ended.
    ///
    /// # Errors
    /// As any read.
    pub async fn ended(&mut self, tx: &mut Conn, ends: &[End]) -> Result<()> {
        let wanted = |&((account, id), status): &End| {
            let kind = Ended::kind(status)?;
            let mut all = self.listeners.iter();
            all.any(|l| l.account == account && l.kinds.has(kind)).then_some((account, id))
        };
        let keys: Vec<_> = ends.iter().filter_map(wanted).collect();
        for (message, state) in messages::whole(tx, &keys).await? {
            let Some(kind) = Ended::kind(state.status) else { continue };
            let (account, mode, subject) = (message.account, message.mode, message.id.0);
            let message = Arc::new(message);
            self.add((account, mode, kind), subject, |currency| {
                Content::Message(Box::new(Ended { message, state, currency }))
            });
        }
        Ok(())
    }

    /// Adds what people sent.
    pub fn received(&mut self, messages: &[InboundMessage]) {
        for m in messages {
            let what = (m.account, m.mode, Kind::MessageReceived);
            self.add(what, m.id.0, |_| Content::Received(Box::new(m.clone())));
        }
    }

    /// Adds one event, if anybody wants to be told of it.
    fn add(
        &mut self,
        (account, mode, kind): (AccountId, Mode, Kind),
        subject: Uuid,
        content: impl FnOnce(Arc<str>) -> Content,
    ) {
        let wants = |l: &&Listener| l.account == account && l.mode == mode && l.kinds.has(kind);
        let listeners: Vec<_> = self.listeners.iter().filter(wants).collect();
        let Some(primary) = listeners.first() else { return };
        let id = EventId(self.cx.ids.next(self.now));
        let content = content(primary.currency.as_str().into());
        let event = Arc::new(Event { id, account, mode, at: self.now, content });
        let endpoint = primary.id;
        let (subject, at) = (Some(subject), self.now);
        self.rows.push(Occurrence { account, id, mode, kind, test: false, subject, at, endpoint });
        for to in listeners.iter().filter(|l| !l.off).map(|l| l.id) {
            let room = self.couriers.room(to);
            let owner = room.as_ref().map(|_| self.cx.node);
            self.deliveries.push(Fresh {
                endpoint: to,
                due_at: self.now,
                event: id,
                account,
                owner,
            });
            let Some(room) = room else {
                self.told.left.insert(to);
                continue;
            };
            let lease = DeliveryLease {
                endpoint: to,
                due_at: self.now,
                event: id,
                owner: self.cx.node,
                attempt: 1,
                tries: 0,
            };
            let (event, primary, since) = (event.clone(), to == endpoint, self.since);
            let parcel = Parcel { lease, event, primary, since, room };
            self.told.handed.entry(to).or_default().push(parcel);
        }
    }

    /// Stores all that was added.
    ///
    /// # Errors
    /// As any write.
    pub async fn store(self, tx: &mut Conn) -> Result<Told> {
        events::insert(tx, &self.rows).await?;
        deliveries::insert(tx, &self.deliveries, self.now.after(LEASE)).await?;
        Ok(self.told)
    }
}
