//! A batch of carrier events on its way to the writer: retried until it is committed.
//!
//! While the database is unavailable, a batch is retried for ever, because nothing in it may be lost.
//! After any other error it is split, so that a single event that cannot be committed does not block
//! the others; after a few attempts, that event is set aside and reported.

use heliograph_carrier::carrier::{Ack, AckResult, DeliverSmHandle};
use heliograph_domain::id::CarrierId;
use heliograph_domain::receipt::Receipt;
use heliograph_service::kernel::commands::claim::DispatchItem;
use heliograph_service::kernel::commands::command::Command;
use heliograph_service::kernel::commands::progress::{
    InboundUpdate, KeywordReply, NextStep, Progress, RecordProgress, Settlement,
};
use heliograph_service::kernel::log_limit::LogLimit;
use heliograph_service::kernel::metrics::metrics;
use heliograph_service::kernel::writer::{StoreError, Writer};
use std::time::Duration;
use tokio::sync::oneshot;

/// The pause before a batch that could not be committed is retried.
const RETRY_DELAY: Duration = Duration::from_secs(1);
/// The number of attempts to commit a single event while the database is available.
const MAX_ATTEMPTS: u32 = 5;

static OUTAGE: LogLimit = LogLimit::new();
static HALVED: LogLimit = LogLimit::new();
static FAILED: LogLimit = LogLimit::new();

/// A batch of progress and everything that waits for its commit.
#[derive(Default)]
pub(crate) struct PendingBatch {
    pub(crate) progress: Progress,
    /// The settled messages; their slots in the local queue are free once the batch is committed.
    pub(crate) settled: Vec<DispatchItem>,
    /// The `deliver_sm` of the receipts, in their order, to be acknowledged after the commit.
    receipt_handles: Vec<DeliverSmHandle>,
    /// The `deliver_sm` of the inbound messages, in their order.
    inbound_handles: Vec<DeliverSmHandle>,
    /// The number of failed attempts of a single event.
    failures: u32,
    /// True when the texts of the carrier were removed from the outcome.
    reduced: bool,
    /// True when outcomes could not be stored because of the database.
    outage: bool,
    /// The time to wait before the next attempt.
    delay: Duration,
}

/// The result of a commit.
pub(crate) enum CommitResult {
    /// Committed: send these acknowledgements and these keyword replies.
    Committed(Vec<Ack>, Vec<KeywordReply>),
    /// Not committed. The acknowledgements reject `deliver_sm`; the batches are retried.
    Retry(Vec<Ack>, Vec<PendingBatch>),
    /// The writer has ended; the leases will expire.
    WriterClosed,
}

/// The answer of the writer.
type Answer = Result<Vec<KeywordReply>, (StoreError, Progress)>;

impl PendingBatch {
    pub(crate) fn is_empty(&self) -> bool {
        self.len() == 0
    }

    fn len(&self) -> usize {
        let progress = &self.progress;
        progress.settlements.len() + progress.receipts.len() + progress.inbound.len()
    }

    /// Returns whether outcomes could not be stored because of the database.
    pub(crate) const fn waits_for_database(&self) -> bool {
        self.outage
    }

    pub(crate) fn push_receipt(
        &mut self,
        carrier: CarrierId,
        receipt: Receipt,
        handle: DeliverSmHandle,
    ) {
        self.progress.receipts.push((carrier, receipt));
        self.receipt_handles.push(handle);
    }

    pub(crate) fn push_inbound(&mut self, update: InboundUpdate, handle: DeliverSmHandle) {
        self.progress.inbound.push(update);
        self.inbound_handles.push(handle);
    }

    /// Waits for the result of a batch that was sent with [`PendingBatch::send`]. Sending is
    /// separate so that batches stay in wire order.
    pub(crate) async fn committed(mut self, reply: oneshot::Receiver<Answer>) -> CommitResult {
        match reply.await {
            Err(_) => CommitResult::WriterClosed,
            Ok(Ok(replies)) => CommitResult::Committed(self.acks(AckResult::Committed), replies),
            Ok(Err((error, progress))) => {
                self.progress = progress;
                self.failed(&error)
            }
        }
    }

    fn acks(&self, result: AckResult) -> Vec<Ack> {
        let handles = self.receipt_handles.iter().chain(&self.inbound_handles);
        handles.map(|handle| Ack { handle: *handle, result }).collect()
    }

