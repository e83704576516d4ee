//! Bind status: saves the state of this node's carrier links, so that every node can show it to
//! operators.

use crate::worker::{PeriodicTask, Worker};
use heliograph_carrier::link_status::LinkStatus;
use heliograph_domain::carrier::BindStatus;
use heliograph_domain::id::CarrierId;
use heliograph_service::kernel::context::Context;
use heliograph_service::kernel::error::Result;
use heliograph_service::operations::carriers;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{Notify, watch};

/// The interval between saves while no bind changes.
const PERIOD: Duration = Duration::from_secs(5);

/// A carrier link whose status is saved.
pub(crate) struct WatchedCarrier {
    pub(crate) carrier: CarrierId,
    pub(crate) window: usize,
    pub(crate) link_status: Arc<LinkStatus>,
}

/// The status of all links of this node.
struct BindStatuses {
    context: Context,
    links: Vec<WatchedCarrier>,
    /// Notified when a bind changes.
    changed: Arc<Notify>,
}

/// Runs until `stop` turns true, then deletes the status of this node.
pub(crate) async fn run(
    context: Context,
    links: Vec<WatchedCarrier>,
    changed: Arc<Notify>,
    stop: watch::Receiver<bool>,
) {
    let mut statuses = BindStatuses { context, links, changed };
    // Rows of the previous run may name carriers that are no longer configured.
    statuses.clear().await;
    Worker { interval: PERIOD, stop }.run(&mut statuses).await;
    statuses.clear().await;
}

impl BindStatuses {
    async fn clear(&self) {
        if let Err(error) = carriers::clear_status(&self.context).await {
            tracing::warn!(%error, "failed to delete carrier status");
        }
    }
}

impl PeriodicTask for BindStatuses {
    const FAILURE: &'static str = "failed to save carrier status";

    async fn turn(&mut self) -> Result<()> {
        let all: Vec<_> = self.links.iter().map(|link| link.status(&self.context)).collect();
        carriers::save_status(&self.context, &all).await
    }

    async fn woken(&mut self) {
        self.changed.notified().await;
    }
}

impl WatchedCarrier {
    fn status(&self, context: &Context) -> BindStatus {
        let seen = self.link_status.snapshot();
        let now = context.db.now();
        BindStatus {
            carrier: self.carrier,
            // Each carrier has one transceiver bind.
            binds: 1,
            bound: seen.bound.into(),
            window: u32::try_from(self.window).unwrap_or(u32::MAX),
            unanswered: u32::try_from(seen.unanswered).unwrap_or(u32::MAX),
            throttled: seen.throttled,
            last_error: seen.last_error.map(|(why, ago)| (why, now.before(ago))),
        }
    }
}
