//! Conversations: sent and received messages with one person, in chronological order.

use crate::kernel::caller::Caller;
use crate::kernel::context::Context;
use crate::kernel::error::Result;
use async_recursion::async_recursion as boxed;
use heliograph_domain::account::Scope;
use heliograph_domain::id::{InboundId, MessageId};
use heliograph_domain::inbound_message::InboundMessage;
use heliograph_domain::message::{Message, MessageState};
use heliograph_domain::originator::Originator;
use heliograph_domain::phone::Recipient;
use heliograph_store::audience::optouts;
use heliograph_store::messaging::conversations;
use heliograph_store::messaging::conversations::ConversationHead;
pub use heliograph_store::messaging::conversations::ConversationPage;
use heliograph_store::messaging::inbound_messages;
use heliograph_store::messaging::messages;
use heliograph_store::messaging::messages::MessageFilter;
use std::collections::{HashMap, HashSet};
use uuid::Uuid;

/// The number of newest messages that are searched for the people who were written to last.
const NEWEST: usize = 500;

/// A message of a conversation.
#[derive(Clone, Debug)]
pub enum ConversationEntry {
    /// A message to the person.
    Sent(Box<(Message, MessageState)>),
    /// A message from the person.
    Received(Box<InboundMessage>),
}

impl ConversationEntry {
    /// Returns the id, which begins with the time of acceptance or receipt.
    pub fn id(&self) -> Uuid {
        match self {
            Self::Sent(sent) => sent.0.id.0,
            Self::Received(m) => m.id.0,
        }
    }
}

/// A person and the last message to them.
#[derive(Clone, Debug)]
pub struct RecentRecipient {
    /// The person's number.
    pub number: Recipient,
    /// The last message and its state.
    pub last: (Message, MessageState),
    /// True if the person is on the default opt-out list.
    pub opted_out: bool,
}

/// Returns the people who were written to last, at most `limit`, the latest first.
#[boxed]
pub async fn recent_recipients(
    cx: &Context,
    caller: &Caller,
    limit: usize,
) -> Result<Vec<RecentRecipient>> {
    caller.require_scope(Scope::Read)?;
    let mut conn = cx.db.read().await?;
    let whose = (caller.account, caller.mode);
    let newest = MessageId(Uuid::max());
    let page = messages::list(&mut conn, whose, &MessageFilter::default(), newest, NEWEST).await?;
    let mut met = HashSet::new();
    let mut last = page.messages;
    last.retain(|(m, _)| met.insert(m.recipient));
    last.truncate(limit);
    let pairs: Vec<_> = last.iter().map(|(m, _)| (caller.optout_list, m.recipient)).collect();
    let out: HashSet<_> = conn.query_many(optouts::listed(&pairs)).await?.into_iter().collect();
    let person = |last: (Message, MessageState)| RecentRecipient {
        number: last.0.recipient,
        opted_out: out.contains(&(caller.optout_list, last.0.recipient)),
        last,
    };
    Ok(last.into_iter().map(person).collect())
}

/// A person and their last message.
#[derive(Clone, Debug)]
pub struct Conversation {
    /// The person's number.
    pub number: Recipient,
    /// The person's last message.
    pub last: InboundMessage,
    /// True if no member has read the last message.
    pub unread: bool,
    /// True if the person is on the default opt-out list.
    pub opted_out: bool,
}

/// Returns a page of the conversations, the latest inbound message first. A search reads at most
/// 10,000 conversations.
pub async fn list(
    cx: &Context,
    caller: &Caller,
    page: ConversationPage<'_>,
) -> Result<Vec<Conversation>> {
    caller.require_scope(Scope::Read)?;
    let mut conn = cx.db.read().await?;
    let heads = conversations::list(&mut conn, (caller.account, caller.mode), page).await?;
    let keys: Vec<_> = heads.iter().map(|head| (head.account, head.last_inbound)).collect();
    let last = inbound_messages::get_many(&mut conn, &keys).await?;
    let mut last: HashMap<_, _> = last.into_iter().map(|m| (m.id, m)).collect();
    let pairs: Vec<_> = heads.iter().map(|head| (caller.optout_list, head.person)).collect();
    let out: HashSet<_> = conn.query_many(optouts::listed(&pairs)).await?.into_iter().collect();
    let conversation = |head: &ConversationHead| {
        Some(Conversation {
            number: head.person,
            last: last.remove(&head.last_inbound)?,
            unread: head.read_up_to < head.last_inbound,
            opted_out: out.contains(&(caller.optout_list, head.person)),
        })
    };
    Ok(heads.iter().filter_map(conversation).collect())
}

