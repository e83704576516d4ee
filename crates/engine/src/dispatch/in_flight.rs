//! A message that was submitted to the carrier and is not settled.

use crate::pending_batch::PendingBatch;
use heliograph_domain::carrier::ReceiptPolicy;
use heliograph_domain::submission::{Recall, SubmitOutcome};
use heliograph_service::kernel::commands::claim::DispatchItem;
use heliograph_service::kernel::commands::progress::Settlement;
use heliograph_service::messaging::dispatch::evaluate_outcomes;
use std::time::Instant;

/// A message that was submitted to the carrier.
pub(super) struct InFlight {
    pub(super) item: DispatchItem,
    pub(super) outcomes: Vec<(u8, SubmitOutcome)>,
    /// The number of parts without an outcome.
    pub(super) parts_left: usize,
    pub(super) renewed: Instant,
    pub(super) recall: Recall,
}

impl InFlight {
    /// Adds the message, whose parts all have an outcome, to a batch.
    pub(super) fn settle(self, receipts: ReceiptPolicy, batch: &mut PendingBatch) {
        let settlement = evaluate_outcomes(&self.item.leased, self.outcomes);
        batch.progress.settlements.push(Settlement { receipts, ..settlement });
        batch.settled.push(self.item);
    }
}
