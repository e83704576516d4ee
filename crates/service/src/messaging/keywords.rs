//! Keywords of inbound messages: STOP (and its synonyms) opts the sender out, START opts the sender in
//! again, and HELP is answered.

use crate::kernel::commands::progress::KeywordReply;
use crate::kernel::context::Context;
use async_recursion::async_recursion as boxed;
use heliograph_domain::id::{AccountId, InboundId, OptoutListId};
use heliograph_domain::inbound::Keyword;
use heliograph_domain::inbound_message::InboundMessage;
use heliograph_domain::optout::{Optout, OptoutSource};
use heliograph_domain::phone::Recipient;
use heliograph_domain::time::Timestamp;
use heliograph_store::audience::optouts;
use heliograph_store::messaging::{inbound_messages, messages};
use heliograph_store::{Conn, StoreResult};
use uuid::Uuid;

/// The number of stored messages processed at once.
const BATCH: i64 = 500;

/// Applies the keywords of messages that arrived before the number was assigned to the account.
/// Their senders get no reply any more.
#[boxed]
pub async fn process_backlog(
    cx: &Context,
    tx: &mut Conn,
    number: &str,
    account: AccountId,
) -> StoreResult<()> {
    let mut after = InboundId(Uuid::nil());
    loop {
        let all = inbound_messages::unassigned_with_keyword(tx, number, after, BATCH).await?;
        let Some(last) = all.last() else { return Ok(()) };
        after = last.id;
        for message in all {
            let message = InboundMessage { account, ..message };
            drop(apply(cx, tx, &message, message.received_at).await?);
        }
    }
}

/// The result of applying a keyword.
#[derive(Default)]
pub(crate) struct KeywordEffect {
    /// True if the sender opted out and had not before.
    pub(crate) opted_out: bool,
    /// The reply, if the operator configured one.
    pub(crate) confirmation: Option<KeywordReply>,
}

/// Applies the keyword of a message. A keyword that changes nothing gets no reply.
pub(crate) async fn apply(
    cx: &Context,
    tx: &mut Conn,
    message: &InboundMessage,
    now: Timestamp,
) -> StoreResult<KeywordEffect> {
    let Some(keyword) = message.keyword else { return Ok(KeywordEffect::default()) };
    let Some(person) = Recipient::from_digits(&message.from) else {
        return Ok(KeywordEffect::default());
    };
    let whose = (message.account, message.mode);
    let Some(default) = optouts::default_list(tx, whose).await? else {
        return Ok(KeywordEffect::default());
    };
    let mut lists = vec![default.id];
    if let Some(answered) = message.in_reply_to
        && let Some(list) = messages::optout_list(tx, message.account, answered).await?
        && list != default.id
        && optouts::get_list(tx, whose, list).await?.is_some()
    {
        lists.push(list);
    }
    let replies = &cx.settings().keyword_replies;
    let (changed, text) = match keyword {
        Keyword::Stop => (stop(tx, &lists, person, message, now).await?, &replies.stop),
        Keyword::Start => (start(tx, &lists, person).await?, &replies.start),
        Keyword::Help => (true, &replies.help),
    };
    tracing::info!(id = %message.id, keyword = keyword.name(), changed, "inbound message");
    let (account, mode) = whose;
    let from = message.to.clone();
    let text = text.clone().filter(|_| changed);
    let confirmation = text.map(|text| KeywordReply { account, mode, from, to: person, text });
    Ok(KeywordEffect { opted_out: changed && keyword == Keyword::Stop, confirmation })
}

/// Handles STOP: adds the sender to the opt-out lists. Returns whether that changed anything.
async fn stop(
    tx: &mut Conn,
    lists: &[OptoutListId],
    number: Recipient,
    message: &InboundMessage,
    at: Timestamp,
) -> StoreResult<bool> {
    let source = OptoutSource::Reply;
    let originator = Some(message.to.clone());
    let optout = Optout { number, source, message: Some(message.id), originator, note: None, at };
    let rows: Vec<_> = lists.iter().map(|list| (*list, &optout)).collect();
    Ok(!optouts::add(tx, &rows).await?.is_empty())
}

/// Handles START: removes the sender from the opt-out lists. Returns whether that changed anything.
async fn start(tx: &mut Conn, lists: &[OptoutListId], number: Recipient) -> StoreResult<bool> {
    let mut changed = false;
    for list in lists {
        changed |= optouts::remove(tx, *list, number).await?;
    }
    Ok(changed)
}
