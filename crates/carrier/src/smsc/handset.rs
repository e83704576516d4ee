//! Virtual handsets: what was sent to each number, decoded and put together again.

use crate::smpp::body::ShortMessage;
use crate::smpp::command::esm;
use heliograph_domain::phone::Recipient;
use heliograph_domain::text::{Concat, decode_gsm7, decode_ucs2, split_udh};
use heliograph_domain::time::Timestamp;
use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The most messages of which only some parts have come.
const MAX_UNFINISHED: usize = 1_000;

/// One message as a handset shows it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct HandsetMessage {
    /// The originator as the handset sees it.
    pub from: String,
    /// Whose handset.
    pub to: Recipient,
    /// The whole text.
    pub text: String,
    /// Of how many parts it was.
    pub parts: u8,
    /// When its last part came.
    pub at: Timestamp,
}

/// All handsets of one simulated SMSC. Clones see the same messages.
#[derive(Clone, Debug, Default)]
pub struct Handsets(Arc<Mutex<Memory>>);

#[derive(Debug, Default)]
struct Memory {
    limit: usize,
    messages: VecDeque<HandsetMessage>,
    unfinished: VecDeque<Unfinished>,
}

#[derive(Debug)]
struct Unfinished {
    from: String,
    to: Recipient,
    concat: Concat,
    parts: BTreeMap<u8, String>,
}

impl Handsets {
    /// What the handset with this number has received, oldest first.
    pub fn messages(&self, number: Recipient) -> Vec<HandsetMessage> {
        let memory = self.lock();
        let mine = memory.messages.iter().filter(|m| m.to == number);
        mine.cloned().collect()
    }

    /// How many messages all handsets keep.
    pub fn count(&self) -> usize {
        self.lock().messages.len()
    }

    pub(crate) fn keep(&self, limit: usize) {
        self.lock().limit = limit;
    }

    pub(crate) fn receive(&self, part: Part, to: Recipient, from: String, at: Timestamp) {
        let mut memory = self.lock();
        let message = |text, parts, from| HandsetMessage { from, to, text, parts, at };
        match part.concat {
            None => memory.keep(message(part.text, 1, from)),
            Some(concat) => {
                if let Some(text) = memory.join(concat, part.text, to, &from) {
                    memory.keep(message(text, concat.total, from));
                }
            }
        }
    }

    /// A panic elsewhere can't leave the memory half changed.
    fn lock(&self) -> MutexGuard<'_, Memory> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Memory {
    fn keep(&mut self, message: HandsetMessage) {
        if self.limit > 0 {
            self.messages.truncate_front_to(self.limit - 1);
            self.messages.push_back(message);
        }
    }

    /// Adds one part; the whole text when it was the last that was missing.
    fn join(&mut self, concat: Concat, text: String, to: Recipient, from: &str) -> Option<String> {
        let same = |u: &Unfinished| {
            (u.to, u.concat.reference, u.concat.total) == (to, concat.reference, concat.total)
                && u.from == from
        };
        let place = match self.unfinished.iter().position(same) {
            Some(place) => place,
            None => {
                self.unfinished.truncate_front_to(MAX_UNFINISHED - 1);
                self.unfinished.push_back(Unfinished {
                    from: from.to_owned(),
                    to,
                    concat,
                    parts: BTreeMap::new(),
                });
                self.unfinished.len() - 1
            }
        };
        let unfinished = self.unfinished.get_mut(place)?;
        unfinished.parts.insert(concat.sequence, text);
        if unfinished.parts.len() < usize::from(concat.total) {
            return None;
        }
        let whole = self.unfinished.remove(place)?;
        Some(whole.parts.into_values().collect())
    }
}

trait TruncateFront {
    fn truncate_front_to(&mut self, length: usize);
}

impl<T> TruncateFront for VecDeque<T> {
    fn truncate_front_to(&mut self, length: usize) {
        self.drain(..self.len().saturating_sub(length));
    }
}

/// One part's text and its place in the whole.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Part {
    pub(crate) text: String,
    pub(crate) concat: Option<Concat>,
}

impl Part {
    /// Decodes a short message by its data_coding. What is neither GSM 03.38 nor UCS-2 is read as
    /// Latin-1, which reads anything.
    pub(crate) fn of(message: &ShortMessage<'_>) -> Self {
        let header = (message.esm_class & esm::UDH != 0).then(|| split_udh(message.text));
        let (concat, octets) = header.flatten().unwrap_or((None, message.text));
        let text = match message.data_coding {
            0 => decode_gsm7(octets),
            8 => decode_ucs2(octets),
            _ => octets.iter().map(|b| char::from(*b)).collect(),
        };
        Self { text, concat }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ANN: Recipient = Recipient(447_700_900_123);

    fn part(text: &str, sequence: u8) -> Part {
        Part { text: text.to_owned(), concat: Some(Concat { reference: 7, total: 3, sequence }) }
    }

    #[test]
    fn parts_in_any_order_and_twice_make_one_message() {
        let handsets = Handsets::default();
        handsets.keep(10);
        for (text, sequence) in [("c", 3), ("a", 1), ("a", 1), ("b", 2)] {
            handsets.receive(part(text, sequence), ANN, "Shop".into(), Timestamp(5));
        }
        let all = handsets.messages(ANN);
        assert_eq!(all.len(), 1);
        assert_eq!((all[0].text.as_str(), all[0].parts), ("abc", 3));
    }

    #[test]
    fn the_memory_is_bounded() {
        let handsets = Handsets::default();
        for (limit, kept) in [(0, 0), (3, 3)] {
            handsets.keep(limit);
            for n in 0..10 {
                let part = Part { text: n.to_string(), concat: None };
                handsets.receive(part, ANN, "Shop".into(), Timestamp(n));
            }
            assert_eq!(handsets.count(), kept);
        }
        assert_eq!(handsets.messages(ANN)[0].text, "7");
    }
}
