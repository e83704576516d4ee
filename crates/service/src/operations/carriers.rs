//! Carrier status and queues for operators.

use crate::kernel::context::Context;
use crate::kernel::error::Result;
use async_recursion::async_recursion as boxed;
use heliograph_domain::carrier::BindStatus;
use heliograph_domain::id::{CarrierId, NodeId};
use heliograph_domain::lease::Lane;
use heliograph_domain::time::Timestamp;
use heliograph_store::messaging::queue;
pub use heliograph_store::messaging::queue::LaneBacklog;
use heliograph_store::operations::bind_status;
use heliograph_store::operations::carriers;
use std::time::Duration;

/// The time without an update after which a node's status is stale.
const THERE: Duration = Duration::from_secs(60);

/// The number up to which a queue is counted, so that a long queue costs no more to show.
pub const COUNT_LIMIT: i64 = 10_000;

/// Saves the status of this node's carrier links.
#[boxed]
pub async fn save_status(cx: &Context, all: &[BindStatus]) -> Result<()> {
    let mut tx = cx.db.write().await?;
    bind_status::save(&mut tx, cx.node, all, cx.db.now()).await?;
    Ok(tx.commit().await?)
}

/// Deletes the status of this node, which serves no carriers any more or not yet.
#[boxed]
pub async fn clear_status(cx: &Context) -> Result<()> {
    let mut tx = cx.db.write().await?;
    bind_status::delete_for_node(&mut tx, cx.node).await?;
    Ok(tx.commit().await?)
}

/// A carrier that has a number in the database, and its links.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct CarrierStatus {
    /// The id.
    pub id: CarrierId,
    /// The configured name.
    pub name: String,
    /// The links of the nodes that serve it; empty when it is no longer configured anywhere.
    pub links: Vec<CarrierLink>,
}

/// The link of a node to a carrier.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct CarrierLink {
    /// The node.
    pub node: NodeId,
    /// The status.
    pub status: BindStatus,
    /// The time when the status was saved.
    pub at: Timestamp,
    /// True if the node has stopped updating the status.
    pub stale: bool,
}

/// Returns all carriers by name, with their links.
#[boxed]
pub async fn all(cx: &Context) -> Result<Vec<CarrierStatus>> {
    let mut conn = cx.db.read().await?;
    let mut all = named(carriers::list(&mut conn).await?);
    let now = cx.db.now();
    for (node, status, at) in bind_status::list(&mut conn).await? {
        if let Some(carrier) = all.iter_mut().find(|c| c.id == status.carrier) {
            carrier.links.push(CarrierLink { node, status, at, stale: now.since(at) > THERE });
        }
    }
    Ok(all)
}

fn named(all: Vec<(CarrierId, String)>) -> Vec<CarrierStatus> {
    let carrier = |(id, name)| CarrierStatus { id, name, links: Vec::new() };
    let mut all: Vec<_> = all.into_iter().map(carrier).collect();
    all.sort_by(|a, b| a.name.cmp(&b.name));
    all
}

/// Returns the backlog of each carrier and lane. Each kind is counted up to [`COUNT_LIMIT`] plus
/// one.
#[boxed]
pub async fn queues(cx: &Context) -> Result<Vec<(String, Lane, LaneBacklog)>> {
    let mut conn = cx.db.read().await?;
    let now = cx.db.now();
    let mut queues = Vec::new();
    for CarrierStatus { id, name, .. } in named(carriers::list(&mut conn).await?) {
        for lane in Lane::ALL {
            let waiting = queue::backlog(&mut conn, (id, lane), now, COUNT_LIMIT + 1).await?;
            queues.push((name.clone(), lane, waiting));
        }
    }
    Ok(queues)
}
