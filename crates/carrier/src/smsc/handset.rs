//! Virtual handsets: the messages to each number, decoded and reassembled from their parts.

use crate::smsc::address::StoredAddress;
use crate::smsc::delivery_queue::DeliveryQueue;
use heliograph_domain::phone::Recipient;
use heliograph_domain::text::Concat;
use heliograph_domain::time::Timestamp;
use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The maximum number of incomplete messages.
const MAX_INCOMPLETE: usize = 1_000;

/// One message as shown by a handset.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct HandsetMessage {
    /// The originator as the handset sees it.
    pub from: String,
    /// The number of the handset.
    pub to: Recipient,
    /// The complete text.
    pub text: String,
    /// The number of parts.
    pub parts: u8,
    /// The time when its last part arrived.
    pub at: Timestamp,
}

/// The route of a reply to a message.
#[derive(Clone, Debug)]
pub(crate) struct ReplyRoute {
    /// The originator of the message.
    pub(crate) address: StoredAddress,
    /// The delivery queue of the client that submitted it.
    pub(crate) queue: Arc<DeliveryQueue>,
    /// The client's label for it.
    pub(crate) label: Option<i64>,
}

/// All handsets of one simulated SMSC. Clones see the same messages.
#[derive(Clone, Debug, Default)]
pub struct Handsets(Arc<Mutex<State>>);

#[derive(Debug, Default)]
struct State {
    limit: usize,
    messages: VecDeque<(HandsetMessage, ReplyRoute)>,
    incomplete: VecDeque<Incomplete>,
}

#[derive(Debug)]
struct Incomplete {
    from: String,
    to: Recipient,
    label: Option<i64>,
    concat: Concat,
    parts: BTreeMap<u8, String>,
}

impl Handsets {
    /// Returns the messages to the handset with this number, oldest first.
    pub fn messages(&self, number: Recipient) -> Vec<HandsetMessage> {
        let state = self.lock();
        let matching = state.messages.iter().filter(|(message, _)| message.to == number);
        matching.map(|(message, _)| message.clone()).collect()
    }

    /// Returns the number of stored messages of all handsets.
    pub fn count(&self) -> usize {
        self.lock().messages.len()
    }

    pub(crate) fn set_capacity(&self, limit: usize) {
        self.lock().limit = limit;
    }

    /// Adds a message or one part of it. Returns true when the message is complete.
    pub(crate) fn receive(
        &self,
        mut message: HandsetMessage,
        concat: Option<Concat>,
        route: ReplyRoute,
    ) -> bool {
        let mut state = self.lock();
        if let Some(concat) = concat {
            let Some(text) = state.join(concat, &message, route.label) else {
                return false;
            };
            message.text = text;
        }
        state.keep(message, route);
        true
    }

    /// Returns the reply route of the last message from the originator `from` to `number`. Prefers
    /// the last one with `label`, if given.
    pub(crate) fn reply_route(
        &self,
        number: Recipient,
        from: &str,
        label: Option<i64>,
    ) -> Option<ReplyRoute> {
        let state = self.lock();
        let all = state.messages.iter().rev();
        let from = without_plus(from);
        let mut all = all.filter(|(m, _)| m.to == number && without_plus(&m.from) == from);
        let last = all.clone().next();
        let labelled = all.find(|(_, route)| label.is_some() && route.label == label);
        labelled.or(last).map(|(_, route)| route.clone())
    }

    /// Ignores poisoning: no panic can leave the state inconsistent.
    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn keep(&mut self, message: HandsetMessage, route: ReplyRoute) {
        if self.limit > 0 {
            self.messages.truncate_front_to(self.limit - 1);
            self.messages.push_back((message, route));
        }
    }

