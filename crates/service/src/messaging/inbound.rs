//! Receiving inbound messages: assembling their parts, finding their account, and storing them. Their
//! keywords (STOP, START, HELP) are applied by [`keywords`].

use crate::kernel::commands::progress::{InboundUpdate, KeywordReply};
use crate::kernel::context::Context;
use crate::kernel::metrics::metrics;
use crate::messaging::keywords;
use async_recursion::async_recursion as boxed;
use heliograph_domain::account::Mode;
use heliograph_domain::id::{AccountId, CarrierId, InboundId};
use heliograph_domain::inbound::{IncomingSms, keyword};
use heliograph_domain::inbound_message::InboundMessage;
use heliograph_domain::phone::Recipient;
use heliograph_domain::stats::{Measure, Tally};
use heliograph_domain::time::Timestamp;
use heliograph_store::messaging::conversations::{self, ConversationHead};
use heliograph_store::messaging::inbound_messages;
use heliograph_store::messaging::inbound_parts::{self, InboundPart, PartGroup};
use heliograph_store::messaging::messages;
use heliograph_store::operations::numbers;
use heliograph_store::{Conn, StoreResult};
use std::collections::BTreeMap;
use uuid::Uuid;

/// The inbound messages of one transaction.
#[derive(Debug, Default)]
pub struct InboundBatch {
    /// The stored messages.
    pub messages: Vec<InboundMessage>,
    /// The keyword replies, for each progress of the batch.
    pub confirmations: Vec<Vec<KeywordReply>>,
    /// The statistics.
    pub tally: Tally,
}

/// A complete message whose account is not known yet.
struct AssembledMessage {
    carrier: CarrierId,
    from: String,
    to: String,
    text: String,
    label: Option<i64>,
    complete: bool,
}

/// Returns the label of an account and a mode; a reply from a virtual handset carries it.
pub fn label(account: AccountId, mode: Mode) -> i64 {
    account.0.saturating_mul(2) + i64::from(mode.code())
}

fn owner_of(label: i64) -> Option<(AccountId, Mode)> {
    let mode = Mode::from_code(i16::try_from(label.rem_euclid(2)).ok()?)?;
    Some((AccountId(label.div_euclid(2)), mode))
}

/// Stores the inbound messages of a batch and applies their keywords.
#[boxed]
pub async fn receive(
    cx: &Context,
    tx: &mut Conn,
    inbound: &[&[InboundUpdate]],
    now: Timestamp,
) -> StoreResult<InboundBatch> {
    let mut taken = InboundBatch::default();
    for updates in inbound {
        let mut confirmations = Vec::new();
        for one in *updates {
            let whole = match one {
                InboundUpdate::Incoming(c, incoming) => assemble(tx, *c, incoming, now).await?,
                InboundUpdate::Overdue(group) => assemble_overdue(tx, group).await?,
            };
            for whole in whole {
                let message = resolve(cx, tx, whole, now).await?;
                let done = keywords::apply(cx, tx, &message, now).await?;
                if message.account != inbound_messages::UNASSIGNED {
                    taken.tally.add((message.account, message.mode), Measure::Inbound, 1);
                }
                for account in done.opted_out {
                    taken.tally.add((account, message.mode), Measure::OptedOut, 1);
                }
                confirmations.extend(done.confirmation);
                taken.messages.push(message);
            }
        }
        taken.confirmations.push(confirmations);
    }
    let all: Vec<_> = taken.messages.iter().collect();
    inbound_messages::insert(tx, &all).await?;
    conversations::upsert(tx, &conversation_heads(&taken.messages)).await?;
    Ok(taken)
}

/// Returns the conversations of these messages, in the order of their keys, so that two nodes never
/// deadlock. Alphanumeric senders and messages without an account have none.
pub fn conversation_heads(messages: &[InboundMessage]) -> Vec<ConversationHead> {
    let mut heads = BTreeMap::new();
    for message in messages.iter().filter(|m| m.account != inbound_messages::UNASSIGNED) {
        let Some(person) = Recipient::from_digits(&message.from) else { continue };
        let (account, mode, last_inbound) = (message.account, message.mode, message.id);
        let read_up_to = InboundId(Uuid::nil());
        let head = ConversationHead { account, mode, person, last_inbound, read_up_to };
        let newest = heads.entry((account.0, mode.code(), person.to_string())).or_insert(head);
        newest.last_inbound = newest.last_inbound.max(last_inbound);
    }
    heads.into_values().collect()
}

