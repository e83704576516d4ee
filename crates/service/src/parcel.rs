//! Parcels: webhooks on their way between the writer and whoever delivers them.

use heliograph_domain::event::Event;
use heliograph_domain::id::{AccountId, EndpointId};
use heliograph_domain::lease::DeliveryLease;
use heliograph_domain::time::Timestamp;
use heliograph_store::Result;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::{OwnedSemaphorePermit, oneshot};

/// A leased delivery on its way to the endpoint's courier, with its place there.
#[derive(Debug)]
pub struct Parcel {
    /// The right to deliver it.
    pub lease: DeliveryLease,
    /// What to tell.
    pub event: Arc<Event>,
    /// Whether the endpoint is the event's first, whose first attempt stands with the event itself.
    pub primary: bool,
    /// When the lease began, by the monotonic clock; never later than the database thinks.
    pub since: Instant,
    /// Its place; free again when this is dropped.
    pub room: OwnedSemaphorePermit,
}

/// A courier that has room.
#[derive(Debug)]
pub struct Collect {
    /// For whom it delivers.
    pub endpoint: EndpointId,
    /// Only what is to be told before everything else: tests.
    pub urgent: bool,
    /// One for each parcel that it has room for.
    pub room: OwnedSemaphorePermit,
    /// Given what was found.
    pub reply: oneshot::Sender<Result<Vec<Parcel>>>,
}

/// What became of parcels of one endpoint.
#[derive(Debug)]
pub struct Report {
    /// Who was to be told.
    pub endpoint: EndpointId,
    /// One for each parcel.
    pub attempts: Vec<Attempted>,
}

/// Told that a report is durable, or given it back.
pub type ReportReply = oneshot::Sender<std::result::Result<(), (heliograph_store::Error, Report)>>;

/// What became of one parcel.
#[derive(Debug)]
pub struct Attempted {
    /// The right to say so.
    pub lease: DeliveryLease,
    /// Whose event it is.
    pub account: AccountId,
    /// As in the parcel.
    pub primary: bool,
    /// When the attempt ended.
    pub at: Timestamp,
    /// How long it took.
    pub took: Duration,
    /// How it ended.
    pub verdict: Verdict,
}

/// How an attempt ended.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Verdict {
    /// There was none: the lease goes back.
    NotTried,
    /// With success.
    Taken {
        /// The HTTP status.
        status: u16,
        /// How the answer's body began.
        body: Option<String>,
    },
    /// Without.
    Failed {
        /// What came back.
        failure: Failure,
        /// How much later to try again; `None` when this was the last time.
        again: Option<Duration>,
        /// The endpoint said that it is gone for good.
        gone: bool,
    },
}

/// What went wrong.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Failure {
    /// The HTTP status, when there was one.
    pub status: Option<u16>,
    /// In words.
    pub detail: String,
    /// How the answer's body began.
    pub body: Option<String>,
}
