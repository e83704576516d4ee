//! The command that leases webhook deliveries to an endpoint worker.

use crate::kernel::commands::writer_command::WriterCommand;
use heliograph_domain::event::WebhookEvent;
use heliograph_domain::id::EndpointId;
use heliograph_domain::lease::DeliveryLease;
use heliograph_store::{StoreError, StoreResult};
use std::sync::Arc;
use std::time::Instant;
use tokio::sync::{OwnedSemaphorePermit, oneshot};

/// A request of an endpoint worker for deliveries to make.
#[derive(Debug)]
pub struct ClaimDeliveries {
    /// The endpoint.
    pub endpoint: EndpointId,
    /// True to claim only urgent deliveries: tests.
    pub urgent: bool,
    /// One slot for each delivery that the worker has room for.
    pub room: OwnedSemaphorePermit,
    /// Receives the leased deliveries.
    pub reply: oneshot::Sender<StoreResult<Vec<LeasedDelivery>>>,
}

/// A leased webhook delivery on its way to the endpoint's worker, with its slot there.
#[derive(Debug)]
pub struct LeasedDelivery {
    /// The lease of the delivery.
    pub lease: DeliveryLease,
    /// The event to deliver.
    pub event: Arc<WebhookEvent>,
    /// True if the endpoint is the event's first one, whose first attempt is stored with the event.
    pub primary: bool,
    /// The start of the lease by the monotonic clock; never later than the database assumes.
    pub since: Instant,
    /// The slot; free again when this is dropped.
    pub room: OwnedSemaphorePermit,
}

impl WriterCommand for ClaimDeliveries {
    fn weight(&self) -> usize {
        self.room.num_permits()
    }

    fn refuse(self, error: &StoreError) {
        let _ = self.reply.send(Err(error.share()));
    }
}
