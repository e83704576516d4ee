//! Nodes: who signs leases, and what a node does when it starts.

use crate::context::Context;
use crate::error;
use crate::replies;
use heliograph_domain::carrier;
use heliograph_domain::id::{CarrierId, NodeId};
use heliograph_domain::time::Timestamp;
use heliograph_store::{
    Db, Result, accounts, carriers, deliveries, inbound_messages, nodes, numbers, queue,
};
use std::time::Duration;
use uuid::Uuid;

/// Takes up work under this identity: frees the leases of the node's former self.
///
/// # Errors
/// As any write.
pub async fn start(db: &Db, identity: Uuid) -> Result<NodeId> {
    let mut tx = db.write().await?;
    let node = nodes::number(&mut tx, identity, db.now()).await?;
    let freed = queue::free(&mut tx, node).await?;
    let webhooks = deliveries::free(&mut tx, node).await?;
    tx.commit().await?;
    if freed + webhooks > 0 {
        tracing::warn!(
            messages = freed,
            webhooks,
            "the last run of this node ended without giving its work back"
        );
    }
    Ok(node)
}

/// The numbers of these carriers, in the same order, and that of the simulated one.
///
/// # Errors
/// As any write.
pub async fn carriers(db: &Db, names: &[String]) -> Result<(Vec<CarrierId>, CarrierId)> {
    let mut tx = db.write().await?;
    let mut numbers = Vec::with_capacity(names.len());
    for name in names {
        numbers.push(carriers::number(&mut tx, name).await?);
    }
    let simulated = carriers::number(&mut tx, carrier::SIMULATED).await?;
    tx.commit().await?;
    Ok((numbers, simulated))
}

/// How long after it last said so a node counts as one that takes requests.
const ASKED: Duration = Duration::from_secs(15);

/// Says that this node takes requests; how many nodes do, this one included.
///
/// # Errors
/// As any write.
pub async fn take_requests(cx: &Context) -> Result<u32> {
    let now = cx.db.now();
    let mut tx = cx.db.write().await?;
    let since = Timestamp(now.millis() - i64::try_from(ASKED.as_millis()).unwrap_or(i64::MAX));
    let all = nodes::asked(&mut tx, cx.node, (now, since)).await?;
    tx.commit().await?;
    Ok(u32::try_from(all).unwrap_or(u32::MAX).max(1))
}

/// Says that this node takes no requests any more: the others share what it had.
///
/// # Errors
/// As any write.
pub async fn leave(cx: &Context) -> Result<()> {
    let mut tx = cx.db.write().await?;
    nodes::asked(&mut tx, cx.node, (Timestamp(0), Timestamp(0))).await?;
    tx.commit().await
}

/// By how many milliseconds the database's clock is ahead of this node's, measured now. An error
/// means that the database does not answer.
///
/// # Errors
/// As any read.
pub async fn clock_offset(cx: &Context) -> Result<i64> {
    cx.db.ping().await?;
    cx.db.measure_offset().await
}

/// Gives numbers to the accounts of these people, and with a number what was written to it before: also who said
/// STOP to it.
///
/// # Errors
/// [`error::Error::Conflict`] with the address of somebody who has no account.
pub async fn assign_numbers(cx: &Context, all: &[(String, String)]) -> error::Result<()> {
    let mut tx = cx.db.write().await?;
    for (number, email) in all {
        let account = accounts::by_email(&mut tx, email).await?;
        let account = account.ok_or_else(|| error::Error::Conflict(email.clone()))?.id;
        let assigned = numbers::assign(&mut tx, number, account).await?;
        // Each time: another node may have kept one while this one assigned the number.
        replies::catch_up(cx, &mut tx, number, account).await?;
        let messages = inbound_messages::adopt(&mut tx, number, account).await?;
        if assigned || messages > 0 {
            tracing::info!(number, account = account.0, messages, "number assigned");
        }
    }
    Ok(tx.commit().await?)
}