/// Returns the messages completed by an incoming part: none while a part is missing, and two when
/// its reference was reused before an earlier message was complete.
async fn assemble(
    tx: &mut Conn,
    carrier: CarrierId,
    incoming: &IncomingSms,
    now: Timestamp,
) -> StoreResult<Vec<AssembledMessage>> {
    let from = incoming.from.clone();
    let to = incoming.to.clone();
    let Some(concat) = incoming.concat.filter(|c| c.total > 1) else {
        let text = incoming.text.clone();
        let label = incoming.label;
        return Ok(vec![AssembledMessage { carrier, from, to, text, label, complete: true }]);
    };
    let group = PartGroup { carrier, from, to, reference: concat.reference, total: concat.total };
    let there = inbound_parts::list(tx, &group).await?;
    let mut whole = Vec::new();
    let mut count = there.len() + 1;
    if let Some(same) = there.iter().find(|p| p.sequence == concat.sequence) {
        if same.text == incoming.text {
            return Ok(whole); // a duplicate
        }
        let old = inbound_parts::delete_group(tx, &group).await?;
        whole.extend(joined(&group, old).map(|old| AssembledMessage { complete: false, ..old }));
        count = 1;
    }
    let text = incoming.text.clone();
    let label = incoming.label;
    let part = InboundPart { sequence: concat.sequence, text, label, assembled: false };
    inbound_parts::insert(tx, &group, &part, now).await?;
    if count == usize::from(group.total) {
        whole.extend(joined(&group, inbound_parts::mark_assembled(tx, &group).await?));
    }
    Ok(whole)
}

/// Completes a message without its missing parts, or one whose parts arrived on two nodes at once.
/// Another node may do so concurrently: the one that marks the parts as done gets them.
async fn assemble_overdue(tx: &mut Conn, group: &PartGroup) -> StoreResult<Vec<AssembledMessage>> {
    Ok(joined(group, inbound_parts::mark_assembled(tx, group).await?).into_iter().collect())
}

/// Joins the parts that were not joined before.
fn joined(group: &PartGroup, mut parts: Vec<InboundPart>) -> Option<AssembledMessage> {
    let label = parts.iter().find_map(|p| p.label);
    parts.retain(|p| !p.assembled);
    parts.sort_by_key(|p| p.sequence);
    if parts.is_empty() {
        return None;
    }
    Some(AssembledMessage {
        carrier: group.carrier,
        from: group.from.clone(),
        to: group.to.clone(),
        text: parts.iter().map(|p| p.text.as_str()).collect(),
        label,
        complete: parts.len() == usize::from(group.total),
    })
}

/// Finds the account of a message and the message that it replies to.
async fn resolve(
    cx: &Context,
    tx: &mut Conn,
    whole: AssembledMessage,
    now: Timestamp,
) -> StoreResult<InboundMessage> {
    let owner = match whole.label.and_then(owner_of) {
        Some(owner) => Some(owner),
        None => numbers::owner(tx, &whole.to).await?.map(|account| (account, Mode::Live)),
    };
    if owner.is_none() {
        metrics().inbound_unclaimed.inc();
        tracing::warn!(to = whole.to, "inbound message for an unassigned number stored");
    }
    let (account, mode) = owner.unwrap_or((inbound_messages::UNASSIGNED, Mode::Live));
    let mut in_reply_to = None;
    if let Some(person) = Recipient::from_digits(&whole.from) {
        in_reply_to = messages::latest_between(tx, (account, mode), person, &whole.to).await?;
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_label_round_trips() {
        for account in [1, 2, 77, i64::MAX / 4].map(AccountId) {
            for mode in [Mode::Live, Mode::Test] {
                assert_eq!(owner_of(label(account, mode)), Some((account, mode)));
            }
        }
    }
}
