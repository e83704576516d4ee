//! The janitor: what time alone makes due.

use crate::context::Context;
use crate::replies::{Confirmation, Heard};
use crate::stats;
use crate::writer::{Command, Progress, Writer};
use heliograph_domain::id::EventId;
use heliograph_domain::message::{Failure, FailureCode};
use heliograph_domain::receipt::{Receipt, Verdict};
use heliograph_domain::time::Timestamp;
use heliograph_store::{
    Error, Result, accounts, attempts, bind_status, carrier_refs, deliveries, endpoints, events,
    idempotency, inbound_parts, queue,
};
use std::time::Duration;
use tokio::sync::oneshot;

/// How long after a message's validity its receipt may still come.
const RECEIPT: Duration = Duration::from_secs(24 * 3_600);
/// Messages that one transaction ends.
const BATCH: i64 = 500;

/// For how long after it came a receipt is tried again under the other spellings of its id. A submit response
/// comes within a minute or never.
const SPELLINGS: Duration = Duration::from_secs(150);
/// Receipts that are tried again at once, at most.
const AGAIN: i64 = 5_000;

/// Events that one transaction forgets.
const FORGET: i64 = 2_000;

/// How long the parts of an incoming message are waited for.
const PARTS: Duration = Duration::from_secs(24 * 3_600);

/// How long a node that has gone without a word is shown to operators.
const NODE: Duration = Duration::from_secs(24 * 3_600);

/// How long an idempotency key holds.
const IDEMPOTENCY: Duration = Duration::from_secs(24 * 3_600);
/// How long a receipt waits for its submit response.
const EARLY_RECEIPT: Duration = Duration::from_secs(72 * 3_600);

/// Drops what has outlived its use.
///
/// # Errors
/// As any write.
pub async fn sweep(cx: &Context) -> Result<()> {
    let now = cx.db.now();
    let mut tx = cx.db.write().await?;
    let keys = idempotency::drop_old(&mut tx, now.before(IDEMPOTENCY)).await?;
    let receipts = carrier_refs::drop_early(&mut tx, now.before(EARLY_RECEIPT)).await?;
    inbound_parts::drop_done(&mut tx, now.before(PARTS)).await?;
    bind_status::drop_old(&mut tx, now.before(NODE)).await?;
    for endpoint in endpoints::expired(&mut tx, now).await? {
        deliveries::drop_for(&mut tx, endpoint).await?;
        endpoints::remove(&mut tx, endpoint).await?;
    }
    tx.commit().await?;
    forget(cx, now).await?;
    if keys + receipts > 0 {
        tracing::info!(idempotency_keys = keys, orphan_receipts = receipts, "swept");
    }
    Ok(())
}

/// Drops what was told and counted long ago, and adds up the days gone by, account by account.
async fn forget(cx: &Context, now: Timestamp) -> Result<()> {
    let all = accounts::all(&mut cx.db.read().await?).await?;
    let oldest = EventId::first_at(now.before(cx.settings().webhook_retention));
    for account in all {
        loop {
            // Few at a time: whoever else writes waits for this.
            let mut tx = cx.db.write().await?;
            let attempts = attempts::drop_old(&mut tx, account.id, oldest, FORGET).await?;
            let events = events::drop_old(&mut tx, account.id, oldest, FORGET).await?;
            stats::tidy(&mut tx, account.id, now).await?;
            tx.commit().await?;
            if attempts + events == 0 {
                break;
            }
        }
    }
    let mut tx = cx.db.write().await?;
    deliveries::drop_orphans(&mut tx, oldest).await?;
    tx.commit().await
}

/// Fails queued messages whose validity has ended while no carrier could take them. (Those that are
/// claimed are looked at then.)
///
/// # Errors
/// As any write.
pub async fn expire(cx: &Context, writer: &Writer) -> Result<()> {
    loop {
        let mut conn = cx.db.read().await?;
        let found = queue::expired(&mut conn, cx.db.now(), BATCH).await?;
        drop(conn);
        if found.is_empty() {
            return Ok(());
        }
        let (reply, done) = oneshot::channel();
        writer.send(Command::Expire(found, reply)).await.map_err(|_| closing())?;
        done.await.map_err(|_| closing())??;
    }
}

/// Fails messages whose receipt did not come within a day after their validity, as if the carrier
/// had said so.
///
/// # Errors
/// As any write.
pub async fn time_out_receipts(cx: &Context, writer: &Writer) -> Result<()> {
    loop {
        let mut conn = cx.db.read().await?;
        let limit = cx.db.now().before(RECEIPT);
        let overdue = carrier_refs::overdue(&mut conn, limit, BATCH).await?;
        drop(conn);
        if overdue.is_empty() {
            return Ok(());
        }
        let silence = Verdict::Failed(Failure::plain(FailureCode::ReceiptTimeout));
        let told = overdue.into_iter().map(|(carrier, smsc_id, recipient)| {
            (carrier, Receipt { smsc_id, recipient, verdict: silence.clone() })
        });
        hear(writer, Progress { receipts: told.collect(), ..Progress::default() }).await?;
    }
}

/// Lets receipts that came before their submit response look again for their part: where the response spells
/// the id in another way, the two did not meet.
///
/// # Errors
/// As any write.
pub async fn match_early_receipts(cx: &Context, writer: &Writer) -> Result<()> {
    let mut conn = cx.db.read().await?;
    let since = cx.db.now().before(SPELLINGS);
    let early = carrier_refs::early(&mut conn, since, AGAIN).await?;
    drop(conn);
    if early.is_empty() {
        Ok(())
    } else {
        hear(writer, Progress { receipts: early, ..Progress::default() }).await.map(drop)
    }
}

/// Lets messages of which parts have not come go on without them after a day, and completes those whose parts
/// came over several nodes at once; what people are to be answered.
///
/// # Errors
/// As any write.
pub async fn finish_inbound(cx: &Context, writer: &Writer) -> Result<Vec<Confirmation>> {
    let mut conn = cx.db.read().await?;
    let groups = inbound_parts::overdue(&mut conn, cx.db.now().before(PARTS), BATCH).await?;
    drop(conn);
    if groups.is_empty() {
        return Ok(Vec::new());
    }
    let heard = groups.into_iter().map(Heard::Overdue).collect();
    hear(writer, Progress { heard, ..Progress::default() }).await
}

/// Has news taken in as if it had come from a carrier.
async fn hear(writer: &Writer, news: Progress) -> Result<Vec<Confirmation>> {
    let (reply, done) = oneshot::channel();
    writer.send(Command::Progress(news, reply)).await.map_err(|_| closing())?;
    done.await.map_err(|_| closing())?.map_err(|(e, _)| e)
}

fn closing() -> Error {
    Error::Unavailable("shutting down".to_owned())
}
