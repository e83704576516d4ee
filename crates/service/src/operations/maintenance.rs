//! Periodic maintenance: expiry and deletion of outdated rows.

use crate::kernel::commands::command::Command;
use crate::kernel::commands::expire::Expire;
use crate::kernel::commands::progress::{InboundUpdate, KeywordReply, Progress, RecordProgress};
use crate::kernel::context::Context;
use crate::kernel::writer::Writer;
use crate::messaging::keywords::ANSWER_AGAIN;
use crate::messaging::progress;
use crate::operations::stats;
use async_recursion::async_recursion as boxed;
use heliograph_domain::id::EventId;
use heliograph_domain::time::Timestamp;
use heliograph_store::identity::accounts;
use heliograph_store::messaging::carrier_refs;
use heliograph_store::messaging::inbound_parts;
use heliograph_store::messaging::keyword_replies;
use heliograph_store::messaging::queue;
use heliograph_store::operations::bind_status;
use heliograph_store::webhooks::attempts;
use heliograph_store::webhooks::deliveries;
use heliograph_store::webhooks::endpoints;
use heliograph_store::webhooks::events;
use heliograph_store::{StoreError, StoreResult, idempotency};
use std::time::Duration;
use tokio::sync::oneshot;

/// The time after a message's validity for which its receipt may still come.
const RECEIPT: Duration = Duration::from_secs(24 * 3_600);
/// The number of messages expired in one transaction.
const BATCH: i64 = 500;

/// The largest number of receipts retried at once.
const AGAIN: i64 = 5_000;

/// The number of events deleted in one transaction.
const FORGET: i64 = 2_000;

/// The time to wait for the missing parts of an inbound message.
const PARTS: Duration = Duration::from_secs(24 * 3_600);

/// The time for which operators see a node that stopped reporting.
const NODE: Duration = Duration::from_secs(24 * 3_600);

/// The lifetime of an idempotency key.
const IDEMPOTENCY: Duration = Duration::from_secs(24 * 3_600);
/// The time for which a receipt waits for its submit response.
const EARLY_RECEIPT: Duration = Duration::from_secs(72 * 3_600);

/// Deletes expired endpoints: those of runs of `heliograph listen` that were killed.
#[boxed]
pub async fn delete_expired_endpoints(cx: &Context) -> StoreResult<()> {
    let now = cx.db.now();
    if endpoints::expired(&mut cx.db.read().await?, now).await?.is_empty() {
        return Ok(());
    }
    let mut tx = cx.db.write().await?;
    for endpoint in endpoints::expired(&mut tx, now).await? {
        // The endpoint first, as in reports: different lock orders of two nodes would deadlock.
        endpoints::delete(&mut tx, endpoint).await?;
        deliveries::delete_for_endpoint(&mut tx, endpoint).await?;
    }
    tx.commit().await
}

/// Deletes rows that have outlived their use: idempotency keys, unmatched receipts, old events and
/// statistics.
#[boxed]
pub async fn delete_outdated(cx: &Context) -> StoreResult<()> {
    let now = cx.db.now();
    let mut tx = cx.db.write().await?;
    let keys = idempotency::delete_older_than(&mut tx, now.before(IDEMPOTENCY)).await?;
    let receipts = carrier_refs::delete_unmatched(&mut tx, now.before(EARLY_RECEIPT)).await?;
    keyword_replies::delete_until(&mut tx, now.before(ANSWER_AGAIN)).await?;
    inbound_parts::delete_assembled(&mut tx, now.before(PARTS)).await?;
    bind_status::delete_older_than(&mut tx, now.before(NODE)).await?;
    tx.commit().await?;
    forget(cx, now).await?;
    if keys + receipts > 0 {
        tracing::info!(
            idempotency_keys = keys,
            orphan_receipts = receipts,
            "deleted outdated rows"
        );
    }
    Ok(())
}

