//! Leases: one node's right, for a while, to submit one message.

use crate::id::{AccountId, CarrierId, EndpointId, EventId, MessageId, NodeId};
use crate::message::Message;
use crate::time::Timestamp;
use std::sync::Arc;
use std::time::Duration;

/// How long a lease holds by the database's clock.
pub const LEASE: Duration = Duration::from_secs(60);
/// Age at which a lease that is still needed is renewed.
pub const RENEW_AFTER: Duration = Duration::from_secs(20);
/// Age after which its holder must not submit any more: well before another node may take over.
pub const STOP_AFTER: Duration = Duration::from_secs(45);

/// Which of the carrier's work comes first: all that is due in a lower lane goes before any in a
/// higher one.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Lane(pub i16);

impl Lane {
    /// Single sends.
    pub const SINGLE: Self = Self(0);
    /// The lanes that exist, first come first.
    pub const ALL: [Self; 1] = [Self::SINGLE];
}

/// A row of the queue as its holder knows it: the key, and what fences every change.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Lease {
    /// Whose work it is.
    pub carrier: CarrierId,
    /// Its lane.
    pub lane: Lane,
    /// When it was due.
    pub due_at: Timestamp,
    /// The message.
    pub message: MessageId,
    /// Whose message it is.
    pub account: AccountId,
    /// Who holds it.
    pub owner: NodeId,
    /// Counts leases of this row: with the owner it makes each lease unique.
    pub attempt: u16,
}

/// A leased message with all that is needed to submit it.
#[derive(Clone, Debug)]
pub struct Leased {
    /// The right to submit it.
    pub lease: Lease,
    /// What to submit.
    pub message: Arc<Message>,
    /// How often the carrier put it off.
    pub tries: u16,
    /// How often no response came.
    pub doubts: u16,
    /// An earlier lease was never given back: it may have been submitted already.
    pub in_doubt: bool,
    /// The parts that the carrier has already taken (only for messages of several parts).
    pub parts_taken: Vec<u8>,
}

/// A row of the deliveries as its holder knows it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct DeliveryLease {
    /// Who is to be told.
    pub endpoint: EndpointId,
    /// When that was due.
    pub due_at: Timestamp,
    /// What.
    pub event: EventId,
    /// Who holds it.
    pub owner: NodeId,
    /// Counts leases of this row: with the owner it makes each lease unique.
    pub attempt: u16,
    /// How many POSTs there were before.
    pub tries: u16,
}
