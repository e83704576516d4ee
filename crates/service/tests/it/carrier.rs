//! A carrier with all its moods: what it says to each part, and what it tells of it later.

use crate::node::{accepted, receipt};
use fastrand::Rng;
use heliograph_domain::id::MessageId;
use heliograph_domain::lease::Leased;
use heliograph_domain::message::{Failure, FailureCode};
use heliograph_domain::receipt::{Receipt, Verdict};
use heliograph_domain::submission::Outcome;
use std::collections::HashMap;

/// How often things go wrong, in percent.
#[derive(Clone, Copy)]
pub(crate) struct Moods {
    /// A part is refused.
    pub(crate) refused: u8,
    /// A part is put off.
    pub(crate) put_off: u8,
    /// The response to a part is lost.
    pub(crate) lost: u8,
    /// A node dies in a round.
    pub(crate) deaths: u8,
    /// A minute goes by in which no node does anything.
    pub(crate) naps: u8,
}

pub(crate) struct Carrier {
    pub(crate) moods: Moods,
    rng: Rng,
    /// On their way.
    receipts: Vec<Receipt>,
    /// The last id that was given.
    named: u64,
    /// How often each part was taken.
    taken: HashMap<(MessageId, u8), usize>,
    /// How often it was in doubt whether a message had been submitted.
    doubts: HashMap<MessageId, usize>,
}

impl Carrier {
    pub(crate) fn new(seed: u64, moods: Moods) -> Self {
        Self {
            moods,
            rng: Rng::with_seed(!seed),
            receipts: Vec::new(),
            named: 0x4000_0000,
            taken: HashMap::new(),
            doubts: HashMap::new(),
        }
    }

    /// What it says to all parts that it has not taken yet.
    pub(crate) fn submit(&mut self, leased: &Leased) -> Vec<(u8, Outcome)> {
        let count = u8::try_from(leased.message.parts).unwrap();
        let left = (1..=count).filter(|part| !leased.parts_taken.contains(part));
        left.map(|part| (part, self.answer(leased.message.id, part))).collect()
    }

    fn answer(&mut self, id: MessageId, part: u8) -> Outcome {
        let Moods { refused, put_off, lost, .. } = self.moods;
        let mood = self.rng.u8(..100);
        if mood < refused {
            return Outcome::Refused(Failure::plain(FailureCode::RejectedContent));
        }
        if mood < refused + put_off {
            let status = 0x45;
            let all = [
                Outcome::Throttled,
                Outcome::Temporary { status },
                Outcome::Ambiguous { status },
                Outcome::NotSent,
            ];
            return all[self.rng.usize(..all.len())].clone();
        }
        if mood < refused + put_off + lost {
            self.doubt(id);
            if self.rng.bool() {
                self.take(id, part);
            }
            return Outcome::InDoubt;
        }
        accepted(&self.take(id, part))
    }

    /// From now on a message may come once more.
    pub(crate) fn doubt(&mut self, id: MessageId) {
        *self.doubts.entry(id).or_default() += 1;
    }

    /// Takes a part, gives it a name, and in most cases tells later what became of it.
    fn take(&mut self, id: MessageId, part: u8) -> String {
        let taken = self.taken.entry((id, part)).or_default();
        *taken += 1;
        let doubts = self.doubts.get(&id).copied().unwrap_or(0);
        assert!(*taken <= 1 + doubts, "part {part} of {id} came {taken} times");
        self.named += 1;
        let name = self.named.to_string();
        let told = if self.rng.u8(..100) < 15 { format!("{:X}", self.named) } else { name.clone() };
        let failed = Verdict::Failed(Failure::plain(FailureCode::Unreachable));
        let verdict = if self.rng.u8(..100) < 20 { failed } else { Verdict::Delivered };
        let times = [0, 1, 1, 1, 1, 1, 1, 1, 1, 2][self.rng.usize(..10)];
        self.receipts.extend((0..times).map(|_| receipt(&told, &verdict)));
        name
    }

    /// About half of the receipts that are on their way.
    pub(crate) fn tell(&mut self) -> Vec<Receipt> {
        let all = std::mem::take(&mut self.receipts);
        let (told, later) = all.into_iter().partition(|_| self.rng.bool());
        self.receipts = later;
        told
    }

    pub(crate) fn tell_the_rest(&mut self) -> Vec<Receipt> {
        std::mem::take(&mut self.receipts)
    }
}