    /// Adds one part and returns the complete text if none is missing any more. Parts with
    /// different labels are never joined, even if reference and originator are equal.
    fn join(
        &mut self,
        concat: Concat,
        part: &HandsetMessage,
        label: Option<i64>,
    ) -> Option<String> {
        let same = |u: &Incomplete| {
            (u.to, u.label, u.concat.reference, u.concat.total)
                == (part.to, label, concat.reference, concat.total)
                && u.from == part.from
        };
        let index = match self.incomplete.iter().position(same) {
            Some(index) => index,
            None => {
                self.incomplete.truncate_front_to(MAX_INCOMPLETE - 1);
                self.incomplete.push_back(Incomplete {
                    from: part.from.clone(),
                    to: part.to,
                    label,
                    concat,
                    parts: BTreeMap::new(),
                });
                self.incomplete.len() - 1
            }
        };
        let message = self.incomplete.get_mut(index)?;
        message.parts.insert(concat.sequence, part.text.clone());
        if message.parts.len() < usize::from(concat.total) {
            return None;
        }
        let complete = self.incomplete.remove(index)?;
        Some(complete.parts.into_values().collect())
    }
}

/// Returns an originator without its optional plus.
fn without_plus(originator: &str) -> &str {
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

    fn route(label: Option<i64>) -> ReplyRoute {
        ReplyRoute { address: StoredAddress::new(5, 0, "Shop"), queue: Arc::default(), label }
    }

    fn message(text: &str, concat: Option<Concat>) -> HandsetMessage {
        let parts = concat.map_or(1, |concat| concat.total);
        HandsetMessage { from: "Shop".into(), to: ANN, text: text.into(), parts, at: Timestamp(5) }
    }

    fn part(handsets: &Handsets, text: &str, sequence: u8, label: Option<i64>) -> bool {
        let concat = Some(Concat { reference: 7, total: 3, sequence });
        handsets.receive(message(text, concat), concat, route(label))
    }

    #[test]
    fn reordered_and_repeated_parts_are_joined() {
        let handsets = Handsets::default();
        handsets.set_capacity(10);
        for (text, sequence, complete) in
            [("c", 3, false), ("a", 1, false), ("a", 1, false), ("b", 2, true)]
        {
            assert_eq!(part(&handsets, text, sequence, None), complete);
        }
        let all = handsets.messages(ANN);
        assert_eq!(all.len(), 1);
        assert_eq!((all[0].text.as_str(), all[0].parts), ("abc", 3));
    }

    #[test]
    fn parts_of_different_labels_are_not_joined() {
        let handsets = Handsets::default();
        handsets.set_capacity(10);
        for sequence in 1..=3 {
            part(&handsets, "a", sequence, Some(1));
            part(&handsets, "b", sequence, Some(2));
        }
        let texts: Vec<_> = handsets.messages(ANN).into_iter().map(|m| m.text).collect();
        assert_eq!(texts, ["aaa", "bbb"]);
    }

    #[test]
    fn reply_goes_to_the_given_label_or_else_to_the_last_message() {
        let handsets = Handsets::default();
        handsets.set_capacity(10);
        for label in [Some(1), Some(2), Some(3), None] {
            handsets.receive(message("x", None), None, route(label));
        }
        let label = |from, label| handsets.reply_route(ANN, from, label).map(|route| route.label);
        assert_eq!(label("Shop", Some(2)), Some(Some(2)));
        assert_eq!(label("+Shop", Some(9)), Some(None));
        assert_eq!(label("Shop", None), Some(None));
        assert_eq!(label("Shed", Some(2)), None);
        assert!(handsets.reply_route(Recipient(1), "Shop", None).is_none());
    }

    #[test]
    fn stored_messages_are_bounded() {
        let handsets = Handsets::default();
        for (limit, kept) in [(0, 0), (3, 3)] {
            handsets.set_capacity(limit);
            for n in 0..10 {
                handsets.receive(message(&n.to_string(), None), None, route(None));
            }
            assert_eq!(handsets.count(), kept);
        }
        assert_eq!(handsets.messages(ANN)[0].text, "7");
    }
}
