//! Messages of a conversation, shown as chat bubbles.

use crate::format;
use heliograph_domain::inbound::Keyword;
use heliograph_domain::inbound_message::InboundMessage;
use heliograph_domain::message::{Message, MessageState};
use heliograph_domain::wording::failures::failure_reason;
use heliograph_service::messaging::conversations;

/// The length of a preview in lists, in characters.
const PREVIEW: usize = 60;

/// A chat bubble.
pub(crate) struct BubbleView {
    /// The element ID, so that a live update changes only new bubbles.
    pub(crate) id: String,
    /// The date, for the first bubble of a day; otherwise empty.
    pub(crate) divider: String,
    /// Whether it is an inbound message.
    pub(crate) inbound: bool,
    pub(crate) text: String,
    pub(crate) iso: String,
    pub(crate) at: String,
    /// The status in lower case; empty for inbound messages.
    pub(crate) status: String,
    /// The failure reason.
    pub(crate) reason: String,
    /// The keyword (STOP, START, HELP) of an inbound message.
    pub(crate) keyword: &'static str,
}

/// Returns the bubbles of a conversation, newest last.
pub(crate) fn bubbles(messages: &[conversations::ConversationEntry]) -> Vec<BubbleView> {
    let mut day = String::new();
    let bubble = |message: &conversations::ConversationEntry| {
        let mut bubble = match message {
            conversations::ConversationEntry::Sent(sent) => sent_bubble(&sent.0, &sent.1),
            conversations::ConversationEntry::Received(received) => received_bubble(received),
        };
        let date = bubble.iso.get(..10).unwrap_or_default();
        if date != day {
            day = date.to_owned();
            bubble.divider.clone_from(&day);
        }
        bubble
    };
    messages.iter().map(bubble).collect()
}

fn sent_bubble(message: &Message, state: &MessageState) -> BubbleView {
    let (iso, at) = format::time_of_day(message.accepted_at);
    BubbleView {
        id: message.id.to_string(),
        divider: String::new(),
        inbound: false,
        text: message.text.clone(),
        iso,
        at,
        status: state.status.name().to_lowercase(),
        reason: state.failure.as_ref().map_or("", |f| failure_reason(f.code)).to_owned(),
        keyword: "",
    }
}

fn received_bubble(message: &InboundMessage) -> BubbleView {
    let (iso, at) = format::time_of_day(message.received_at);
    BubbleView {
        id: message.id.to_string(),
        divider: String::new(),
        inbound: true,
        text: message.text.clone(),
        iso,
        at,
        status: String::new(),
        reason: String::new(),
        keyword: message.keyword.map_or("", Keyword::name),
    }
}

/// Returns the beginning of a text.
pub(crate) fn preview(text: &str) -> String {
    text.chars().take(PREVIEW).collect()
}

/// Returns the last two digits of a number, as a substitute for initials.
pub(crate) fn initials(number: &str) -> String {
    number.get(number.len().saturating_sub(2)..).unwrap_or_default().to_owned()
}
