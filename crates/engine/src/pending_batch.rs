//! A batch of carrier events on its way to the writer: retried until it is committed.

use heliograph_carrier::carrier::{Ack, DeliverSmHandle};
use heliograph_service::kernel::commands::claim::DispatchItem;
use heliograph_service::kernel::commands::command::Command;
use heliograph_service::kernel::commands::progress::{KeywordReply, Progress, RecordProgress};
use heliograph_service::kernel::writer::Writer;
use std::time::Duration;
use tokio::sync::oneshot;

/// The pause before a batch that could not be committed is retried.
const RETRY_DELAY: Duration = Duration::from_secs(1);

/// A batch of progress and everything that waits for its commit.
#[derive(Default)]
pub(crate) struct PendingBatch {
    pub(crate) progress: Progress,
    /// The settled messages; their slots in the local queue are free once the batch is committed.
    pub(crate) settled: Vec<DispatchItem>,
    /// The `deliver_sm` of this batch, to be acknowledged after the commit.
    pub(crate) handles: Vec<DeliverSmHandle>,
}

/// The result of a commit.
pub(crate) enum CommitResult {
    /// Committed: send these acknowledgements and these keyword replies.
    Committed(Vec<Ack>, Vec<KeywordReply>),
    /// Not committed. The acknowledgements reject the `deliver_sm`, so that the carrier sends them
    /// again; the submit outcomes are retried in the returned batch.
    Retry(Vec<Ack>, PendingBatch),
    /// The writer has ended; the leases will expire.
    WriterClosed,
}

impl PendingBatch {
    pub(crate) fn is_empty(&self) -> bool {
        let progress = &self.progress;
        progress.settlements.is_empty()
            && progress.receipts.is_empty()
            && progress.inbound.is_empty()
    }

    /// Waits for the result of a batch that was sent with [`PendingBatch::send`]. Sending is
    /// separate so that batches stay in wire order.
    pub(crate) async fn committed(
        mut self,
        reply: oneshot::Receiver<Result<Vec<KeywordReply>, (impl std::fmt::Display, Progress)>>,
    ) -> CommitResult {
        let acks = |committed| {
            let ack = |h: &DeliverSmHandle| Ack { handle: *h, committed };
            self.handles.iter().map(ack).collect::<Vec<_>>()
        };
        match reply.await {
            Err(_) => CommitResult::WriterClosed,
            Ok(Ok(confirmations)) => CommitResult::Committed(acks(true), confirmations),
            Ok(Err((error, mut progress))) => {
                tracing::warn!(%error, outcomes = progress.settlements.len(), "failed to commit carrier events");
                let rejected = acks(false);
                progress.receipts.clear();
                progress.inbound.clear();
                self.handles.clear();
                self.progress = progress;
                CommitResult::Retry(rejected, self)
            }
        }
    }

    /// Waits before the next attempt.
    pub(crate) async fn pause(self) -> Self {
        tokio::time::sleep(RETRY_DELAY).await;
        self
    }

    /// Sends the progress to the writer; the receiver is for [`PendingBatch::committed`].
    pub(crate) async fn send(
        &mut self,
        writer: &Writer,
    ) -> oneshot::Receiver<Result<Vec<KeywordReply>, (impl std::fmt::Display + use<>, Progress)>>
    {
        let (reply, answer) = oneshot::channel();
        let progress = std::mem::take(&mut self.progress);
        // A writer that has ended drops the command, which closes the reply channel.
        drop(writer.send(Command::RecordProgress(RecordProgress { progress, reply })).await);
        answer
    }
}
