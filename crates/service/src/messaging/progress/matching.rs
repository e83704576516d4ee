//! Matching of submit responses and delivery receipts, which carriers may spell differently.
//!
//! Ids are stored and looked up in their normalized form. Where this form differs, the other number
//! base and the swapped addresses are tried, on whichever side comes second.

use crate::kernel::commands::progress::Settlement;
use heliograph_domain::id::{CarrierId, PartKey};
use heliograph_domain::phone::Recipient;
use heliograph_domain::receipt::{Receipt, ReceiptOutcome, ids_in_other_base, normalized_id};
use heliograph_domain::time::Timestamp;
use heliograph_store::messaging::carrier_refs::{
    self, AcceptedPart, MatchedReceipt, RefKey, StoredReceipt,
};
use heliograph_store::{Conn, StoreResult};
use std::collections::{HashMap, HashSet};
use std::time::Duration;

/// The age up to which an early receipt is matched by another spelling of its id. A submit response
/// comes within a minute or never.
pub const EARLY: Duration = Duration::from_secs(150);

/// A carrier and a normalized id.
type RefName = (CarrierId, String);
/// A part that ended, and how.
type EndedPart = (PartKey, ReceiptOutcome);

/// Receipts that are not matched yet, and those matched within the batch.
pub(super) struct UnmatchedReceipts<'a> {
    waiting: HashMap<RefName, &'a Receipt>,
    pub(super) met: Vec<EndedPart>,
}

impl<'a> UnmatchedReceipts<'a> {
    pub(super) fn new(receipts: &[&'a (CarrierId, Receipt)]) -> Self {
        let named = |(carrier, r): &&'a (CarrierId, Receipt)| {
            let Some(id) = normalized_id(&r.smsc_id) else {
                tracing::warn!(carrier = carrier.0, "receipt with an empty or too long id ignored");
                return None;
            };
            Some(((*carrier, id), r))
        };
        Self { waiting: receipts.iter().filter_map(named).collect(), met: Vec::new() }
    }
}

/// An accepted part, and the number that a receipt with swapped addresses names as its recipient.
pub(super) struct NewPart {
    part: AcceptedPart,
    originator: Option<Recipient>,
}

impl NewPart {
    /// Returns whether a receipt may name the part differently.
    fn can_differ(&self) -> bool {
        self.originator.is_some() || ids_in_other_base(&self.part.smsc_id).next().is_some()
    }
}

/// Returns the accepted parts whose receipt is not in the same batch. Where it is, both halves are
/// known and neither needs to be stored.
pub(super) fn accepted_parts(
    settlements: &[&Settlement],
    unmatched: &mut UnmatchedReceipts<'_>,
) -> Vec<NewPart> {
    let mut accepted = Vec::new();
    for s in settlements {
        for (number, smsc_id) in &s.accepted_parts {
            // Part 0 stands for the whole of a single-part message, which has no rows in `parts`.
            let number = if s.parts == 1 { 0 } else { *number };
            let part = (s.lease.account, s.lease.message, number);
            // A part without a usable id is stored too, so that its receipt can time out.
            let smsc_id = normalized_id(smsc_id)
                .unwrap_or_else(|| format!("no-id-{}-{number}", s.lease.message));
            let name = (s.lease.carrier, smsc_id);
            match unmatched.waiting.get(&name) {
                Some(r) if addresses(r).any(|to| to == s.recipient) => {
                    unmatched.met.push((part, r.outcome.clone()));
                    unmatched.waiting.remove(&name);
                }
                _ => accepted.push(NewPart {
                    part: AcceptedPart {
                        carrier: name.0,
                        smsc_id: name.1,
                        part,
                        recipient: s.recipient,
                    },
                    originator: s.originator,
                }),
            }
        }
    }
    accepted
}

/// Returns the addresses of a receipt that may be the recipient of the message.
fn addresses(receipt: &Receipt) -> impl Iterator<Item = Recipient> {
    let swapped = receipt.destination.filter(|to| *to != receipt.recipient);
    std::iter::once(receipt.recipient).chain(swapped)
}

/// Records accepted parts, and returns those whose receipt has come before.
pub(super) async fn record_accepted(
    tx: &mut Conn,
    accepted: Vec<NewPart>,
    now: Timestamp,
) -> StoreResult<Vec<EndedPart>> {
    let (mut met, accepted) = differing_early_receipts(tx, accepted, now).await?;
    let found = carrier_refs::record_accepted(tx, &accepted, now).await?;
    met.extend(found.into_iter().map(|m| (m.part, m.outcome)));
    Ok(met)
}