/// Deletes old events and attempts, and folds statistics of past days, account by account.
async fn forget(cx: &Context, now: Timestamp) -> StoreResult<()> {
    let all = accounts::all(&mut cx.db.read().await?).await?;
    let oldest = EventId::first_at(now.before(cx.settings().webhook_retention));
    for account in all {
        loop {
            // In small steps, since other writers wait meanwhile.
            let mut tx = cx.db.write().await?;
            let attempts = attempts::delete_old(&mut tx, account.id, oldest, FORGET).await?;
            let events = events::delete_old(&mut tx, account.id, oldest, FORGET).await?;
            stats::tidy(&mut tx, account.id, now).await?;
            tx.commit().await?;
            if attempts + events == 0 {
                break;
            }
        }
    }
    let mut tx = cx.db.write().await?;
    deliveries::delete_orphans(&mut tx, oldest).await?;
    tx.commit().await
}

/// Fails queued messages whose validity has ended while no carrier could accept them. (Claimed
/// messages are checked when they are claimed.)
#[boxed]
pub async fn expire_messages(cx: &Context, writer: &Writer) -> StoreResult<()> {
    loop {
        let mut conn = cx.db.read().await?;
        let found = queue::expired(&mut conn, cx.db.now(), BATCH).await?;
        drop(conn);
        if found.is_empty() {
            return Ok(());
        }
        let (reply, done) = oneshot::channel();
        writer
            .send(Command::Expire(Expire { entries: found, reply }))
            .await
            .map_err(|_| closing())?;
        done.await.map_err(|_| closing())??;
    }
}

/// Fails messages without a receipt a day after their validity, as if the carrier had reported it.
#[boxed]
pub async fn time_out_receipts(cx: &Context, writer: &Writer) -> StoreResult<()> {
    loop {
        let mut conn = cx.db.read().await?;
        let limit = cx.db.now().before(RECEIPT);
        let overdue = carrier_refs::overdue(&mut conn, limit, BATCH).await?;
        drop(conn);
        if overdue.is_empty() {
            return Ok(());
        }
        submit(writer, Progress { overdue, ..Progress::default() }).await?;
    }
}

/// Matches receipts again that came before their submit response: where the response spells the id
/// differently and another node recorded it at the same time, the two did not match.
#[boxed]
pub async fn match_early_receipts(cx: &Context, writer: &Writer) -> StoreResult<()> {
    let mut conn = cx.db.read().await?;
    let since = cx.db.now().before(progress::EARLY);
    let early = carrier_refs::unmatched_receipts(&mut conn, since, AGAIN).await?;
    drop(conn);
    if early.is_empty() {
        Ok(())
    } else {
        submit(writer, Progress { receipts: early, ..Progress::default() }).await.map(drop)
    }
}

/// Completes inbound messages without their missing parts after a day, and those whose parts
/// arrived on several nodes at once. Returns the keyword replies to send.
#[boxed]
pub async fn finish_inbound(cx: &Context, writer: &Writer) -> StoreResult<Vec<KeywordReply>> {
    let mut conn = cx.db.read().await?;
    let groups = inbound_parts::overdue(&mut conn, cx.db.now().before(PARTS), BATCH).await?;
    drop(conn);
    if groups.is_empty() {
        return Ok(Vec::new());
    }
    let inbound = groups.into_iter().map(InboundUpdate::Overdue).collect();
    submit(writer, Progress { inbound, ..Progress::default() }).await
}

/// Sends progress to the writer as if it came from a carrier.
async fn submit(writer: &Writer, progress: Progress) -> StoreResult<Vec<KeywordReply>> {
    let (reply, done) = oneshot::channel();
    writer
        .send(Command::RecordProgress(RecordProgress { progress, reply }))
        .await
        .map_err(|_| closing())?;
    done.await.map_err(|_| closing())?.map_err(|(e, _)| e)
}

fn closing() -> StoreError {
    StoreError::Unavailable("shutting down".to_owned())
}
