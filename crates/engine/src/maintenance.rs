//! Periodic maintenance: clock offset, queue metrics, expiry, early receipts and deletion of old
//! rows.

use crate::worker::{PeriodicTask, Worker};
use heliograph_service::identity::sessions;
use heliograph_service::kernel::context::Context;
use heliograph_service::kernel::error::Result;
use heliograph_service::kernel::writer::Writer;
use heliograph_service::messaging::dispatch;
use heliograph_service::messaging::messages;
use heliograph_service::operations::maintenance;
use heliograph_service::operations::nodes;
use heliograph_service::operations::retention::{self, RetentionCursor};
use std::time::Duration;
use tokio::sync::watch;

/// The interval between runs.
const PERIOD: Duration = Duration::from_secs(10);
/// Runs between measurements of the queue: half a minute.
const MEASURE_EVERY: u64 = 3;
/// Runs between checks for expired messages, early receipts and unfinished inbound parts: a minute.
const EXPIRE_EVERY: u64 = 6;
/// Runs between deletions of old rows: an hour.
const DELETE_EVERY: u64 = 360;

/// Steps of deleting old messages in one turn, and the pause after each, in which the writer
/// commits. A step deletes up to 250 messages of one account.
const STEPS_PER_TURN: usize = 50;
const STEP_PAUSE: Duration = Duration::from_millis(20);

/// The maintenance of this node.
struct Maintenance {
    context: Context,
    writer: Writer,
    /// The number of turns so far.
    turns: u64,
    /// The place at which old messages are being deleted.
    retention: Option<RetentionCursor>,
}

/// Runs until `stop` turns true.
pub(crate) async fn run(context: Context, writer: Writer, stop: watch::Receiver<bool>) {
    let mut maintenance = Maintenance { context, writer, turns: 0, retention: None };
    Worker { interval: PERIOD, stop }.run(&mut maintenance).await;
}

impl PeriodicTask for Maintenance {
    const FAILURE: &'static str = "maintenance failed";

    async fn turn(&mut self) -> Result<()> {
        let n = self.turns;
        self.turns += 1;
        let (context, writer) = (&self.context, &self.writer);
        nodes::clock_offset(context).await?;
        if n.is_multiple_of(MEASURE_EVERY) {
            dispatch::measure(context).await?;
        }
        if n.is_multiple_of(EXPIRE_EVERY) {
            maintenance::match_early_receipts(context, writer).await?;
            maintenance::expire_messages(context, writer).await?;
            maintenance::delete_expired_endpoints(context).await?;
            for confirmation in maintenance::finish_inbound(context, writer).await? {
                if let Err(error) =
                    messages::send_keyword_reply(context, writer, confirmation).await
                {
                    tracing::warn!(%error, "failed to send a keyword reply");
                }
            }
        }
        if n.is_multiple_of(DELETE_EVERY) {
            maintenance::time_out_receipts(context, writer).await?;
            maintenance::delete_outdated(context).await?;
            sessions::delete_expired(context).await?;
            self.retention.get_or_insert(RetentionCursor::start());
        }
        self.delete_messages().await
    }
}

impl Maintenance {
    /// Continues to delete old messages, with pauses in which the writer commits.
    async fn delete_messages(&mut self) -> Result<()> {
        for _ in 0..STEPS_PER_TURN {
            let Some(cursor) = self.retention else { return Ok(()) };
            self.retention = retention::delete_messages(&self.context, cursor).await?;
            tokio::time::sleep(STEP_PAUSE).await;
        }
        Ok(())
    }
}
