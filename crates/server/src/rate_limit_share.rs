//! The limits of accounts on a node: how many nodes share the rate limits, and what the operator has
//! changed.

use heliograph_engine::{PeriodicTask, Worker};
use heliograph_service::kernel::account_limits;
use heliograph_service::kernel::context::Context;
use heliograph_service::kernel::error::Result;
use heliograph_service::operations::nodes;
use std::time::Duration;
use tokio::sync::watch;

/// The interval at which a node reads the limits, announces itself and counts the other nodes.
const PERIOD: Duration = Duration::from_secs(5);

/// This node's share of the limits.
struct RateLimitShare {
    context: Context,
    nodes: watch::Sender<u32>,
}

/// Keeps the limits of accounts current, and `nodes` at the number of nodes that serve requests,
/// until `stop` turns true.
pub(crate) async fn run(context: Context, nodes: watch::Sender<u32>, stop: watch::Receiver<bool>) {
    let mut task = RateLimitShare { context, nodes };
    Worker { interval: PERIOD, stop }.run(&mut task).await;
}

impl PeriodicTask for RateLimitShare {
    const FAILURE: &'static str = "failed to read the limits of accounts";

    async fn turn(&mut self) -> Result<()> {
        account_limits::refresh(&self.context.db, &self.context.limits).await?;
        // Otherwise there are no other nodes.
        if self.context.db.is_shared() {
            self.nodes.send_replace(nodes::mark_serving(&self.context).await?);
        }
        Ok(())
    }
}

/// Releases this node's share at shutdown.
pub(crate) async fn leave(context: &Context) {
    if context.db.is_shared()
        && let Err(error) = nodes::mark_not_serving(context).await
    {
        tracing::warn!(%error, "failed to release this node's share of the rate limits");
    }
}
