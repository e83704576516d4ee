//! A fake carrier with random outcomes and receipts.

use crate::node::{accepted, receipt};
use fastrand::Rng;
use heliograph_domain::id::MessageId;
use heliograph_domain::lease::LeasedMessage;
use heliograph_domain::message::{Failure, FailureCode};
use heliograph_domain::receipt::{Receipt, ReceiptOutcome};
use heliograph_domain::submission::SubmitOutcome;
use std::collections::HashMap;

/// The probabilities of faults, in percent.
#[derive(Clone, Copy)]
pub(crate) struct FaultRates {
    /// A part is refused.
    pub(crate) refused: u8,
    /// A part gets a temporary error.
    pub(crate) deferred: u8,
    /// The response to a part is lost.
    pub(crate) lost: u8,
    /// A node crashes in a round.
    pub(crate) crashes: u8,
    /// All nodes pause for a minute.
    pub(crate) pauses: u8,
}

pub(crate) struct FakeCarrier {
    pub(crate) fault_rates: FaultRates,
    rng: Rng,
    /// The receipts that were not delivered yet.
    receipts: Vec<Receipt>,
    /// The last message id.
    last_id: u64,
    /// The number of times that each part was accepted.
    accepted: HashMap<(MessageId, u8), usize>,
    /// The number of times that the submission of each message was in doubt.
    doubts: HashMap<MessageId, usize>,
}

impl FakeCarrier {
    pub(crate) fn new(seed: u64, fault_rates: FaultRates) -> Self {
        Self {
            fault_rates,
            rng: Rng::with_seed(!seed),
            receipts: Vec::new(),
            last_id: 0x4000_0000,
            accepted: HashMap::new(),
            doubts: HashMap::new(),
        }
    }

    /// Returns the outcomes of all parts that are not accepted yet.
    pub(crate) fn submit(&mut self, leased: &LeasedMessage) -> Vec<(u8, SubmitOutcome)> {
        let count = u8::try_from(leased.message.parts).unwrap();
        let left = (1..=count).filter(|part| !leased.accepted_parts.contains(part));
        left.map(|part| (part, self.outcome(leased.message.id, part))).collect()
    }

    fn outcome(&mut self, id: MessageId, part: u8) -> SubmitOutcome {
        let FaultRates { refused, deferred, lost, .. } = self.fault_rates;
        let roll = self.rng.u8(..100);
        if roll < refused {
            return SubmitOutcome::Refused(Failure::new(FailureCode::RejectedContent));
        }
        if roll < refused + deferred {
            let status = 0x45;
            let all = [
                SubmitOutcome::Throttled,
                SubmitOutcome::Temporary { status },
                SubmitOutcome::Ambiguous { status },
                SubmitOutcome::NotSent,
            ];
            return all[self.rng.usize(..all.len())].clone();
        }
        if roll < refused + deferred + lost {
            self.doubt(id);
            if self.rng.bool() {
                self.accept(id, part);
            }
            return SubmitOutcome::InDoubt;
        }
        accepted(&self.accept(id, part))
    }

    /// Allows one more submission of a message.
    pub(crate) fn doubt(&mut self, id: MessageId) {
        *self.doubts.entry(id).or_default() += 1;
    }

    /// Accepts a part, returns its id, and in most cases queues a receipt.
    fn accept(&mut self, id: MessageId, part: u8) -> String {
        let times_accepted = self.accepted.entry((id, part)).or_default();
        *times_accepted += 1;
        let doubts = self.doubts.get(&id).copied().unwrap_or(0);
        assert!(
            *times_accepted <= 1 + doubts,
            "part {part} of {id} was submitted {times_accepted} times"
        );
        self.last_id += 1;
        let decimal = self.last_id.to_string();
        let notation =
            if self.rng.u8(..100) < 15 { format!("{:X}", self.last_id) } else { decimal.clone() };
        let failed = ReceiptOutcome::Failed(Failure::new(FailureCode::Unreachable));
        let outcome = if self.rng.u8(..100) < 20 { failed } else { ReceiptOutcome::Delivered };
        let times = [0, 1, 1, 1, 1, 1, 1, 1, 1, 2][self.rng.usize(..10)];
        self.receipts.extend((0..times).map(|_| receipt(&notation, &outcome)));
        decimal
    }

    /// Returns about half of the queued receipts.
    pub(crate) fn some_receipts(&mut self) -> Vec<Receipt> {
        let all = std::mem::take(&mut self.receipts);
        let (now, later) = all.into_iter().partition(|_| self.rng.bool());
        self.receipts = later;
        now
    }

    /// Returns all queued receipts.
    pub(crate) fn remaining_receipts(&mut self) -> Vec<Receipt> {
        std::mem::take(&mut self.receipts)
    }
}
