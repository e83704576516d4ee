//! Housekeeping: what time alone makes due, on a slow beat.

use heliograph_service::context::Context;
use heliograph_service::writer::Writer;
use heliograph_service::{dispatch, janitor, messages, nodes, sessions};
use std::time::Duration;
use tokio::sync::watch;

const BEAT: Duration = Duration::from_secs(10);
/// Beats between counts of the queue: half a minute.
const MEASURE: u64 = 3;
/// Beats between looks for expired messages and for receipts that came early: a minute.
const MINUTE: u64 = 6;
/// Beats between sweeps: an hour.
const SWEEP: u64 = 360;

/// Runs until `stop` turns true.
pub(crate) async fn run(context: Context, writer: Writer, mut stop: watch::Receiver<bool>) {
    let mut beat = tokio::time::interval(BEAT);
    let mut n: u64 = 0;
    loop {
        tokio::select! {
            _ = beat.tick() => {}
            _ = stop.wait_for(|stop| *stop) => return,
        }
        if let Err(e) = turn(&context, &writer, n).await {
            tracing::warn!(error = %e, "housekeeping has to wait");
        }
        n += 1;
    }
}

async fn turn(context: &Context, writer: &Writer, n: u64) -> heliograph_service::error::Result<()> {
    nodes::clock_offset(context).await?;
    if n.is_multiple_of(MEASURE) {
        dispatch::measure(context).await?;
    }
    if n.is_multiple_of(MINUTE) {
        janitor::match_early_receipts(context, writer).await?;
        janitor::expire(context, writer).await?;
        for confirmation in janitor::finish_inbound(context, writer).await? {
            if let Err(error) = messages::confirm(context, writer, confirmation).await {
                tracing::warn!(%error, "a confirmation could not be sent");
            }
        }
    }
    if n.is_multiple_of(SWEEP) {
        janitor::time_out_receipts(context, writer).await?;
        janitor::sweep(context).await?;
        sessions::sweep(context).await?;
    }
    Ok(())
}