/// Marks a conversation as read, if the caller may answer it. Someone who can only read leaves the
/// mark to those who can.
#[boxed]
pub async fn mark_read(cx: &Context, caller: &Caller, person: Recipient) -> Result<()> {
    if !caller.scopes.allow(Scope::Send) {
        return Ok(());
    }
    let whose = (caller.account, caller.mode);
    if !conversations::is_unread(&mut cx.db.read().await?, whose, person).await? {
        return Ok(());
    }
    let mut tx = cx.db.write().await?;
    conversations::mark_read(&mut tx, whose, person).await?;
    Ok(tx.commit().await?)
}

/// Merges both directions, the oldest message first.
fn merged(
    sent: Vec<(Message, MessageState)>,
    received: Vec<InboundMessage>,
) -> Vec<ConversationEntry> {
    let mut all: Vec<ConversationEntry> =
        sent.into_iter().map(|s| ConversationEntry::Sent(Box::new(s))).collect();
    all.extend(received.into_iter().map(|m| ConversationEntry::Received(Box::new(m))));
    all.sort_by_key(ConversationEntry::id);
    all
}

/// Returns the newest `limit` messages of a conversation below `before`, the oldest first.
#[boxed]
pub async fn entries(
    cx: &Context,
    caller: &Caller,
    person: Recipient,
    before: Uuid,
    limit: usize,
) -> Result<Vec<ConversationEntry>> {
    caller.require_scope(Scope::Read)?;
    let mut conn = cx.db.read().await?;
    let whose = (caller.account, caller.mode);
    let filter = MessageFilter { recipient: Some(person), ..MessageFilter::default() };
    let sent = messages::list(&mut conn, whose, &filter, MessageId(before), limit).await?.messages;
    let page = (InboundId(before), i64::try_from(limit).unwrap_or(i64::MAX));
    let sender = person.to_string();
    let received = inbound_messages::list_for_sender(&mut conn, whose, &sender, page).await?;
    let mut all = merged(sent, received);
    Ok(all.split_off(all.len().saturating_sub(limit)))
}

/// Returns the originator for a reply: the number that the person wrote to last, otherwise the
/// originator of the last message to them.
#[boxed]
pub async fn reply_originator(
    cx: &Context,
    caller: &Caller,
    person: Recipient,
) -> Result<Option<Originator>> {
    caller.require_scope(Scope::Read)?;
    let mut conn = cx.db.read().await?;
    let whose = (caller.account, caller.mode);
    let sender = person.to_string();
    let last = (InboundId(Uuid::max()), 1);
    let received = inbound_messages::list_for_sender(&mut conn, whose, &sender, last).await?;
    let owners = &cx.settings().number_owners;
    if let Some(Ok(number)) = received.first().map(|m| owners.originator(caller.account, &m.to)) {
        return Ok(Some(number));
    }
    let filter = MessageFilter { recipient: Some(person), ..MessageFilter::default() };
    let sent = messages::list(&mut conn, whose, &filter, MessageId(Uuid::max()), 1).await?;
    Ok(sent.messages.into_iter().next().map(|(message, _)| message.originator))
}

/// Returns whether a person is on the account's default opt-out list.
#[boxed]
pub async fn opted_out(cx: &Context, caller: &Caller, person: Recipient) -> Result<bool> {
    let mut conn = cx.db.read().await?;
    Ok(!conn.query_many(optouts::listed(&[(caller.optout_list, person)])).await?.is_empty())
}