    fn failed(mut self, error: &StoreError) -> CommitResult {
        self.delay = RETRY_DELAY;
        self.outage = false;
        let outcomes = self.progress.settlements.len();
        if is_outage(error) {
            if let Some(omitted) = OUTAGE.admit() {
                tracing::warn!(%error, outcomes, omitted, "failed to commit carrier events");
            }
            self.outage = outcomes > 0;
            let acks = self.acks(AckResult::Retry);
            let batch = self.only_outcomes();
            return CommitResult::Retry(acks, if batch.is_empty() { vec![] } else { vec![batch] });
        }
        if self.len() > 1 {
            if let Some(omitted) = HALVED.admit() {
                let events = self.len();
                let message = "failed to commit carrier events, retrying in halves";
                tracing::warn!(%error, events, omitted, "{message}");
            }
            return CommitResult::Retry(Vec::new(), self.split());
        }
        self.failures += 1;
        if self.failures < MAX_ATTEMPTS {
            if let Some(omitted) = FAILED.admit() {
                tracing::warn!(%error, outcomes, omitted, "failed to commit a carrier event");
            }
            return CommitResult::Retry(Vec::new(), vec![self]);
        }
        self.set_aside(error)
    }

    /// Removes the receipts and inbound messages, which the SMSC sends again.
    fn only_outcomes(mut self) -> Self {
        self.progress.receipts.clear();
        self.progress.inbound.clear();
        self.receipt_handles.clear();
        self.inbound_handles.clear();
        self
    }

    /// Divides the batch into two halves, in order.
    fn split(mut self) -> Vec<Self> {
        let mut room = self.len() / 2;
        let mut take = |len: usize| {
            let n = len.min(room);
            room -= n;
            n
        };
        let settlements = take(self.progress.settlements.len());
        let receipts = take(self.progress.receipts.len());
        let inbound = take(self.progress.inbound.len());
        let second = Self {
            progress: Progress {
                settlements: split_off(&mut self.progress.settlements, settlements),
                receipts: split_off(&mut self.progress.receipts, receipts),
                inbound: split_off(&mut self.progress.inbound, inbound),
                ..Progress::default()
            },
            settled: split_off(&mut self.settled, settlements),
            receipt_handles: split_off(&mut self.receipt_handles, receipts),
            inbound_handles: split_off(&mut self.inbound_handles, inbound),
            ..Self::default()
        };
        self.delay = Duration::ZERO;
        vec![self, second]
    }

    /// Gives up a single event that cannot be committed. A receipt or an inbound message is rejected
    /// for good. An outcome is retried without the texts of the carrier, so that the message is not
    /// sent again; if that cannot be committed either, its lease expires.
    fn set_aside(mut self, error: &StoreError) -> CommitResult {
        if let Some(settlement) = self.progress.settlements.first_mut()
            && !self.reduced
        {
            tracing::error!(
                %error,
                id = %settlement.lease.message,
                "failed to commit an outcome, retrying it without the ids of the carrier"
            );
            remove_texts(settlement);
            self.failures = 0;
            self.reduced = true;
            return CommitResult::Retry(Vec::new(), vec![self]);
        }
        let progress = &self.progress;
        let event = match (progress.settlements.first(), progress.receipts.first()) {
            (Some(settlement), _) => format!("outcome of message {}", settlement.lease.message),
            (None, Some((_, receipt))) => format!("receipt for id {:?}", receipt.smsc_id),
            (None, None) => "inbound message".to_owned(),
        };
        metrics().set_aside.inc();
        tracing::error!(%error, event, "set aside a carrier event that cannot be committed");
        CommitResult::Retry(self.acks(AckResult::Rejected), Vec::new())
    }

    /// Waits before the next attempt.
    pub(crate) async fn pause(self) -> Self {
        tokio::time::sleep(self.delay).await;
        self
    }

    /// Sends the progress to the writer; the receiver is for [`PendingBatch::committed`].
    pub(crate) async fn send(&mut self, writer: &Writer) -> oneshot::Receiver<Answer> {
        let (reply, answer) = oneshot::channel();
        let progress = std::mem::take(&mut self.progress);
        // A writer that has ended drops the command, which closes the reply channel.
        drop(writer.send(Command::RecordProgress(RecordProgress { progress, reply })).await);
        answer
    }
}

/// Returns whether the database could not be used, whatever the batch contains.
fn is_outage(error: &StoreError) -> bool {
    matches!(
        error,
        StoreError::Unavailable(_) | StoreError::CommitLost(_) | StoreError::Conflict(_)
    )
}

/// Removes what came from the carrier: ids and error codes.
fn remove_texts(settlement: &mut Settlement) {
    for (_, smsc_id) in &mut settlement.accepted_parts {
        smsc_id.clear();
    }
    if let NextStep::Fail(failure) = &mut settlement.next {
        failure.carrier_code = None;
    }
}

