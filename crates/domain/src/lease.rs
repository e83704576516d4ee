//! Leases: the temporary right of one node to submit one message or deliver one webhook, and
//! fencing.

use crate::id::{AccountId, CarrierId, EndpointId, EventId, MessageId, NodeId};
use crate::message::Message;
use crate::time::Timestamp;
use std::sync::Arc;
use std::time::Duration;

/// The duration of a lease, by the database's clock.
pub const LEASE: Duration = Duration::from_secs(60);
/// The age at which a lease that is still needed is renewed.
pub const RENEW_AFTER: Duration = Duration::from_secs(20);
/// The age after which the holder must stop submitting: well before another node may take over.
pub const STOP_AFTER: Duration = Duration::from_secs(45);

/// The interval of the heartbeat of a node that holds leases.
pub const HEARTBEAT: Duration = Duration::from_secs(3);
/// The time without a heartbeat after which another node releases the leases of a node.
pub const MISSING_AFTER: Duration = Duration::from_secs(15);
/// The time after a heartbeat for which its node may submit: shorter than [`MISSING_AFTER`].
pub const SUBMIT_AFTER_HEARTBEAT: Duration = Duration::from_secs(12);

/// A priority class of the queue of a carrier. Everything that is due in a lower lane goes before
/// anything in a higher one.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Lane(pub i16);

impl Lane {
    /// Single messages.
    pub const SINGLE: Self = Self(0);
    /// All lanes, the most urgent first.
    pub const ALL: [Self; 1] = [Self::SINGLE];
}

/// A lease of a row of the queue: its key, and the fencing token (`owner` and `attempt`) that makes
/// every change by a stale holder a no-op.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Lease {
    /// The carrier of the queue.
    pub carrier: CarrierId,
    /// The lane of the row.
    pub lane: Lane,
    /// When the message was due.
    pub due_at: Timestamp,
    /// The id of the message.
    pub message: MessageId,
    /// The account of the message.
    pub account: AccountId,
    /// The node that holds the lease.
    pub owner: NodeId,
    /// The number of leases of this row so far: with the owner, it identifies the lease.
    pub attempt: u16,
}

/// A leased message with everything needed to submit it.
#[derive(Clone, Debug)]
pub struct LeasedMessage {
    /// The lease.
    pub lease: Lease,
    /// The message to submit.
    pub message: Arc<Message>,
    /// The number of times that the carrier deferred it.
    pub tries: u16,
    /// The number of times that no response arrived.
    pub doubts: u16,
    /// True if an earlier lease expired without being released: the message may have been
    /// submitted.
    pub in_doubt: bool,
    /// The parts that the carrier has already accepted (only for messages of several parts).
    pub accepted_parts: Vec<u8>,
}

/// A lease of a webhook delivery: the key of its row, and the fencing token (`owner` and
/// `attempt`).
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct DeliveryLease {
    /// The endpoint to deliver to.
    pub endpoint: EndpointId,
    /// When the delivery was due.
    pub due_at: Timestamp,
    /// The event to deliver.
    pub event: EventId,
    /// The node that holds the lease.
    pub owner: NodeId,
    /// The number of leases of this row so far: with the owner, it identifies the lease.
    pub attempt: u16,
    /// The number of delivery attempts (POSTs) before this one.
    pub tries: u16,
}
