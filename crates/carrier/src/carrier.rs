//! The one trait behind which every carrier stands, and the line that joins it to the engine.

use crate::condition::Condition;
use heliograph_domain::inbound::Incoming;
use heliograph_domain::receipt::Receipt;
use heliograph_domain::submission::{Outcome, Submission};
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use tokio::sync::{mpsc, watch};

/// A road to the handsets.
pub trait Carrier: Send + 'static {
    /// Works until `line.stop` turns true, then drains what is in flight and ends. Connects and
    /// reconnects by itself; never panics on what the other side sends.
    fn run(self: Box<Self>, line: Line) -> Pin<Box<dyn Future<Output = ()> + Send>>;
}

/// The carrier's end of the line. The engine holds the other ends.
#[derive(Debug)]
pub struct Line {
    /// Parts to submit, in order. Taken off only while the window has room. While the carrier is
    /// not bound, each is answered with [`Outcome::NotSent`] so that its lease is given back.
    pub submissions: mpsc::Receiver<Submission>,
    /// What happened, in wire order; one batch per read from the wire.
    pub events: mpsc::Sender<Vec<Event>>,
    /// Which receipts and messages are committed (or could not be).
    pub acks: mpsc::Receiver<Vec<Ack>>,
    /// Where the carrier tells how the line is.
    pub condition: Arc<Condition>,
    /// Turns true once, when the node shuts down.
    pub stop: watch::Receiver<bool>,
}

/// Something that happened on the wire.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Event {
    /// A bind is up: submissions flow.
    Bound,
    /// No bind is up any more; why, in words for the operator.
    Unbound(String),
    /// What became of a submission.
    Submitted {
        /// [`Submission::token`].
        token: u64,
        /// [`Submission::part`].
        part: u8,
        /// The verdict.
        outcome: Outcome,
    },
    /// A final delivery receipt. The carrier acknowledges it on the wire only after its [`Ack`].
    Receipt {
        /// To be sent back in an [`Ack`].
        handle: Handle,
        /// What it says.
        receipt: Receipt,
    },
    /// Something that a person sent. The carrier acknowledges it on the wire only after its
    /// [`Ack`].
    Message {
        /// To be sent back in an [`Ack`].
        handle: Handle,
        /// What it says, and to whom.
        incoming: Incoming,
    },
}

/// Names one unacknowledged PDU of one session.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Handle {
    /// Which session of this carrier, counted from 1: an ack for an earlier one is dropped.
    pub session: u64,
    /// The PDU's sequence_number.
    pub sequence: u32,
}

/// The engine's answer to an [`Event::Receipt`] or an [`Event::Message`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Ack {
    /// The handle of the event.
    pub handle: Handle,
    /// True when it is committed; false asks the carrier to send it again later (ESME_RX_T_APPN).
    pub committed: bool,
}
