//! A row in the list of conversations.

use crate::bubbles::{initials, preview};
use crate::format;
use heliograph_domain::phone::Recipient;
use heliograph_service::messaging::conversations::{Conversation, ConversationEntry};

/// A conversation in the list.
pub(crate) struct ConversationRow {
    pub(crate) number: String,
    pub(crate) href: String,
    pub(crate) open: bool,
    pub(crate) initials: String,
    pub(crate) opted_out: bool,
    pub(crate) last: String,
    pub(crate) iso: String,
    pub(crate) at: String,
}

impl ConversationRow {
    pub(crate) fn new(talk: &Conversation, open: Option<Recipient>) -> Self {
        let number = talk.number.to_string();
        let (last, at) = match &talk.last {
            ConversationEntry::Sent(sent) => {
                (format!("You: {}", preview(&sent.0.text)), sent.0.accepted_at)
            }
            ConversationEntry::Received(message) => (preview(&message.text), message.received_at),
        };
        let (iso, at) = format::date_time(at);
        Self {
            href: format!("/conversations/{number}"),
            open: Some(talk.number) == open,
            initials: initials(&number),
            opted_out: talk.opted_out,
            number,
            last,
            iso,
            at,
        }
    }

    /// Returns whether the number contains the digits of a search.
    pub(crate) fn matches(&self, query: &str) -> bool {
        let digits: String = query.chars().filter(char::is_ascii_digit).collect();
        query.is_empty() || !digits.is_empty() && self.number.contains(&digits)
    }
}
