//! A person in the list of conversations.

use crate::dashboard::bubbles::{glimpse, initials};
use crate::dashboard::moment;
use heliograph_domain::phone::Recipient;
use heliograph_service::conversations::{Bubble, Talk};

pub(crate) struct Person {
    pub(crate) number: String,
    pub(crate) href: String,
    pub(crate) open: bool,
    pub(crate) initials: String,
    pub(crate) opted_out: bool,
    pub(crate) last: String,
    pub(crate) iso: String,
    pub(crate) at: String,
}

impl Person {
    pub(crate) fn new(talk: &Talk, open: Option<Recipient>) -> Self {
        let number = talk.number.to_string();
        let (last, at) = match &talk.last {
            Bubble::Sent(sent) => (format!("You: {}", glimpse(&sent.0.text)), sent.0.accepted_at),
            Bubble::Received(message) => (glimpse(&message.text), message.received_at),
        };
        let (iso, at) = moment::day_and_clock(at);
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

    /// Whether a part of a number that somebody looks for is in theirs.
    pub(crate) fn fits(&self, query: &str) -> bool {
        let digits: String = query.chars().filter(char::is_ascii_digit).collect();
        query.is_empty() || !digits.is_empty() && self.number.contains(&digits)
    }
}
