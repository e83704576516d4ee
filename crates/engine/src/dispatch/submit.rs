//! Submitting messages to the carrier.

use crate::dispatch::in_flight::InFlight;
use crate::dispatch::{Dispatcher, Step};
use crate::pending_batch::PendingBatch;
use heliograph_domain::message::{Failure, FailureCode};
use heliograph_domain::submission::{Recall, Submission, SubmitOutcome};
use heliograph_domain::text;
use heliograph_service::kernel::commands::claim::DispatchItem;
use heliograph_service::kernel::metrics::metrics;
use heliograph_service::messaging::inbound;

impl Dispatcher {
    /// Submits messages to the carrier, part by part.
    pub(super) fn submit_all(&mut self, arrived: Vec<DispatchItem>) {
        metrics().dispatched.inc_by(arrived.len() as u64);
        for item in arrived {
            self.submit(item);
        }
    }

    /// Hands a part to the carrier, unless outcomes cannot be stored. Returns whether that worked.
    fn hand(&self, submission: Submission) -> bool {
        self.unsaved == 0 && self.submissions.try_send(submission).is_ok()
    }

    fn submit(&mut self, item: DispatchItem) {
        let token = self.next_token;
        self.next_token = self.next_token.wrapping_add(1);
        let message = item.leased.message.clone();
        let validity = message.expires_at.since(self.context.db.now());
        let recall = Recall::default();
        let mut entry =
            InFlight { renewed: item.since, item, outcomes: Vec::new(), parts_left: 0, recall };
        let segments = if validity.is_zero() {
            let expired = SubmitOutcome::Refused(Failure::new(FailureCode::Expired));
            entry.outcomes.push((1, expired));
            Vec::new()
        } else {
            text::segments(&message.text, token.to_le_bytes()[0])
        };
        for (part, segment) in (1u8..).zip(segments) {
            if entry.item.leased.accepted_parts.contains(&part) {
                continue;
            }
            let submission = Submission {
                token,
                part,
                originator: message.originator.clone(),
                recipient: message.recipient,
                segment,
                label: inbound::label(message.account, message.mode),
                validity,
                leased_at: entry.item.since,
                recall: entry.recall.clone(),
            };
            match self.hand(submission) {
                true => entry.parts_left += 1,
                false => entry.outcomes.push((part, SubmitOutcome::NotSent)),
            }
        }
        if entry.parts_left > 0 {
            self.in_flight.insert(token, entry);
        } else {
            let mut batch = PendingBatch::default();
            entry.settle(self.receipts, &mut batch);
            self.pending.push(Box::pin(async move { Step::RetryDue(batch) }));
        }
    }
}