fn split_off<T>(all: &mut Vec<T>, at: usize) -> Vec<T> {
    all.split_off(at.min(all.len()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use heliograph_domain::carrier::ReceiptPolicy;
    use heliograph_domain::id::{AccountId, MessageId, NodeId};
    use heliograph_domain::lease::{Lane, Lease};
    use heliograph_domain::phone::Recipient;
    use heliograph_domain::receipt::ReceiptOutcome;
    use heliograph_domain::time::Timestamp;
    use uuid::Uuid;

    const CARRIER: CarrierId = CarrierId(1);
    const ANN: Recipient = Recipient(447_700_900_123);

    fn settlement(n: u16) -> Settlement {
        Settlement {
            lease: Lease {
                carrier: CARRIER,
                lane: Lane::SINGLE,
                due_at: Timestamp(0),
                message: MessageId(Uuid::from_u128(n.into())),
                account: AccountId(1),
                owner: NodeId(1),
                attempt: 1,
            },
            recipient: ANN,
            originator: None,
            parts: 1,
            accepted_parts: vec![(1, format!("id{n}"))],
            receipts: ReceiptPolicy::All,
            next: NextStep::Done,
        }
    }

    /// Returns a batch of 10 outcomes and 10 receipts.
    fn batch() -> PendingBatch {
        let mut batch = PendingBatch::default();
        for n in 0..10 {
            batch.progress.settlements.push(settlement(n));
            let receipt = Receipt {
                smsc_id: format!("r{n}"),
                recipient: ANN,
                destination: None,
                outcome: ReceiptOutcome::Delivered,
            };
            let handle = DeliverSmHandle { session: 1, sequence: n.into() };
            batch.push_receipt(CARRIER, receipt, handle);
        }
        batch
    }

    #[derive(Default)]
    struct Done {
        ids: Vec<String>,
        acks: Vec<(u32, AckResult)>,
        commits: usize,
    }

    /// Commits a batch with a writer that answers progress with `error` if it contains one of the
    /// ids in `bad`.
    async fn drive(batch: PendingBatch, bad: &[&str], error: StoreError) -> Done {
        let mut waiting = vec![batch];
        let mut done = Done::default();
        while let Some(mut batch) = waiting.pop() {
            done.commits += 1;
            assert!(done.commits < 100, "retried for ever");
            let (reply, answer) = oneshot::channel();
            let progress = std::mem::take(&mut batch.progress);
            let settled = progress.settlements.iter();
            let ids: Vec<String> = settled
                .flat_map(|s| s.accepted_parts.iter().map(|(_, id)| id.clone()))
                .chain(progress.receipts.iter().map(|(_, r)| r.smsc_id.clone()))
                .collect();
            let fails = ids.iter().any(|id| bad.contains(&id.as_str()));
            if !fails {
                done.ids.extend(ids);
            }
            reply.send(if fails { Err((error.share(), progress)) } else { Ok(vec![]) }).unwrap();
            let acks = match batch.committed(answer).await {
                CommitResult::Committed(acks, _) => acks,
                CommitResult::Retry(acks, again) => {
                    waiting.extend(again.into_iter().rev());
                    acks
                }
                CommitResult::WriterClosed => panic!("the writer has answered"),
            };
            done.acks.extend(acks.into_iter().map(|ack| (ack.handle.sequence, ack.result)));
        }
        done
    }

    #[tokio::test]
    async fn an_event_that_cannot_be_committed_does_not_block_the_others() {
        let error = StoreError::Db("index row size exceeds maximum".to_owned());
        let done = drive(batch(), &["id3", "r4"], error).await;
        let ids = (0..10).map(|n| if n == 3 { String::new() } else { format!("id{n}") });
        let receipts = (0..10).filter(|n| *n != 4).map(|n| format!("r{n}"));
        assert_eq!(
            done.ids,
            ids.chain(receipts).collect::<Vec<_>>(),
            "in order, id3 without its id"
        );
        let acks = (0..10).map(|n| match n {
            4 => (n, AckResult::Rejected),
            _ => (n, AckResult::Committed),
        });
        assert_eq!(done.acks, acks.collect::<Vec<_>>());
    }

    #[tokio::test]
    async fn an_outcome_that_cannot_be_committed_at_all_is_set_aside() {
        let error = StoreError::Corrupt("unknown status".to_owned());
        let done = drive(batch(), &["id3", ""], error).await;
        assert_eq!(done.ids.len(), 19);
        assert!(done.acks.iter().all(|(_, result)| *result == AckResult::Committed));
    }

    #[tokio::test]
    async fn an_outage_keeps_the_outcomes_together_and_returns_the_receipts() {
        for error in [
            StoreError::Unavailable("down".to_owned()),
            StoreError::CommitLost("down".to_owned()),
            StoreError::Conflict("deadlock".to_owned()),
        ] {
            let mut batch = batch();
            for _ in 0..2 * MAX_ATTEMPTS {
                let (reply, answer) = oneshot::channel();
                let progress = std::mem::take(&mut batch.progress);
                reply.send(Err((error.share(), progress))).unwrap();
                let CommitResult::Retry(_, mut again) = batch.committed(answer).await else {
                    panic!("the batch is retried")
                };
                assert_eq!(again.len(), 1);
                batch = again.remove(0);
                assert_eq!((batch.len(), batch.progress.settlements.len()), (10, 10));
            }
        }
    }
}
