//! The janitor: what time alone makes due.

use crate::context::Context;
use crate::writer::{Command, Writer};
use heliograph_store::{Error, Result, carrier_refs, idempotency, queue};
use std::time::Duration;
use tokio::sync::oneshot;

/// Messages that one transaction expires.
const EXPIRED: i64 = 500;

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
    let ago = |d: Duration| {
        heliograph_domain::time::Timestamp(now.millis() - i64::try_from(d.as_millis()).unwrap_or(0))
    };
    let mut tx = cx.db.write().await?;
    let keys = idempotency::drop_old(&mut tx, ago(IDEMPOTENCY)).await?;
    let receipts = carrier_refs::drop_early(&mut tx, ago(EARLY_RECEIPT)).await?;
    tx.commit().await?;
    if keys + receipts > 0 {
        tracing::info!(idempotency_keys = keys, orphan_receipts = receipts, "swept");
    }
    Ok(())
}

/// Fails queued messages whose validity has ended while no carrier could take them. (Those that are
/// claimed are looked at then.)
///
/// # Errors
/// As any write.
pub async fn expire(cx: &Context, writer: &Writer) -> Result<()> {
    loop {
        let mut conn = cx.db.read().await?;
        let found = queue::expired(&mut conn, cx.db.now(), EXPIRED).await?;
        drop(conn);
        if found.is_empty() {
            return Ok(());
        }
        let (reply, done) = oneshot::channel();
        let closing = || Error::Unavailable("shutting down".to_owned());
        writer.send(Command::Expire(found, reply)).await.map_err(|_| closing())?;
        done.await.map_err(|_| closing())??;
    }
}
