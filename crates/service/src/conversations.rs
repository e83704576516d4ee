//! Conversations: what was sent to a person and what they wrote, in the order of time.

use crate::caller::Caller;
use crate::context::Context;
use crate::error::Result;
use heliograph_domain::account::Scope;
use heliograph_domain::id::{InboundId, MessageId};
use heliograph_domain::inbound_message::InboundMessage;
use heliograph_domain::message::{Message, State};
use heliograph_domain::originator::Originator;
use heliograph_domain::phone::Recipient;
use heliograph_store::messages::Filter;
use heliograph_store::{inbound_messages, messages, optouts};
use std::collections::HashSet;
use uuid::Uuid;

/// Messages among which the people are looked for who were written to last.
const NEWEST: usize = 500;

/// One thing that was said.
#[derive(Clone, Debug)]
pub enum Bubble {
    /// To the person.
    Sent(Box<(Message, State)>),
    /// By the person.
    Received(Box<InboundMessage>),
}

impl Bubble {
    /// Its id, which begins with the time when it was accepted, or received.
    pub fn id(&self) -> Uuid {
        match self {
            Self::Sent(sent) => sent.0.id.0,
            Self::Received(m) => m.id.0,
        }
    }

    /// The person; none where a name or nobody's number wrote.
    fn person(&self) -> Option<Recipient> {
        match self {
            Self::Sent(sent) => Some(sent.0.recipient),
            Self::Received(m) => Recipient::from_digits(&m.from),
        }
    }
}

/// A person, and the last message to them.
#[derive(Clone, Debug)]
pub struct Person {
    /// The person's number.
    pub number: Recipient,
    /// The last message to them, and where it stands.
    pub last: (Message, State),
    /// Whether they are on the default opt-out list.
    pub opted_out: bool,
}

/// The people who were written to last, at most `limit`, the latest first.
///
/// # Errors
/// [`crate::error::Error::Scope`], or what keeps the database away.
pub async fn people(cx: &Context, caller: &Caller, limit: usize) -> Result<Vec<Person>> {
    caller.needs(Scope::Read)?;
    let mut conn = cx.db.read().await?;
    let (whose, newest) = ((caller.account, caller.mode), MessageId(Uuid::max()));
    let page = messages::list(&mut conn, whose, &Filter::default(), newest, NEWEST).await?;
    let mut met = HashSet::new();
    let mut last = page.messages;
    last.retain(|(m, _)| met.insert(m.recipient));
    last.truncate(limit);
    let pairs: Vec<_> = last.iter().map(|(m, _)| (caller.optout_list, m.recipient)).collect();
    let out: HashSet<_> = conn.ask(optouts::listed(&pairs)).await?.into_iter().collect();
    let person = |last: (Message, State)| Person {
        number: last.0.recipient,
        opted_out: out.contains(&(caller.optout_list, last.0.recipient)),
        last,
    };
    Ok(last.into_iter().map(person).collect())
}

/// A person, and what was said last.
#[derive(Clone, Debug)]
pub struct Talk {
    /// The person's number.
    pub number: Recipient,
    /// By either.
    pub last: Bubble,
    /// Whether they are on the default opt-out list.
    pub opted_out: bool,
}

/// The people with whom something was said last, at most `limit`, the latest first. They are looked for among the
/// newest messages to and from people, so that this takes no longer however many there are.
///
/// # Errors
/// [`crate::error::Error::Scope`], or what keeps the database away.
pub async fn latest(cx: &Context, caller: &Caller, limit: usize) -> Result<Vec<Talk>> {
    caller.needs(Scope::Read)?;
    let mut conn = cx.db.read().await?;
    let (whose, newest) = ((caller.account, caller.mode), MessageId(Uuid::max()));
    let sent = messages::list(&mut conn, whose, &Filter::default(), newest, NEWEST).await?;
    let most = i64::try_from(NEWEST).unwrap_or(i64::MAX);
    let received = inbound_messages::newest(&mut conn, whose, most).await?;
    let mut met = HashSet::new();
    let mut last = merged(sent.messages, received);
    last.reverse();
    let mut last: Vec<_> = last.into_iter().filter_map(|b| Some((b.person()?, b))).collect();
    last.retain(|(number, _)| met.insert(*number));
    last.truncate(limit);
    let pairs: Vec<_> = last.iter().map(|(number, _)| (caller.optout_list, *number)).collect();
    let out: HashSet<_> = conn.ask(optouts::listed(&pairs)).await?.into_iter().collect();
    let is_out = |number| out.contains(&(caller.optout_list, number));
    let talk = |(number, last)| Talk { number, last, opted_out: is_out(number) };
    Ok(last.into_iter().map(talk).collect())
}

/// All of it, the oldest first.
fn merged(sent: Vec<(Message, State)>, received: Vec<InboundMessage>) -> Vec<Bubble> {
    let mut all: Vec<Bubble> = sent.into_iter().map(|s| Bubble::Sent(Box::new(s))).collect();
    all.extend(received.into_iter().map(|m| Bubble::Received(Box::new(m))));
    all.sort_by_key(Bubble::id);
    all
}

/// What was said between the account and a person before `before`, the newest `limit`, the oldest of these first.
///
/// # Errors
/// [`crate::error::Error::Scope`], or what keeps the database away.
pub async fn with(
    cx: &Context,
    caller: &Caller,
    person: Recipient,
    (before, limit): (Uuid, usize),
) -> Result<Vec<Bubble>> {
    caller.needs(Scope::Read)?;
    let mut conn = cx.db.read().await?;
    let whose = (caller.account, caller.mode);
    let filter = Filter { recipient: Some(person), ..Filter::default() };
    let sent = messages::list(&mut conn, whose, &filter, MessageId(before), limit).await?.messages;
    let page = (InboundId(before), i64::try_from(limit).unwrap_or(i64::MAX));
    let sender = person.to_string();
    let received = inbound_messages::of_sender(&mut conn, whose, &sender, page).await?;
    let mut all = merged(sent, received);
    Ok(all.split_off(all.len().saturating_sub(limit)))
}

/// Who answers a person: the number that they wrote to last, else who wrote to them last.
///
/// # Errors
/// [`crate::error::Error::Scope`], or what keeps the database away.
pub async fn answers_as(
    cx: &Context,
    caller: &Caller,
    person: Recipient,
) -> Result<Option<Originator>> {
    caller.needs(Scope::Read)?;
    let mut conn = cx.db.read().await?;
    let whose = (caller.account, caller.mode);
    let (sender, last) = (person.to_string(), (InboundId(Uuid::max()), 1));
    let received = inbound_messages::of_sender(&mut conn, whose, &sender, last).await?;
    if let Some(Ok(number)) = received.first().map(|m| m.to.parse()) {
        return Ok(Some(number));
    }
    let filter = Filter { recipient: Some(person), ..Filter::default() };
    let sent = messages::list(&mut conn, whose, &filter, MessageId(Uuid::max()), 1).await?;
    Ok(sent.messages.into_iter().next().map(|(message, _)| message.originator))
}

/// Whether a person is on the account's default opt-out list.
///
/// # Errors
/// What keeps the database away.
pub async fn opted_out(cx: &Context, caller: &Caller, person: Recipient) -> Result<bool> {
    let mut conn = cx.db.read().await?;
    Ok(!conn.ask(optouts::listed(&[(caller.optout_list, person)])).await?.is_empty())
}
