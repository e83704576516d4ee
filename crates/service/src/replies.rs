//! Replies: what people send is put together, finds its account, and does what its one word asks for.

use crate::context::Context;
use heliograph_domain::account::Mode;
use heliograph_domain::id::{AccountId, CarrierId, InboundId, OptoutListId};
use heliograph_domain::inbound::{Incoming, Keyword, keyword};
use heliograph_domain::inbound_message::InboundMessage;
use heliograph_domain::optout::{Optout, Source};
use heliograph_domain::phone::Recipient;
use heliograph_domain::stats::{Measure, Tally};
use heliograph_domain::time::Timestamp;
use heliograph_store::inbound_parts::{self, Group, Part};
use heliograph_store::{Conn, Result, inbound_messages, messages, numbers, optouts};
use uuid::Uuid;

/// Messages that are caught up with at once.
const BATCH: i64 = 500;

/// Something that may make a message of a person complete.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Heard {
    /// A carrier brought it.
    Incoming(CarrierId, Incoming),
    /// Its other parts have not come for too long: what is there is the message.
    Overdue(Group),
}

/// An answer that the operator wants people to get.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Confirmation {
    /// In whose name.
    pub account: AccountId,
    /// In which world.
    pub mode: Mode,
    /// The number that was written to.
    pub from: String,
    /// Who wrote.
    pub to: Recipient,
    /// What to say.
    pub text: String,
}

/// What one transaction took in.
#[derive(Debug, Default)]
pub struct TakenIn {
    /// For the accounts.
    pub messages: Vec<InboundMessage>,
    /// For the people who wrote, by the batch's pieces of news.
    pub confirmations: Vec<Vec<Confirmation>>,
    /// What came, and who opted out by it.
    pub tally: Tally,
}

/// A whole message on its way to its account.
struct Whole {
    carrier: CarrierId,
    from: String,
    to: String,
    text: String,
    label: Option<i64>,
    complete: bool,
}

/// A label names an account and a mode: what a reply from a virtual handset brings back.
pub fn label(account: AccountId, mode: Mode) -> i64 {
    account.0.saturating_mul(2) + i64::from(mode.code())
}

fn owner_of(label: i64) -> Option<(AccountId, Mode)> {
    let mode = Mode::from_code(i16::try_from(label.rem_euclid(2)).ok()?)?;
    Some((AccountId(label.div_euclid(2)), mode))
}

/// Takes in what people sent, by the batch's pieces of news.
///
/// # Errors
/// As any write.
pub async fn take_in(
    cx: &Context,
    tx: &mut Conn,
    news: &[&[Heard]],
    now: Timestamp,
) -> Result<TakenIn> {
    let mut taken = TakenIn::default();
    for heard in news {
        let mut confirmations = Vec::new();
        for one in *heard {
            let whole = match one {
                Heard::Incoming(c, incoming) => put_together(tx, *c, incoming, now).await?,
                Heard::Overdue(group) => as_it_is(tx, group).await?,
            };
            for whole in whole {
                let message = keep(cx, tx, whole, now).await?;
                let done = obey(cx, tx, &message, now).await?;
                if message.account != inbound_messages::NOBODY {
                    let whose = (message.account, message.mode);
                    taken.tally.add(whose, Measure::Inbound, 1);
                    taken.tally.add(whose, Measure::OptedOut, done.opted_out.into());
                }
                confirmations.extend(done.confirmation);
                taken.messages.push(message);
            }
        }
        taken.confirmations.push(confirmations);
    }
    let all: Vec<_> = taken.messages.iter().collect();
    inbound_messages::insert(tx, &all).await?;
    Ok(taken)
}

/// The messages that an incoming part completes: none as long as one is missing, and two when its reference was
/// used before for one that never became whole.
async fn put_together(
    tx: &mut Conn,
    carrier: CarrierId,
    incoming: &Incoming,
    now: Timestamp,
) -> Result<Vec<Whole>> {
    let (from, to) = (incoming.from.clone(), incoming.to.clone());
    let Some(concat) = incoming.concat.filter(|c| c.total > 1) else {
        let (text, label) = (incoming.text.clone(), incoming.label);
        return Ok(vec![Whole { carrier, from, to, text, label, complete: true }]);
    };
    let group = Group { carrier, from, to, reference: concat.reference, total: concat.total };
    let there = inbound_parts::of(tx, &group).await?;
    let (mut whole, mut count) = (Vec::new(), there.len() + 1);
    if let Some(same) = there.iter().find(|p| p.sequence == concat.sequence) {
        if same.text == incoming.text {
            return Ok(whole); // It came twice.
        }
        let old = inbound_parts::forget(tx, &group).await?;
        whole.extend(joined(&group, old).map(|old| Whole { complete: false, ..old }));
        count = 1;
    }
    let (text, label) = (incoming.text.clone(), incoming.label);
    let part = Part { sequence: concat.sequence, text, label, done: false };
    inbound_parts::insert(tx, &group, &part, now).await?;
    if count == usize::from(group.total) {
        whole.extend(joined(&group, inbound_parts::finish(tx, &group).await?));
    }
    Ok(whole)
}

/// What there is of a message whose other parts will not come (or came over two nodes at once). Another node may be
/// at it: whoever marks its parts as done has them, and only those.
async fn as_it_is(tx: &mut Conn, group: &Group) -> Result<Vec<Whole>> {
    Ok(joined(group, inbound_parts::finish(tx, group).await?).into_iter().collect())
}

