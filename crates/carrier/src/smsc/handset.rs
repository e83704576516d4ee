//! Virtual handsets: what was sent to each number, decoded and put together again.

use crate::smsc::mailbox::Mailbox;
use crate::smsc::party::Party;
use heliograph_domain::phone::Recipient;
use heliograph_domain::text::Concat;
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

/// Where a reply to a message goes.
#[derive(Clone, Debug)]
pub(crate) struct Sender {
    /// The originator.
    pub(crate) party: Party,
    /// Of the client that submitted it.
    pub(crate) mailbox: Arc<Mailbox>,
    /// What that client calls it.
    pub(crate) label: Option<i64>,
}

/// All handsets of one simulated SMSC. Clones see the same messages.
#[derive(Clone, Debug, Default)]
pub struct Handsets(Arc<Mutex<Memory>>);

#[derive(Debug, Default)]
struct Memory {
    limit: usize,
    messages: VecDeque<(HandsetMessage, Sender)>,
    unfinished: VecDeque<Unfinished>,
}

#[derive(Debug)]
struct Unfinished {
    from: String,
    to: Recipient,
    label: Option<i64>,
    concat: Concat,
    parts: BTreeMap<u8, String>,
}

impl Handsets {
    /// What the handset with this number has received, oldest first.
    pub fn messages(&self, number: Recipient) -> Vec<HandsetMessage> {
        let memory = self.lock();
        let mine = memory.messages.iter().filter(|(message, _)| message.to == number);
        mine.map(|(message, _)| message.clone()).collect()
    }

    /// How many messages all handsets keep.
    pub fn count(&self) -> usize {
        self.lock().messages.len()
    }

    pub(crate) fn keep(&self, limit: usize) {
        self.lock().limit = limit;
    }

    /// Takes in a message, or one part of one. True when it is whole now.
    pub(crate) fn receive(
        &self,
        mut message: HandsetMessage,
        concat: Option<Concat>,
        sender: Sender,
    ) -> bool {
        let mut memory = self.lock();
        if let Some(concat) = concat {
            let Some(text) = memory.join(concat, &message, sender.label) else {
                return false;
            };
            message.text = text;
        }
        memory.keep(message, sender);
        true
    }

    /// Who sent the last message to `number` from the originator `from`: the last one with this
    /// label if it is named and there is one.
    pub(crate) fn sender(
        &self,
        number: Recipient,
        from: &str,
        label: Option<i64>,
    ) -> Option<Sender> {
        let memory = self.lock();
        let all = memory.messages.iter().rev();
        let mut all = all.filter(|(m, _)| m.to == number && bare(&m.from) == bare(from));
        let last = all.clone().next();
        let named = all.find(|(_, sender)| label.is_some() && sender.label == label);
        named.or(last).map(|(_, sender)| sender.clone())
    }

    /// A panic elsewhere can't leave the memory half changed.
    fn lock(&self) -> MutexGuard<'_, Memory> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Memory {
    fn keep(&mut self, message: HandsetMessage, sender: Sender) {
        if self.limit > 0 {
            self.messages.truncate_front_to(self.limit - 1);
            self.messages.push_back((message, sender));
        }
    }

    /// Adds one part; the whole text when it was the last that was missing. Parts with different
    /// labels never meet, though reference and originator may be the same.
    fn join(
        &mut self,
        concat: Concat,
        part: &HandsetMessage,
        label: Option<i64>,
    ) -> Option<String> {
        let same = |u: &Unfinished| {
            (u.to, u.label, u.concat.reference, u.concat.total)
                == (part.to, label, concat.reference, concat.total)
                && u.from == part.from
        };
        let place = match self.unfinished.iter().position(same) {
            Some(place) => place,
            None => {
                self.unfinished.truncate_front_to(MAX_UNFINISHED - 1);
                self.unfinished.push_back(Unfinished {
                    from: part.from.clone(),
                    to: part.to,
                    label,
                    concat,
                    parts: BTreeMap::new(),
                });
                self.unfinished.len() - 1
            }
        };
        let unfinished = self.unfinished.get_mut(place)?;
        unfinished.parts.insert(concat.sequence, part.text.clone());
        if unfinished.parts.len() < usize::from(concat.total) {
            return None;
        }
        let whole = self.unfinished.remove(place)?;
        Some(whole.parts.into_values().collect())
    }
}

/// An originator without the plus that some write.
fn bare(originator: &str) -> &str {
    originator.strip_prefix('+').unwrap_or(originator)
}

trait TruncateFront {
    fn truncate_front_to(&mut self, length: usize);
}

impl<T> TruncateFront for VecDeque<T> {
    fn truncate_front_to(&mut self, length: usize) {
        self.drain(..self.len().saturating_sub(length));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ANN: Recipient = Recipient(447_700_900_123);

    fn sender(label: Option<i64>) -> Sender {
        Sender { party: Party::new(5, 0, "Shop"), mailbox: Arc::default(), label }
    }

    fn message(text: &str, concat: Option<Concat>) -> HandsetMessage {
        let parts = concat.map_or(1, |concat| concat.total);
        HandsetMessage { from: "Shop".into(), to: ANN, text: text.into(), parts, at: Timestamp(5) }
    }

    fn part(handsets: &Handsets, text: &str, sequence: u8, label: Option<i64>) -> bool {
        let concat = Some(Concat { reference: 7, total: 3, sequence });
        handsets.receive(message(text, concat), concat, sender(label))
    }

    #[test]
    fn parts_in_any_order_and_twice_make_one_message() {
        let handsets = Handsets::default();
        handsets.keep(10);
        for (text, sequence, whole) in
            [("c", 3, false), ("a", 1, false), ("a", 1, false), ("b", 2, true)]
        {
            assert_eq!(part(&handsets, text, sequence, None), whole);
        }
        let all = handsets.messages(ANN);
        assert_eq!(all.len(), 1);
        assert_eq!((all[0].text.as_str(), all[0].parts), ("abc", 3));
    }

    #[test]
    fn parts_of_two_labels_never_meet() {
        let handsets = Handsets::default();
        handsets.keep(10);
        for sequence in 1..=3 {
            part(&handsets, "a", sequence, Some(1));
            part(&handsets, "b", sequence, Some(2));
        }
        let texts: Vec<_> = handsets.messages(ANN).into_iter().map(|m| m.text).collect();
        assert_eq!(texts, ["aaa", "bbb"]);
    }

    #[test]
    fn a_reply_goes_to_the_label_that_it_names_else_to_the_last() {
        let handsets = Handsets::default();
        handsets.keep(10);
        for label in [Some(1), Some(2), Some(3), None] {
            handsets.receive(message("x", None), None, sender(label));
        }
        let label = |from, label| handsets.sender(ANN, from, label).map(|sender| sender.label);
        assert_eq!(label("Shop", Some(2)), Some(Some(2)));
        assert_eq!(label("+Shop", Some(9)), Some(None));
        assert_eq!(label("Shop", None), Some(None));
        assert_eq!(label("Shed", Some(2)), None);
        assert!(handsets.sender(Recipient(1), "Shop", None).is_none());
    }

    #[test]
    fn the_memory_is_bounded() {
        let handsets = Handsets::default();
        for (limit, kept) in [(0, 0), (3, 3)] {
            handsets.keep(limit);
            for n in 0..10 {
                handsets.receive(message(&n.to_string(), None), None, sender(None));
            }
            assert_eq!(handsets.count(), kept);
        }
        assert_eq!(handsets.messages(ANN)[0].text, "7");
    }
}
