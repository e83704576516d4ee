//! Bubbles: what was said between an account and a person, as a phone shows it.

use crate::dashboard::moment;
use heliograph_domain::inbound::Keyword;
use heliograph_domain::inbound_message::InboundMessage;
use heliograph_domain::message::{Message, State};
use heliograph_service::conversations;

/// How much of a message stands in a list, in characters.
const GLIMPSE: usize = 60;

/// A bubble.
pub(crate) struct Bubble {
    /// Names it, so that a page that changes keeps what it has.
    pub(crate) id: String,
    /// The day, above the first bubble of it.
    pub(crate) divider: String,
    /// The person wrote it.
    pub(crate) from_person: bool,
    pub(crate) text: String,
    pub(crate) iso: String,
    pub(crate) at: String,
    /// `queued` and so on; empty for what the person wrote.
    pub(crate) status: String,
    /// Why it failed.
    pub(crate) reason: String,
    /// The word that it is, if it asks for something.
    pub(crate) keyword: &'static str,
}

/// All bubbles, the newest last.
pub(crate) fn bubbles(said: &[conversations::Bubble]) -> Vec<Bubble> {
    let mut day = String::new();
    let bubble = |one: &conversations::Bubble| {
        let mut bubble = match one {
            conversations::Bubble::Sent(sent) => sent_bubble(&sent.0, &sent.1),
            conversations::Bubble::Received(received) => received_bubble(received),
        };
        let its = bubble.iso.get(..10).unwrap_or_default();
        if its != day {
            day = its.to_owned();
            bubble.divider.clone_from(&day);
        }
        bubble
    };
    said.iter().map(bubble).collect()
}

fn sent_bubble(message: &Message, state: &State) -> Bubble {
    let (iso, at) = moment::clock(message.accepted_at);
    Bubble {
        id: message.id.to_string(),
        divider: String::new(),
        from_person: false,
        text: message.text.clone(),
        iso,
        at,
        status: state.status.name().to_lowercase(),
        reason: state.failure.as_ref().map_or("", |f| f.code.detail()).to_owned(),
        keyword: "",
    }
}

fn received_bubble(message: &InboundMessage) -> Bubble {
    let (iso, at) = moment::clock(message.received_at);
    Bubble {
        id: message.id.to_string(),
        divider: String::new(),
        from_person: true,
        text: message.text.clone(),
        iso,
        at,
        status: String::new(),
        reason: String::new(),
        keyword: message.keyword.map_or("", Keyword::name),
    }
}

/// The beginning of a text.
pub(crate) fn glimpse(text: &str) -> String {
    text.chars().take(GLIMPSE).collect()
}

/// The last two digits stand for whoever has no name.
pub(crate) fn initials(number: &str) -> String {
    number.get(number.len().saturating_sub(2)..).unwrap_or_default().to_owned()
}
