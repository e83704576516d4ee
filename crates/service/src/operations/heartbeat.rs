//! The heartbeats of nodes that hold leases. The leases of a node without a heartbeat are released
//! long before they end.
//!
//! A heartbeat is a counter, and a node sees by its own monotonic clock how long the counter of
//! another node has not changed: the wall clocks of nodes do not matter.

use crate::kernel::context::Context;
use crate::kernel::error::Result;
use async_recursion::async_recursion as boxed;
use heliograph_domain::id::NodeId;
use heliograph_domain::lease::{HEARTBEAT, MISSING_AFTER};
use heliograph_domain::lease_fence::LeaseFence;
use heliograph_store::StoreResult;
use heliograph_store::messaging::queue;
use heliograph_store::operations::nodes;
use heliograph_store::webhooks::deliveries;
use std::collections::HashMap;
use std::time::{Duration, Instant};

/// The heartbeat of this node, and its view of the others.
pub struct NodeHeartbeat {
    fence: LeaseFence,
    /// The value of this node's heartbeat; 0 before the first one.
    own: i64,
    /// The values of other nodes, and when each was first seen, by the monotonic clock.
    others: HashMap<NodeId, (i64, Duration)>,
    /// The time of the last look at the others.
    looked: Duration,
}

impl NodeHeartbeat {
    /// Creates the heartbeat that keeps this fence open.
    pub fn new(fence: LeaseFence) -> Self {
        Self { fence, own: 0, others: HashMap::new(), looked: Duration::ZERO }
    }

    /// Sends a heartbeat, and releases the leases of nodes that have sent none for
    /// [`MISSING_AFTER`].
    #[boxed]
    pub async fn beat(&mut self, cx: &Context) -> Result<()> {
        let sent = Instant::now();
        let mut tx = cx.db.write().await?;
        let own = nodes::beat(&mut tx, cx.node).await?;
        let all = nodes::heartbeats(&mut tx).await?;
        tx.commit().await?;
        // Another node has released the leases of this one, or it sends its first heartbeat.
        if own != self.own + 1 {
            self.fence.void_leases(Instant::now());
        }
        self.own = own;
        self.fence.record_heartbeat(sent, Instant::now());
        for (node, value) in self.missing(cx, all) {
            release(cx, node, value).await?;
        }
        Ok(())
    }

    /// Returns the nodes whose heartbeat has not changed for too long.
    fn missing(&mut self, cx: &Context, mut all: Vec<(NodeId, i64)>) -> Vec<(NodeId, i64)> {
        let now = cx.clock.monotonic();
        // This node was stopped itself, maybe together with the others: it waits for their next
        // heartbeats.
        if now.saturating_sub(self.looked) > MISSING_AFTER - HEARTBEAT {
            self.others.clear();
        }
        self.looked = now;
        all.retain(|(node, _)| *node != cx.node);
        let before = std::mem::take(&mut self.others);
        let since = |(node, value): &(NodeId, i64)| {
            let same = before.get(node).filter(|(seen, _)| seen == value);
            (*node, (*value, same.map_or(now, |(_, since)| *since)))
        };
        self.others = all.iter().map(since).collect();
        let missing = |(_, since): &(i64, Duration)| now.saturating_sub(*since) >= MISSING_AFTER;
        let found = self.others.iter().filter(|(_, seen)| missing(seen));
        found.map(|(node, (value, _))| (*node, *value)).collect()
    }

    /// Ends the heartbeat of this node, which has returned its leases.
    #[boxed]
    pub async fn end(&self, cx: &Context) -> Result<()> {
        let mut tx = cx.db.write().await?;
        nodes::end_heartbeat(&mut tx, cx.node, self.own).await?;
        Ok(tx.commit().await?)
    }
}

/// Releases the leases of a node whose heartbeat has this value. Each message may have been
/// submitted, so the next claim marks it as a possible duplicate.
async fn release(cx: &Context, node: NodeId, value: i64) -> StoreResult<()> {
    let mut tx = cx.db.write().await?;
    // Locks the row of the node: a heartbeat that comes now waits, and sees that its leases are gone.
    if !nodes::end_heartbeat(&mut tx, node, value).await? {
        return Ok(());
    }
    let messages = queue::release_for_node(&mut tx, node).await?;
    let webhooks = deliveries::release_for_node(&mut tx, node).await?;
    tx.commit().await?;
    tracing::warn!(node = node.0, messages, webhooks, "released the leases of a missing node");
    Ok(())
}
