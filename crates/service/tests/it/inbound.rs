//! Helpers for inbound messages: what a recipient sends, and what the account receives.

use crate::node::{ANN, Node};
use heliograph_domain::account_ref::AccountRef;
use heliograph_domain::id::InboundId;
use heliograph_domain::inbound::IncomingSms;
use heliograph_domain::inbound_message::InboundMessage;
use heliograph_domain::text::Concat;
use heliograph_service::identity::accounts;
use heliograph_service::kernel::caller::Caller;
use heliograph_service::kernel::commands::command::Command;
use heliograph_service::kernel::commands::progress::{
    InboundUpdate, KeywordReply, Progress, RecordProgress,
};
use heliograph_service::kernel::context::{KeywordReplies, Settings};
use heliograph_service::messaging::inbound_messages;
use heliograph_service::operations::numbers;
use std::sync::Arc;
use tokio::sync::{oneshot, watch};
use uuid::Uuid;

/// The account's phone number.
pub(crate) const NUMBER: &str = "447700900000";

/// Returns a message from Ann to the number.
pub(crate) fn incoming(text: &str) -> IncomingSms {
    let (from, to, text) = (ANN.to_string(), NUMBER.to_owned(), text.to_owned());
    IncomingSms { from, to, text, concat: None, label: None }
}

/// Returns one part of a message from Ann: (reference, total, sequence).
pub(crate) fn part((reference, total, sequence): (u16, u8, u8), text: &str) -> IncomingSms {
    IncomingSms { concat: Concat::new(reference, total, sequence), ..incoming(text) }
}

/// Assigns the number to the account with this email address.
pub(crate) async fn assign_number(node: &Node, email: &str) {
    let owner = AccountRef::Owner(email.to_owned());
    let account = accounts::resolve(&node.cx, &owner).await.unwrap().id;
    numbers::assign(&node.cx, NUMBER, account).await.unwrap();
}

/// Returns the messages as progress reported by the carrier.
pub(crate) fn inbound_progress(node: &Node, all: Vec<IncomingSms>) -> Progress {
    let updates = all.into_iter().map(|i| InboundUpdate::Incoming(node.carrier, i)).collect();
    Progress { inbound: updates, ..Progress::default() }
}

/// Commits inbound messages in one batch and returns the confirmations to send.
pub(crate) async fn receive(node: &Node, all: Vec<IncomingSms>) -> Vec<KeywordReply> {
    let (reply, mut answer) = oneshot::channel();
    node.write(vec![Command::RecordProgress(RecordProgress {
        progress: inbound_progress(node, all),
        reply,
    })])
    .await;
    answer.try_recv().unwrap().unwrap()
}

/// Returns the inbound messages of an account, oldest first.
pub(crate) async fn inbox(node: &Node, caller: &Caller) -> Vec<InboundMessage> {
    let newest = InboundId(Uuid::max());
    let mut all = inbound_messages::list(&node.cx, caller, newest, 100).await.unwrap();
    all.reverse();
    all
}

/// Returns the texts of an account's inbound messages, each with its complete flag.
pub(crate) async fn texts(node: &Node, caller: &Caller) -> Vec<(String, bool)> {
    inbox(node, caller).await.into_iter().map(|m| (m.text, m.complete)).collect()
}

/// Gives the node the accounts of the assigned numbers, as at its start.
pub(crate) async fn load_number_owners(node: &mut Node) {
    let number_owners = numbers::owners(&node.cx).await.unwrap();
    let settings = Settings { number_owners, ..(*node.cx.settings()).clone() };
    node.cx.settings = watch::channel(Arc::new(settings)).1;
}

/// Configures confirmations for keywords.
pub(crate) fn set_keyword_replies(node: &mut Node) {
    let reply = |text: &str| text.parse().ok();
    let keyword_replies =
        KeywordReplies { stop: reply("Bye"), start: reply("Hi"), help: reply("Ask us") };
    let settings = Settings { keyword_replies, ..(*node.cx.settings()).clone() };
    node.cx.settings = watch::channel(Arc::new(settings)).1;
}
