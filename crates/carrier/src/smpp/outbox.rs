//! The outbox: what happened and the engine has not taken yet, so that the wire never waits for it.

use crate::carrier::Event;
use heliograph_domain::submission::{Outcome, Submission};
use tokio::sync::mpsc;
use tokio::sync::mpsc::error::TrySendError;

/// The engine is gone: there is nobody left to work for.
#[derive(Debug)]
pub(crate) struct EngineGone;

/// Events in wire order. Whoever puts something in bounds it: outcomes by the window, all else by
/// how many the engine may owe an answer for.
#[derive(Debug)]
pub(crate) struct Outbox {
    events: mpsc::Sender<Vec<Event>>,
    waiting: Vec<Event>,
    outcomes: usize,
}

impl Outbox {
    pub(crate) fn new(events: mpsc::Sender<Vec<Event>>) -> Self {
        Self { events, waiting: Vec::new(), outcomes: 0 }
    }

    pub(crate) fn push(&mut self, event: Event) {
        self.waiting.push(event);
    }

    pub(crate) fn submitted(&mut self, token: u64, part: u8, outcome: Outcome) {
        self.outcomes += 1;
        self.waiting.push(Event::Submitted { token, part, outcome });
    }

    pub(crate) fn not_sent(&mut self, submission: &Submission) {
        self.submitted(submission.token, submission.part, Outcome::NotSent);
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    /// How many outcomes wait.
    pub(crate) fn outcomes(&self) -> usize {
        self.outcomes
    }

    /// How many receipts and messages (and binds) wait.
    pub(crate) fn others(&self) -> usize {
        self.waiting.len() - self.outcomes
    }

    /// Hands everything over as one batch if there is a place for it now.
    pub(crate) fn try_hand_over(&mut self) -> Result<(), EngineGone> {
        if self.waiting.is_empty() {
            return Ok(());
        }
        match self.events.try_reserve() {
            Ok(place) => {
                place.send(std::mem::take(&mut self.waiting));
                self.outcomes = 0;
                Ok(())
            }
            Err(TrySendError::Full(())) => Ok(()),
            Err(TrySendError::Closed(())) => Err(EngineGone),
        }
    }

    /// Waits for a place, then hands everything over. Loses nothing when it is dropped.
    pub(crate) async fn hand_over(&mut self) -> Result<(), EngineGone> {
        let place = self.events.reserve().await.map_err(|_| EngineGone)?;
        place.send(std::mem::take(&mut self.waiting));
        self.outcomes = 0;
        Ok(())
    }
}
