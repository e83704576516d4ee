//! People who write: what comes from them, and what the account sees of it.

use crate::node::{ANN, Node};
use heliograph_domain::id::InboundId;
use heliograph_domain::inbound::Incoming;
use heliograph_domain::inbound_message::InboundMessage;
use heliograph_domain::text::Concat;
use heliograph_service::caller::Caller;
use heliograph_service::context::{Replies, Settings};
use heliograph_service::replies::{Confirmation, Heard};
use heliograph_service::writer::{Command, Progress};
use heliograph_service::{inbound_messages, nodes};
use std::sync::Arc;
use tokio::sync::{oneshot, watch};
use uuid::Uuid;

/// The number that people write to.
pub(crate) const NUMBER: &str = "447700900000";

/// What Ann writes to the number.
pub(crate) fn says(text: &str) -> Incoming {
    let (from, to, text) = (ANN.to_string(), NUMBER.to_owned(), text.to_owned());
    Incoming { from, to, text, concat: None, label: None }
}

/// One part of what she writes: (reference, total, sequence).
pub(crate) fn part((reference, total, sequence): (u16, u8, u8), text: &str) -> Incoming {
    Incoming { concat: Concat::new(reference, total, sequence), ..says(text) }
}

/// Gives the number to the account of this person.
pub(crate) async fn has_number(node: &Node, email: &str) {
    let all = [(NUMBER.to_owned(), email.to_owned())];
    nodes::assign_numbers(&node.cx, &all).await.unwrap();
}

/// As news from the carrier.
pub(crate) fn news(node: &Node, all: Vec<Incoming>) -> Progress {
    let heard = all.into_iter().map(|i| Heard::Incoming(node.carrier, i)).collect();
    Progress { heard, ..Progress::default() }
}

/// Takes in what people send, in one batch; what they are answered.
pub(crate) async fn hear(node: &Node, all: Vec<Incoming>) -> Vec<Confirmation> {
    let (reply, mut answer) = oneshot::channel();
    node.write(vec![Command::Progress(news(node, all), reply)]).await;
    answer.try_recv().unwrap().unwrap()
}

/// What an account was sent, the oldest first.
pub(crate) async fn inbox(node: &Node, caller: &Caller) -> Vec<InboundMessage> {
    let newest = InboundId(Uuid::max());
    let mut all = inbound_messages::list(&node.cx, caller, newest, 100).await.unwrap();
    all.reverse();
    all
}

/// The texts of what an account was sent, and whether each is complete.
pub(crate) async fn texts(node: &Node, caller: &Caller) -> Vec<(String, bool)> {
    inbox(node, caller).await.into_iter().map(|m| (m.text, m.complete)).collect()
}

/// Has people answered from now on.
pub(crate) fn answers(node: &mut Node) {
    let words = |text: &str| Some(text.to_owned());
    let replies = Replies { stop: words("Bye"), start: words("Hi"), help: words("Ask us") };
    let settings = Settings { replies, ..(*node.cx.settings()).clone() };
    node.cx.settings = watch::channel(Arc::new(settings)).1;
}