/// The text of the parts that are there and have not been put together before.
fn joined(group: &Group, mut parts: Vec<Part>) -> Option<Whole> {
    let label = parts.iter().find_map(|p| p.label);
    parts.retain(|p| !p.done);
    parts.sort_by_key(|p| p.sequence);
    if parts.is_empty() {
        return None;
    }
    Some(Whole {
        carrier: group.carrier,
        from: group.from.clone(),
        to: group.to.clone(),
        text: parts.iter().map(|p| p.text.as_str()).collect(),
        label,
        complete: parts.len() == usize::from(group.total),
    })
}

/// Finds whose a message is, and what it answers.
async fn keep(cx: &Context, tx: &mut Conn, whole: Whole, now: Timestamp) -> Result<InboundMessage> {
    let owner = match whole.label.and_then(owner_of) {
        Some(owner) => Some(owner),
        None => numbers::owner(tx, &whole.to).await?.map(|account| (account, Mode::Live)),
    };
    if owner.is_none() {
        metrics::counter!("heliograph_inbound_unclaimed_total").increment(1);
        tracing::warn!(
            to = whole.to,
            "a message to a number that [[numbers]] gives to nobody is kept for who gets it"
        );
    }
    let (account, mode) = owner.unwrap_or((inbound_messages::NOBODY, Mode::Live));
    let mut in_reply_to = None;
    if let Some(person) = Recipient::from_digits(&whole.from) {
        in_reply_to = messages::last_between(tx, (account, mode), person, &whole.to).await?;
    }
    Ok(InboundMessage {
        id: InboundId(cx.ids.next(now)),
        account,
        mode,
        carrier: whole.carrier,
        from: whole.from,
        to: whole.to,
        keyword: keyword(&whole.text),
        text: whole.text,
        received_at: now,
        in_reply_to,
        complete: whole.complete,
    })
}

/// Does what people asked for who wrote to this number before the account had it. They are not answered any more.
///
/// # Errors
/// As any write.
pub async fn catch_up(cx: &Context, tx: &mut Conn, number: &str, account: AccountId) -> Result<()> {
    let mut after = InboundId(Uuid::nil());
    loop {
        let all = inbound_messages::unclaimed_wishes(tx, number, after, BATCH).await?;
        let Some(last) = all.last() else { return Ok(()) };
        after = last.id;
        for message in all {
            let message = InboundMessage { account, ..message };
            drop(obey(cx, tx, &message, message.received_at).await?);
        }
    }
}

/// What came of a message of one known word.
#[derive(Default)]
struct Done {
    /// Whether its sender was not on the list before.
    opted_out: bool,
    /// The answer to it, when the operator wants one.
    confirmation: Option<Confirmation>,
}

/// Does what a message of one known word asks for. Who asks for what is so already is not answered.
async fn obey(
    cx: &Context,
    tx: &mut Conn,
    message: &InboundMessage,
    now: Timestamp,
) -> Result<Done> {
    let Some(keyword) = message.keyword else { return Ok(Done::default()) };
    let Some(person) = Recipient::from_digits(&message.from) else { return Ok(Done::default()) };
    let whose = (message.account, message.mode);
    let Some(standard) = optouts::standard(tx, whose).await? else { return Ok(Done::default()) };
    let mut lists = vec![standard.id];
    if let Some(answered) = message.in_reply_to
        && let Some(list) = messages::optout_list(tx, message.account, answered).await?
        && list != standard.id
        && optouts::get(tx, whose, list).await?.is_some()
    {
        lists.push(list);
    }
    let replies = &cx.settings().replies;
    let (changed, text) = match keyword {
        Keyword::Stop => (stop(tx, &lists, person, message, now).await?, &replies.stop),
        Keyword::Start => (start(tx, &lists, person).await?, &replies.start),
        Keyword::Help => (true, &replies.help),
    };
    tracing::info!(id = %message.id, keyword = keyword.name(), changed, "inbound message");
    let (account, mode) = whose;
    let (from, text) = (message.to.clone(), text.clone().filter(|_| changed));
    let confirmation = text.map(|text| Confirmation { account, mode, from, to: person, text });
    Ok(Done { opted_out: changed && keyword == Keyword::Stop, confirmation })
}

async fn stop(
    tx: &mut Conn,
    lists: &[OptoutListId],
    number: Recipient,
    message: &InboundMessage,
    at: Timestamp,
) -> Result<bool> {
    let (source, originator) = (Source::Reply, Some(message.to.clone()));
    let optout = Optout { number, source, message: Some(message.id), originator, note: None, at };
    let rows: Vec<_> = lists.iter().map(|list| (*list, &optout)).collect();
    Ok(!optouts::add(tx, &rows).await?.is_empty())
}

async fn start(tx: &mut Conn, lists: &[OptoutListId], number: Recipient) -> Result<bool> {
    let mut changed = false;
    for list in lists {
        changed |= optouts::remove(tx, *list, number).await?;
    }
    Ok(changed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_label_leads_back() {
        for account in [1, 2, 77, i64::MAX / 4].map(AccountId) {
            for mode in [Mode::Live, Mode::Test] {
                assert_eq!(owner_of(label(account, mode)), Some((account, mode)));
            }
        }
    }
}
