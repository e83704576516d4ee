//! Matching of submit responses and delivery receipts, which carriers may spell differently.
//!
//! Ids are stored and looked up in their normalized form. Where this form differs, the other number
//! base and the swapped addresses are tried, on whichever side comes second.

use crate::kernel::commands::progress::Settlement;
use crate::kernel::log_limit::LogLimit;
use crate::kernel::metrics::metrics;
use heliograph_domain::carrier::ReceiptPolicy;
use heliograph_domain::id::{ALL_PARTS, CarrierId, PartKey};
use heliograph_domain::message::{Failure, FailureCode};
use heliograph_domain::phone::Recipient;
use heliograph_domain::receipt::{Receipt, ReceiptOutcome, ids_in_other_base, normalized_id};
use heliograph_domain::time::Timestamp;
use heliograph_store::messaging::carrier_refs::{
    self, AcceptedPart, MatchedReceipt, OverduePart, RefKey, StoredReceipt,
};
use heliograph_store::{Conn, StoreResult};
use std::collections::hash_map::Entry;
use std::collections::{HashMap, HashSet};
use std::time::Duration;

/// The age up to which an early receipt is matched by another spelling of its id. A submit response
/// comes within a minute or never.
pub const EARLY: Duration = Duration::from_secs(150);

static UNUSABLE_ID: LogLimit = LogLimit::new();
static REUSED_ID: LogLimit = LogLimit::new();

/// A part that ended, and how.
type EndedPart = (PartKey, ReceiptOutcome);
/// Receipts by normalized id and recipient.
type ReceiptsByKey<'a> = HashMap<RefKey, &'a Receipt>;

/// Receipts that are not matched yet, and those matched within the batch.
pub(super) struct UnmatchedReceipts<'a> {
    /// The first receipt of each id and recipient, then the second, and so on. Usually there is only
    /// one of each.
    waiting: Vec<ReceiptsByKey<'a>>,
    pub(super) met: Vec<EndedPart>,
}

impl<'a> UnmatchedReceipts<'a> {
    pub(super) fn new(receipts: &[&'a (CarrierId, Receipt)]) -> Self {
        let mut waiting = Self { waiting: Vec::new(), met: Vec::new() };
        for (carrier, receipt) in receipts {
            match normalized_id(&receipt.smsc_id) {
                Some(smsc_id) => {
                    let recipient = receipt.recipient;
                    waiting.add(RefKey { carrier: *carrier, smsc_id, recipient }, receipt);
                }
                None => {
                    if let Some(omitted) = UNUSABLE_ID.admit() {
                        let message = "receipt with an empty or too long id ignored";
                        tracing::warn!(carrier = carrier.0, omitted, "{message}");
                    }
                }
            }
        }
        waiting
    }

    fn add(&mut self, mut key: RefKey, receipt: &'a Receipt) {
        for waiting in &mut self.waiting {
            match waiting.entry(key) {
                Entry::Vacant(entry) => {
                    entry.insert(receipt);
                    return;
                }
                Entry::Occupied(entry) => key = entry.key().clone(),
            }
        }
        self.waiting.push(HashMap::from([(key, receipt)]));
    }

    /// Takes out the first receipt for a part of this message with this id.
    fn take(&mut self, message: &Settlement, smsc_id: &str) -> Option<&'a Receipt> {
        if self.waiting.iter().all(HashMap::is_empty) {
            return None;
        }
        let carrier = message.lease.carrier;
        let mut key = RefKey { carrier, smsc_id: smsc_id.to_owned(), recipient: message.recipient };
        for recipient in std::iter::once(message.recipient).chain(message.originator) {
            key.recipient = recipient;
            for waiting in &mut self.waiting {
                if let Some(receipt) = waiting.get(&key)
                    && addresses(receipt).any(|to| to == message.recipient)
                {
                    return waiting.remove(&key);
                }
            }
        }
        None
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
        let mut add = |number, smsc_id: String| {
            let part = (s.lease.account, s.lease.message, number);
            if let Some(receipt) = unmatched.take(s, &smsc_id) {
                unmatched.met.push((part, receipt.outcome.clone()));
                return;
            }
            let (carrier, recipient) = (s.lease.carrier, s.recipient);
            let part = AcceptedPart { carrier, smsc_id, part, recipient };
            accepted.push(NewPart { part, originator: s.originator });
        };
        match &s.accepted_parts[..] {
            _ if s.receipts == ReceiptPolicy::None => {}
            // Part 0 stands for the whole of a single-part message, which has no rows in `parts`.
            parts if s.parts == 1 => parts.iter().for_each(|(_, id)| add(0, stored_id(s, 0, id))),
            _ => several(s).into_iter().for_each(|(number, id)| add(number, id)),
        }
    }
    accepted
}

/// Returns the id of a part as it is stored. A part without a usable id is stored too, so that its
/// receipt can time out.
fn stored_id(message: &Settlement, number: u8, smsc_id: &str) -> String {
    normalized_id(smsc_id).unwrap_or_else(|| format!("no-id-{}-{number}", message.lease.message))
}

