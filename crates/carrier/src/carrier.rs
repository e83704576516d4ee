//! The [`Carrier`] trait, and the channels and events that connect a carrier to the engine.

use crate::link_status::LinkStatus;
use heliograph_domain::inbound::IncomingSms;
use heliograph_domain::lease_fence::LeaseFence;
use heliograph_domain::receipt::Receipt;
use heliograph_domain::submission::{Submission, SubmitOutcome};
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use tokio::sync::{mpsc, watch};

/// A connection to an SMSC that delivers messages to handsets.
pub trait Carrier: Send + 'static {
    /// Runs until `channels.stop` turns true, then drains the pending submissions and returns
    /// (graceful shutdown). Connects and reconnects by itself, and never panics on malformed input.
    fn run(self: Box<Self>, channels: CarrierChannels) -> Pin<Box<dyn Future<Output = ()> + Send>>;
}

/// The carrier's ends of the channels to the engine.
#[derive(Debug)]
pub struct CarrierChannels {
    /// Parts to submit, in order. The carrier receives only while its window has room. While it is
    /// not bound, it answers each part with [`SubmitOutcome::NotSent`] so that the lease is released.
    pub submissions: mpsc::Receiver<Submission>,
    /// Events in wire order; one batch per read from the wire.
    pub events: mpsc::Sender<Vec<CarrierEvent>>,
    /// The engine's reports on which receipts and inbound messages are committed.
    pub acks: mpsc::Receiver<Vec<Ack>>,
    /// Decides which parts may still be submitted.
    pub fence: LeaseFence,
    /// The live status of the link, written by the carrier.
    pub link_status: Arc<LinkStatus>,
    /// Turns true once, when the node shuts down.
    pub stop: watch::Receiver<bool>,
}

/// An event on the link to an SMSC.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum CarrierEvent {
    /// The carrier is bound and accepts submissions.
    Bound,
    /// The carrier is no longer bound. Contains the reason in words for the operator.
    Unbound(String),
    /// The outcome of a submission is known.
    Submitted {
        /// [`Submission::token`].
        token: u64,
        /// [`Submission::part`].
        part: u8,
        /// The outcome.
        outcome: SubmitOutcome,
    },
    /// A final delivery receipt arrived. The carrier acknowledges it on the wire only after its
    /// [`Ack`].
    Receipt {
        /// The handle to return in the [`Ack`].
        handle: DeliverSmHandle,
        /// The decoded receipt.
        receipt: Receipt,
    },
    /// An inbound message arrived. The carrier acknowledges it on the wire only after its [`Ack`].
    Message {
        /// The handle to return in the [`Ack`].
        handle: DeliverSmHandle,
        /// The decoded message, or one part of it.
        incoming: IncomingSms,
    },
}

/// The identity of one unacknowledged deliver_sm of one session.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct DeliverSmHandle {
    /// The number of the carrier's session, counted from 1. Acks for earlier sessions are dropped.
    pub session: u64,
    /// The sequence_number of the PDU.
    pub sequence: u32,
}

/// The engine's answer to a [`CarrierEvent::Receipt`] or a [`CarrierEvent::Message`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Ack {
    /// The handle of the event.
    pub handle: DeliverSmHandle,
    /// The result, which decides the command_status of the response.
    pub result: AckResult,
}

/// The result of an event in an [`Ack`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum AckResult {
    /// The event is committed.
    Committed,
    /// The event could not be committed now: the SMSC sends it again later (ESME_RX_T_APPN).
    Retry,
    /// The event can never be committed: the SMSC does not send it again (ESME_RX_P_APPN).
    Rejected,
}
