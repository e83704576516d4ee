//! The queue of events that the engine has not received yet, so that the wire never waits for it.

use crate::carrier::CarrierEvent;
use heliograph_domain::submission::{Submission, SubmitOutcome};
use tokio::sync::mpsc;
use tokio::sync::mpsc::error::TrySendError;

/// The engine has dropped its end of the event channel.
#[derive(Debug)]
pub(crate) struct EngineGone;

/// Events in wire order. The callers bound the queue: outcomes by the window, receipts and inbound
/// messages by the number of acks that the engine may owe.
#[derive(Debug)]
pub(crate) struct EventQueue {
    events: mpsc::Sender<Vec<CarrierEvent>>,
    waiting: Vec<CarrierEvent>,
    outcomes: usize,
}

impl EventQueue {
    pub(crate) fn new(events: mpsc::Sender<Vec<CarrierEvent>>) -> Self {
        Self { events, waiting: Vec::new(), outcomes: 0 }
    }

    pub(crate) fn push(&mut self, event: CarrierEvent) {
        self.waiting.push(event);
    }

    pub(crate) fn push_outcome(&mut self, token: u64, part: u8, outcome: SubmitOutcome) {
        self.outcomes += 1;
        self.waiting.push(CarrierEvent::Submitted { token, part, outcome });
    }

    pub(crate) fn push_not_sent(&mut self, submission: &Submission) {
        self.push_outcome(submission.token, submission.part, SubmitOutcome::NotSent);
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    /// Returns the number of queued outcomes.
    pub(crate) fn outcomes(&self) -> usize {
        self.outcomes
    }

    /// Returns the number of other queued events: receipts, inbound messages and binds.
    pub(crate) fn deliveries(&self) -> usize {
        self.waiting.len() - self.outcomes
    }

    /// Sends all events as one batch if the channel has room now.
    pub(crate) fn try_flush(&mut self) -> Result<(), EngineGone> {
        if self.waiting.is_empty() {
            return Ok(());
        }
        match self.events.try_reserve() {
            Ok(permit) => {
                permit.send(std::mem::take(&mut self.waiting));
                self.outcomes = 0;
                Ok(())
            }
            Err(TrySendError::Full(())) => Ok(()),
            Err(TrySendError::Closed(())) => Err(EngineGone),
        }
    }

    /// Waits for room in the channel, then sends all events as one batch. Cancel safe.
    pub(crate) async fn flush(&mut self) -> Result<(), EngineGone> {
        let permit = self.events.reserve().await.map_err(|_| EngineGone)?;
        permit.send(std::mem::take(&mut self.waiting));
        self.outcomes = 0;
        Ok(())
    }
}
