//! This node's share of what each API key may ask of all nodes together.

use heliograph_service::context::Context;
use heliograph_service::nodes;
use std::time::Duration;
use tokio::sync::watch;
use tokio::time::MissedTickBehavior;

/// How often nodes say that they are there, and look who else is.
const BEAT: Duration = Duration::from_secs(5);

/// Keeps `share` at an equal part of `limit`, rounded up, for each node that takes requests now.
pub(crate) async fn keep(context: Context, limit: u32, share: watch::Sender<u32>) {
    if limit == 0 || !context.db.is_shared() {
        // Nobody to share with; the sender is kept, or its receivers would be told that it is gone.
        return share.closed().await;
    }
    let mut beat = tokio::time::interval(BEAT);
    beat.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        beat.tick().await;
        match nodes::take_requests(&context).await {
            Ok(nodes) => drop(share.send_replace(limit.div_ceil(nodes))),
            Err(error) => tracing::warn!(%error, "it is not known how many nodes take requests"),
        }
    }
}

/// Leaves this node's share to the others.
pub(crate) async fn leave(context: &Context, limit: u32) {
    if limit > 0
        && context.db.is_shared()
        && let Err(error) = nodes::leave(context).await
    {
        tracing::warn!(%error, "the other nodes will notice by themselves that this one is gone");
    }
}
