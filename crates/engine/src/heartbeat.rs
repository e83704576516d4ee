//! The heartbeat of this node, by which other nodes see that it still holds its leases, and the
//! release of the leases of nodes that have none.

use crate::worker::{PeriodicTask, Worker};
use heliograph_domain::lease::HEARTBEAT;
use heliograph_domain::lease_fence::LeaseFence;
use heliograph_service::kernel::context::Context;
use heliograph_service::kernel::error::Result;
use heliograph_service::operations::heartbeat::NodeHeartbeat;
use tokio::sync::watch;

/// The heartbeat of this node.
pub(crate) struct Heartbeat {
    context: Context,
    heartbeat: NodeHeartbeat,
}

impl Heartbeat {
    /// Sends the first heartbeat, so that this node can submit at once. Also returns the fence that
    /// the heartbeat keeps open.
    pub(crate) async fn begin(context: &Context) -> (Self, LeaseFence) {
        let shared = context.db.is_shared();
        let fence = if shared {
            LeaseFence::closed(std::time::Instant::now())
        } else {
            LeaseFence::open(std::time::Instant::now())
        };
        let heartbeat = NodeHeartbeat::new(fence.clone());
        let mut this = Self { context: context.clone(), heartbeat };
        if let Err(error) = this.turn().await {
            tracing::warn!(%error, "{}", Self::FAILURE);
        }
        (this, fence)
    }

    /// Runs until `stop` turns true. A database that no other node shares needs no heartbeat.
    pub(crate) async fn run(mut self, stop: watch::Receiver<bool>) {
        if !self.context.db.is_shared() {
            return;
        }
        Worker { interval: HEARTBEAT, stop }.run(&mut self).await;
        if let Err(error) = self.heartbeat.end(&self.context).await {
            tracing::warn!(%error, "failed to end the heartbeat of this node");
        }
    }
}

impl PeriodicTask for Heartbeat {
    const FAILURE: &'static str = "failed to send the heartbeat of this node";

    async fn turn(&mut self) -> Result<()> {
        match self.context.db.is_shared() {
            true => self.heartbeat.beat(&self.context).await,
            false => Ok(()),
        }
    }
}