/// Returns the accepted parts of a message of several that get a receipt. One receipt is for the
/// whole message if the carrier sends only one, or gave the same id to several parts.
fn several(message: &Settlement) -> Vec<(u8, String)> {
    let only = message.receipts.only_part(message.parts);
    let mut ids: Vec<(u8, String)> = Vec::with_capacity(message.accepted_parts.len());
    for (number, id) in &message.accepted_parts {
        if only.is_some_and(|only| only != u16::from(*number)) {
            continue;
        }
        let id = stored_id(message, *number, id);
        match ids.iter_mut().find(|(_, other)| *other == id) {
            Some((number, _)) => *number = ALL_PARTS,
            None => ids.push((if only.is_some() { ALL_PARTS } else { *number }, id)),
        }
    }
    ids
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
    let recorded = carrier_refs::record_accepted(tx, &accepted, now).await?;
    met.extend(recorded.matched.into_iter().map(|m| (m.part, m.outcome)));
    for carrier in recorded.reused {
        metrics().reused_ids.with_label_values(&[&carrier.0.to_string()]).inc();
        if let Some(omitted) = REUSED_ID.admit() {
            let message = "the carrier gave two messages to the same recipient the same id";
            tracing::warn!(carrier = carrier.0, omitted, "{message}");
        }
    }
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
    let mut met = Vec::new();
    for waiting in unmatched.waiting {
        met.extend(match_distinct(tx, waiting, now).await?);
    }
    Ok(met)
}

/// Matches receipts of which no two have the same id and recipient.
async fn match_distinct(
    tx: &mut Conn,
    mut unknown: ReceiptsByKey<'_>,
    now: Timestamp,
) -> StoreResult<Vec<EndedPart>> {
    let mut met = Vec::new();
    let found = carrier_refs::take_matching(tx, &unknown.keys().collect::<Vec<_>>()).await?;
    for (key, part) in found {
        if let Some(receipt) = unknown.remove(&key) {
            met.push((part, receipt.outcome.clone()));
        }
    }
    met.extend(other_spellings(tx, &mut unknown).await?);
    met.extend(reused_ids(tx, &mut unknown).await?);
    let unknown = unknown.into_iter().map(|(key, receipt)| StoredReceipt {
        carrier: key.carrier,
        smsc_id: key.smsc_id,
        recipient: key.recipient,
        outcome: receipt.outcome.clone(),
    });
    let found = carrier_refs::record_receipts(tx, &unknown.collect::<Vec<_>>(), now).await?;
    met.extend(found.into_iter().map(|MatchedReceipt { part, outcome, .. }| (part, outcome)));
    Ok(met)
}

/// Takes out the receipts for parts whose id was given to a newer message, which has its receipt.
async fn reused_ids(tx: &mut Conn, unknown: &mut ReceiptsByKey<'_>) -> StoreResult<Vec<EndedPart>> {
    let mut met = Vec::new();
    if unknown.is_empty() || !carrier_refs::has_reused(tx).await? {
        return Ok(met);
    }
    let keys: Vec<_> = unknown.keys().cloned().collect();
    for key in keys {
        if let Some(part) = carrier_refs::take_reused(tx, &key).await?
            && let Some(receipt) = unknown.remove(&key)
        {
            met.push((part, receipt.outcome.clone()));
        }
    }
    Ok(met)
}

/// Ends parts whose receipt is overdue, as if the carrier had reported it.
pub(super) async fn time_out(
    tx: &mut Conn,
    overdue: &[&OverduePart],
) -> StoreResult<Vec<EndedPart>> {
    let timeout = ReceiptOutcome::Failed(Failure::new(FailureCode::ReceiptTimeout));
    let parts = carrier_refs::take_overdue(tx, overdue).await?;
    Ok(parts.into_iter().map(|part| (part, timeout.clone())).collect())
}

/// Takes out the receipts that match by another spelling of their id or by swapped addresses: one
/// possibility of each at a time, so that a receipt matches at most one part.
async fn other_spellings(
    tx: &mut Conn,
    unknown: &mut ReceiptsByKey<'_>,
) -> StoreResult<Vec<EndedPart>> {
    let mut met = Vec::new();
    let mut candidates: Vec<_> = unknown
        .iter()
        .map(|(key, receipt)| (key.clone(), candidates(&key.smsc_id, receipt).into_iter()))
        .collect();
    loop {
        let mut spelled: HashMap<RefKey, RefKey> = HashMap::new();
        for (key, rest) in &mut candidates {
            if unknown.contains_key(key)
                && let Some((smsc_id, recipient)) = rest.next()
            {
                let other = RefKey { carrier: key.carrier, smsc_id, recipient };
                spelled.insert(other, key.clone());
            }
        }
        if spelled.is_empty() {
            return Ok(met);
        }
        let found = carrier_refs::take_matching(tx, &spelled.keys().collect::<Vec<_>>()).await?;
        for (other, part) in found {
            if let Some(receipt) = spelled.get(&other).and_then(|key| unknown.remove(key)) {
                met.push((part, receipt.outcome.clone()));
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
