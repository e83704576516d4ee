//! Keywords of inbound messages: STOP (and its synonyms) opts the sender out, START opts the sender in
//! again, and HELP is answered.

use crate::kernel::commands::progress::KeywordReply;
use crate::kernel::context::Context;
use async_recursion::async_recursion as boxed;
use heliograph_domain::account::Mode;
use heliograph_domain::id::{AccountId, InboundId, MessageId, OptoutListId};
use heliograph_domain::inbound::Keyword;
use heliograph_domain::inbound_message::InboundMessage;
use heliograph_domain::optout::{Optout, OptoutSource};
use heliograph_domain::phone::Recipient;
use heliograph_domain::time::Timestamp;
use heliograph_store::audience::optouts;
use heliograph_store::messaging::inbound_messages::UNASSIGNED;
use heliograph_store::messaging::keyword_replies::{self, KeywordAnswer};
use heliograph_store::messaging::{inbound_messages, messages};
use heliograph_store::{Conn, StoreResult};
use std::time::Duration;
use uuid::Uuid;

/// The number of stored messages processed at once.
const BATCH: i64 = 500;
/// The time after which a keyword of the same person to the same number is answered again. Otherwise
/// anyone could spend the balance of an account.
pub(crate) const ANSWER_AGAIN: Duration = Duration::from_secs(3_600);

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
            drop(apply_for_owner(cx, tx, &message, message.received_at).await?);
        }
    }
}

/// The result of applying a keyword.
#[derive(Default)]
pub(crate) struct KeywordEffect {
    /// The accounts that the sender opted out of and had not before.
    pub(crate) opted_out: Vec<AccountId>,
    /// The reply, if the operator configured one.
    pub(crate) confirmation: Option<KeywordReply>,
}

/// Applies the keyword of a message: for the account of the number, and for another account whose
/// message it answers. That account sent from the number before it was assigned.
pub(crate) async fn apply(
    cx: &Context,
    tx: &mut Conn,
    message: &InboundMessage,
    now: Timestamp,
) -> StoreResult<KeywordEffect> {
    let mut effect = apply_for_owner(cx, tx, message, now).await?;
    effect.opted_out.extend(apply_for_other_sender(tx, message, now).await?);
    Ok(effect)
}

/// Applies the keyword for the account of the message. A keyword that changes nothing gets no reply.
async fn apply_for_owner(
    cx: &Context,
    tx: &mut Conn,
    message: &InboundMessage,
    now: Timestamp,
) -> StoreResult<KeywordEffect> {
    let mut effect = KeywordEffect::default();
    let Some((keyword, person)) = keyword_and_person(message) else { return Ok(effect) };
    let whose = (message.account, message.mode);
    let lists = lists(tx, whose, message.in_reply_to).await?;
    if lists.is_empty() {
        return Ok(effect);
    }
    let replies = &cx.settings().keyword_replies;
    let (changed, text) = match keyword {
        Keyword::Stop => {
            let evidence = evidence(message, person, now);
            (stop(tx, &lists, &evidence).await?, &replies.stop)
        }
        Keyword::Start => (start(tx, &lists, person).await?, &replies.start),
        Keyword::Help => (true, &replies.help),
    };
    tracing::info!(id = %message.id, keyword = keyword.name(), changed, "inbound message");
    if changed && keyword == Keyword::Stop {
        effect.opted_out.push(message.account);
    }
    if let Some(text) = text.clone().filter(|_| changed) {
        let (account, mode) = whose;
        let number = message.to.clone();
        let answer = KeywordAnswer { account, mode, number, person, keyword, at: now };
        if keyword_replies::record(tx, &answer, now.before(ANSWER_AGAIN)).await? {
            effect.confirmation =
                Some(KeywordReply { account, mode, from: answer.number, to: person, text });
        }
    }
    Ok(effect)
}

/// Applies STOP and START for the account that sent the newest message from this number to the
/// person, if it is not the account of the number. Returns the account if the person has opted out
/// of it.
async fn apply_for_other_sender(
    tx: &mut Conn,
    message: &InboundMessage,
    now: Timestamp,
) -> StoreResult<Option<AccountId>> {
    let Some((keyword, person)) = keyword_and_person(message) else { return Ok(None) };
    // The simulated carrier knows which account a test message answers.
    if keyword == Keyword::Help || message.mode != Mode::Live {
        return Ok(None);
    }
    let answered = messages::latest_live(tx, person, &message.to).await?;
    let Some((account, answered)) = answered.filter(|(a, _)| *a != message.account) else {
        return Ok(None);
    };
    let lists = lists(tx, (account, message.mode), Some(answered)).await?;
    if keyword == Keyword::Start {
        start(tx, &lists, person).await?;
        return Ok(None);
    }
    let mut evidence = evidence(message, person, now);
    if message.account != UNASSIGNED {
        // The account cannot read the inbound message, which belongs to another one.
        evidence.message = None;
    }
    Ok(stop(tx, &lists, &evidence).await?.then_some(account))
}

fn keyword_and_person(message: &InboundMessage) -> Option<(Keyword, Recipient)> {
    Some((message.keyword?, Recipient::from_digits(&message.from)?))
}

/// Returns the lists of an account that a keyword applies to: the default list, and the list that
/// the answered message enforces. An account that does not exist has none.
async fn lists(
    tx: &mut Conn,
    whose: (AccountId, Mode),
    answered: Option<MessageId>,
) -> StoreResult<Vec<OptoutListId>> {
    let Some(default) = optouts::default_list(tx, whose).await? else { return Ok(Vec::new()) };
    let mut lists = vec![default.id];
    if let Some(answered) = answered
        && let Some(list) = messages::optout_list(tx, whose.0, answered).await?
        && list != default.id
        && optouts::get_list(tx, whose, list).await?.is_some()
    {
        lists.push(list);
    }
    Ok(lists)
}

fn evidence(message: &InboundMessage, number: Recipient, at: Timestamp) -> Optout {
    let originator = Some(message.to.clone());
    let source = OptoutSource::Reply;
    Optout { number, source, message: Some(message.id), originator, note: None, at }
}

/// Handles STOP: adds the sender to the opt-out lists. Returns whether that changed anything.
async fn stop(tx: &mut Conn, lists: &[OptoutListId], evidence: &Optout) -> StoreResult<bool> {
    let rows: Vec<_> = lists.iter().map(|list| (*list, evidence)).collect();
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
