//! Nodes: the owners of leases, and their start and shutdown.

use crate::kernel::commands::check_commit::CheckCommit;
use crate::kernel::commands::command::Command;
use crate::kernel::context::Context;
use crate::kernel::writer::Writer;
use async_recursion::async_recursion as boxed;
use heliograph_domain::carrier;
use heliograph_domain::id::{CarrierId, NodeId};
use heliograph_domain::time::Timestamp;
use heliograph_store::messaging::queue;
use heliograph_store::operations::carriers;
use heliograph_store::operations::nodes;
use heliograph_store::webhooks::deliveries;
use heliograph_store::{Db, StoreError, StoreResult};
use std::time::Duration;
use tokio::sync::oneshot;
use uuid::Uuid;

/// Registers a node under its identity and releases the leases of its previous run.
#[boxed]
pub async fn start(db: &Db, identity: Uuid) -> StoreResult<NodeId> {
    let mut tx = db.write().await?;
    let node = nodes::get_or_create(&mut tx, identity, db.now()).await?;
    let freed = queue::release_for_node(&mut tx, node).await?;
    let webhooks = deliveries::release_for_node(&mut tx, node).await?;
    tx.commit().await?;
    if freed + webhooks > 0 {
        tracing::warn!(
            messages = freed,
            webhooks,
            "released leases of the previous run of this node"
        );
    }
    Ok(node)
}

/// Returns the ids of these carriers in the same order, and the id of the simulated carrier.
#[boxed]
pub async fn carrier_ids(db: &Db, names: &[String]) -> StoreResult<(Vec<CarrierId>, CarrierId)> {
    let mut tx = db.write().await?;
    let mut numbers = Vec::with_capacity(names.len());
    for name in names {
        numbers.push(carriers::get_or_create(&mut tx, name).await?);
    }
    let simulated = carriers::get_or_create(&mut tx, carrier::SIMULATED).await?;
    tx.commit().await?;
    Ok((numbers, simulated))
}

/// The time after its last report for which a node counts as serving.
const ASKED: Duration = Duration::from_secs(15);

/// Marks this node as serving requests, and returns the number of serving nodes including this one.
#[boxed]
pub async fn mark_serving(cx: &Context) -> StoreResult<u32> {
    let now = cx.db.now();
    let mut tx = cx.db.write().await?;
    let since = Timestamp(now.millis() - i64::try_from(ASKED.as_millis()).unwrap_or(i64::MAX));
    let all = nodes::record_serving(&mut tx, cx.node, (now, since)).await?;
    tx.commit().await?;
    Ok(u32::try_from(all).unwrap_or(u32::MAX).max(1))
}

/// Marks this node as no longer serving; the other nodes share its rate limits.
#[boxed]
pub async fn mark_not_serving(cx: &Context) -> StoreResult<()> {
    let mut tx = cx.db.write().await?;
    nodes::record_serving(&mut tx, cx.node, (Timestamp(0), Timestamp(0))).await?;
    tx.commit().await
}

/// Measures by how many milliseconds the database clock is ahead of this node's clock. An error
/// means that the database does not answer.
#[boxed]
pub async fn clock_offset(cx: &Context) -> StoreResult<i64> {
    cx.db.ping().await?;
    cx.db.measure_offset().await
}

/// Commits a write without effect on messages, to see whether this node can commit.
///
/// # Errors
/// Those of the commit, and [`StoreError::Unavailable`] when the queue of the writer is full.
#[boxed]
pub async fn check_commit(writer: &Writer) -> StoreResult<()> {
    let (reply, committed) = oneshot::channel();
    writer.try_send(Command::CheckCommit(CheckCommit { reply }))?;
    let ended = |_| StoreError::Unavailable("shutting down".to_owned());
    committed.await.map_err(ended).flatten()
}
