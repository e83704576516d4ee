//! Rate limits over several nodes: this node's share of the limit of each API key.

use heliograph_engine::{PeriodicTask, Worker};
use heliograph_service::kernel::context::Context;
use heliograph_service::kernel::error::Result;
use heliograph_service::operations::nodes;
use std::time::Duration;
use tokio::sync::watch;

/// The interval at which a node announces itself and counts the other nodes.
const PERIOD: Duration = Duration::from_secs(5);

/// This node's share of the limit.
struct RateLimitShare {
    context: Context,
    limit: u32,
    share: watch::Sender<u32>,
}

/// Keeps `share` at `limit` divided by the number of nodes that serve requests, rounded up, until
/// `stop` turns true.
pub(crate) async fn run(
    context: Context,
    limit: u32,
    share: watch::Sender<u32>,
    stop: watch::Receiver<bool>,
) {
    // Otherwise there are no other nodes, and the share stays at the limit.
    if limit > 0 && context.db.is_shared() {
        let mut task = RateLimitShare { context, limit, share };
        Worker { interval: PERIOD, stop }.run(&mut task).await;
    }
}

impl PeriodicTask for RateLimitShare {
    const FAILURE: &'static str = "failed to count the nodes that serve requests";

    async fn turn(&mut self) -> Result<()> {
        let nodes = nodes::mark_serving(&self.context).await?;
        self.share.send_replace(self.limit.div_ceil(nodes));
        Ok(())
    }
}

/// Releases this node's share at shutdown.
pub(crate) async fn leave(context: &Context, limit: u32) {
    if limit > 0
        && context.db.is_shared()
        && let Err(error) = nodes::mark_not_serving(context).await
    {
        tracing::warn!(%error, "failed to release this node's share of the rate limits");
    }
}
