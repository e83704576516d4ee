//! The carrier's events: outcomes, receipts and inbound messages, which go to the writer.

use crate::dispatch::{Dispatcher, Step};
use crate::pending_batch::PendingBatch;
use heliograph_carrier::carrier::{Ack, CarrierEvent};
use heliograph_domain::submission::SubmitOutcome;
use heliograph_service::kernel::commands::progress::{InboundUpdate, KeywordReply};
use heliograph_service::kernel::log_limit::LogLimit;
use heliograph_service::kernel::metrics::metrics;
use heliograph_service::messaging::messages;

static REPLY_FAILED: LogLimit = LogLimit::new();

impl Dispatcher {
    /// Combines carrier events, in wire order, into one command for the writer.
    pub(super) async fn on_events(&mut self, events: Vec<CarrierEvent>) {
        let mut batch = PendingBatch::default();
        let mut receipts = 0;
        for event in events {
            match event {
                CarrierEvent::Bound => {
                    self.set_bound(true);
                    self.may_have_work = true;
                }
                // The carrier implementation logs the reason.
                CarrierEvent::Unbound(_) => self.set_bound(false),
                CarrierEvent::Submitted { token, part, outcome } => {
                    self.on_outcome(token, (part, outcome), &mut batch);
                }
                CarrierEvent::Receipt { handle, receipt } => {
                    batch.push_receipt(self.carrier, receipt, handle);
                    receipts += 1;
                }
                CarrierEvent::Message { handle, incoming } => {
                    batch.push_inbound(InboundUpdate::Incoming(self.carrier, incoming), handle);
                }
            }
        }
        let settled = batch.progress.settlements.len() as u64;
        metrics().settled.inc_by(settled);
        let inbound = batch.progress.inbound.len() as u64;
        metrics().receipts.inc_by(receipts);
        metrics().inbound.inc_by(inbound);
        self.commit(batch).await;
    }

    fn set_bound(&mut self, bound: bool) {
        self.bound = bound;
        self.update_availability();
        let gauge = metrics().carrier_bound.with_label_values(&[&self.name]);
        gauge.set(i64::from(bound));
    }

    fn on_outcome(&mut self, token: u64, outcome: (u8, SubmitOutcome), batch: &mut PendingBatch) {
        let Some(entry) = self.in_flight.get_mut(&token) else { return };
        entry.outcomes.push(outcome);
        entry.parts_left = entry.parts_left.saturating_sub(1);
        if entry.parts_left == 0
            && let Some(entry) = self.in_flight.remove(&token)
        {
            entry.settle(self.receipts, batch);
        }
    }

    pub(super) async fn commit(&mut self, mut batch: PendingBatch) {
        if batch.is_empty() {
            return;
        }
        let answer = batch.send(&self.writer).await;
        let waited = batch.waits_for_database();
        self.pending.push(Box::pin(async move {
            Step::Committed { result: batch.committed(answer).await, waited }
        }));
    }

    /// Sets whether messages are handed to this dispatcher: not while the carrier is unavailable, and
    /// not while outcomes cannot be stored, because their messages would be submitted again.
    pub(super) fn update_availability(&self) {
        self.queue.set_available(self.bound && self.unsaved == 0);
    }

    /// Counts the batches of outcomes that wait for the database. The first one recalls the parts
    /// that were not submitted yet.
    pub(super) fn count_unsaved(&mut self, before: bool, after: usize) {
        let had = self.unsaved;
        self.unsaved = had.saturating_sub(before.into()) + after;
        if had == 0 && self.unsaved > 0 {
            tracing::warn!(carrier = %self.name, "submitting stops until outcomes can be stored");
            self.in_flight.values().for_each(|entry| entry.recall.recall());
        }
        if had > 0 && self.unsaved == 0 {
            tracing::info!(carrier = %self.name, "outcomes are stored, submitting continues");
            self.may_have_work = true;
        }
        if (had == 0) != (self.unsaved == 0) {
            self.update_availability();
        }
    }

    /// Sends the replies to keywords such as STOP.
    pub(super) fn send_keyword_replies(&mut self, all: Vec<KeywordReply>) {
        for reply in all {
            let (context, writer) = (self.context.clone(), self.writer.clone());
            self.pending.push(Box::pin(async move {
                if let Err(error) = messages::send_keyword_reply(&context, &writer, reply).await
                    && let Some(omitted) = REPLY_FAILED.admit()
                {
                    tracing::warn!(%error, omitted, "failed to send a keyword reply");
                }
                Step::KeywordReplySent
            }));
        }
    }

    pub(super) async fn acknowledge(&mut self, acks: Vec<Ack>) {
        if !acks.is_empty() {
            // If the carrier has ended, the SMSC sends the unacknowledged receipts again.
            drop(self.acks.send(acks).await);
        }
    }
}