/// Takes out the accepted parts whose receipt came before, with the id in the other number base or
/// with swapped addresses.
async fn differing_early_receipts(
    tx: &mut Conn,
    accepted: Vec<NewPart>,
    now: Timestamp,
) -> StoreResult<(Vec<EndedPart>, Vec<AcceptedPart>)> {
    let since = now.before(EARLY);
    let mut met: HashMap<PartKey, ReceiptOutcome> = HashMap::new();
    if accepted.iter().any(NewPart::can_differ)
        && carrier_refs::has_early_receipts(tx, since).await?
    {
        let wanted = differing_names(&accepted);
        let names: Vec<_> = wanted.keys().collect();
        for (name, outcome) in carrier_refs::take_early_receipts(tx, &names, since).await? {
            met.extend(wanted.get(&name).map(|part| (*part, outcome)));
        }
    }
    let parts = accepted.into_iter().map(|a| a.part);
    let rest = parts.filter(|a| !met.contains_key(&a.part)).collect();
    Ok((met.into_iter().collect(), rest))
}

/// Returns the names that the receipts of accepted parts have if they differ from the names of the
/// parts.
fn differing_names(accepted: &[NewPart]) -> HashMap<RefKey, PartKey> {
    // An id as written takes precedence over one that is only equal in the other base.
    let written: HashSet<_> =
        accepted.iter().map(|a| (a.part.carrier, a.part.smsc_id.as_str())).collect();
    let mut names = HashMap::new();
    for NewPart { part, originator } in accepted {
        let carrier = part.carrier;
        let mut add = |smsc_id: &str, recipient| {
            let smsc_id = smsc_id.to_owned();
            names.insert(RefKey { carrier, smsc_id, recipient }, part.part);
        };
        for other in ids_in_other_base(&part.smsc_id) {
            if !written.contains(&(carrier, other.as_str())) {
                std::iter::once(part.recipient).chain(*originator).for_each(|to| add(&other, to));
            }
        }
        originator.iter().for_each(|from| add(&part.smsc_id, *from));
    }
    names
}

/// Matches receipts with their parts, first by the normalized id, then by its other spellings. A
/// receipt without a match is stored and waits for its submit response.
pub(super) async fn match_receipts(
    tx: &mut Conn,
    unmatched: UnmatchedReceipts<'_>,
    now: Timestamp,
) -> StoreResult<Vec<EndedPart>> {
    let waiting = unmatched.waiting;
    let mut met = Vec::new();
    let names: Vec<_> = waiting.iter().map(|((c, id), r)| (*c, id.as_str(), r.recipient)).collect();
    let found = carrier_refs::take_matching(tx, &names).await?;
    let mut unknown = waiting.clone();
    for (carrier, id, part) in found {
        if let Some(receipt) = unknown.remove(&(carrier, id)) {
            met.push((part, receipt.outcome.clone()));
        }
    }
    met.extend(other_spellings(tx, &mut unknown).await?);
    let unknown = unknown.into_iter().map(|((carrier, smsc_id), receipt)| StoredReceipt {
        carrier,
        smsc_id,
        recipient: receipt.recipient,
        outcome: receipt.outcome.clone(),
    });
    let found = carrier_refs::record_receipts(tx, &unknown.collect::<Vec<_>>(), now).await?;
    met.extend(found.into_iter().map(|MatchedReceipt { part, outcome, .. }| (part, outcome)));
    Ok(met)
}

/// Takes out the receipts that match by another spelling of their id or by swapped addresses: one
/// possibility of each at a time, so that a receipt matches at most one part.
async fn other_spellings(
    tx: &mut Conn,
    unknown: &mut HashMap<RefName, &Receipt>,
) -> StoreResult<Vec<EndedPart>> {
    let mut met = Vec::new();
    let mut candidates: Vec<_> = unknown
        .iter()
        .map(|(name, receipt)| (name.clone(), candidates(&name.1, receipt).into_iter()))
        .collect();
    loop {
        let mut spelled: HashMap<RefKey, RefName> = HashMap::new();
        for (name, rest) in &mut candidates {
            if unknown.contains_key(name)
                && let Some((smsc_id, recipient)) = rest.next()
            {
                spelled.insert(RefKey { carrier: name.0, smsc_id, recipient }, name.clone());
            }
        }
        if spelled.is_empty() {
            return Ok(met);
        }
        let names: Vec<_> =
            spelled.keys().map(|k| (k.carrier, k.smsc_id.as_str(), k.recipient)).collect();
        let mut found: HashMap<RefName, PartKey> = HashMap::new();
        for (carrier, id, part) in carrier_refs::take_matching(tx, &names).await? {
            found.insert((carrier, id), part);
        }
        for (key, name) in spelled {
            if let Some(part) = found.get(&(key.carrier, key.smsc_id))
                && let Some(receipt) = unknown.remove(&name)
            {
                met.push((*part, receipt.outcome.clone()));
            }
        }
    }
}

/// Returns the other ids and recipients by which a receipt may match: its addresses swapped, and its
/// id in the other number base.
fn candidates(normalized: &str, receipt: &Receipt) -> Vec<(String, Recipient)> {
    let swapped = addresses(receipt).skip(1).map(|to| (normalized.to_owned(), to));
    let others = ids_in_other_base(normalized)
        .flat_map(|id| addresses(receipt).map(move |to| (id.clone(), to)));
    swapped.chain(others).collect()
}
