//! A row in the list of conversations.

use crate::bubbles::{initials, preview};
use crate::format;
use heliograph_domain::phone::Recipient;
use heliograph_service::messaging::conversations::Conversation;

/// A conversation in the list.
pub(crate) struct ConversationRow {
    pub(crate) number: String,
    pub(crate) href: String,
    pub(crate) open: bool,
    pub(crate) initials: String,
    /// Whether no member has read the last message.
    pub(crate) unread: bool,
    pub(crate) opted_out: bool,
    pub(crate) last: String,
    pub(crate) iso: String,
    pub(crate) at: String,
}

impl ConversationRow {
    pub(crate) fn new(conversation: &Conversation, open: Option<Recipient>) -> Self {
        let number = conversation.number.to_string();
        let (iso, at) = format::date_time(conversation.last.received_at);
        let is_open = Some(conversation.number) == open;
        Self {
            href: format!("/conversations/{number}"),
            open: is_open,
            initials: initials(&number),
            unread: conversation.unread && !is_open,
            opted_out: conversation.opted_out,
            number,
            last: preview(&conversation.last.text),
            iso,
            at,
        }
    }
}
