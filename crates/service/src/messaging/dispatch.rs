//! Dispatch: leasing messages to dispatchers, and the meaning of submit outcomes.

use crate::audience::optouts;
use crate::kernel::commands::claim::{ClaimMessages, DispatchItem};
use crate::kernel::commands::progress::{NextStep, Settlement};
use crate::kernel::context::Context;
use crate::kernel::local_queue;
use crate::kernel::metrics::metrics;
use crate::messaging::progress::MessageChanges;
use async_recursion::async_recursion as boxed;
use heliograph_domain::carrier::ReceiptPolicy;
use heliograph_domain::id::CarrierId;
use heliograph_domain::lease::{LEASE, LeasedMessage};
use heliograph_domain::message::{Failure, FailureCode, MessageEvent};
use heliograph_domain::phone::Recipient;
use heliograph_domain::retry;
use heliograph_domain::submission::SubmitOutcome;
use heliograph_domain::time::Timestamp;
use heliograph_store::messaging::parts;
use heliograph_store::messaging::queue;
use heliograph_store::operations::carriers;
use heliograph_store::{Conn, StoreResult};
use std::time::{Duration, Instant};
use tokio::sync::OwnedSemaphorePermit;

/// The number of tries after which a carrier's temporary error is final. With the back-off of
/// [`retry::submit_delay`] this takes about a day; most messages expire before.
const MAX_TRIES: u16 = 300;
/// The number of retries after an ambiguous error.
const AMBIGUOUS_RETRIES: u16 = 2;

/// The local queues of this node's dispatchers. A carrier without one is served by other nodes.
pub type DispatchQueues = local_queue::LocalQueues<CarrierId, DispatchItem>;
/// The local queue of one dispatcher.
pub type DispatchQueue = local_queue::LocalQueue<DispatchItem>;

/// Leases messages to a dispatcher, and returns them with whether there may be more. Expired
/// messages are failed on the way; messages that an earlier holder never released are marked as
/// possible duplicates.
#[boxed]
pub async fn claim(
    cx: &Context,
    tx: &mut Conn,
    claim: &ClaimMessages,
    now: Timestamp,
    changes: &mut MessageChanges,
) -> StoreResult<(Vec<LeasedMessage>, bool)> {
    let limit = claim.room.num_permits();
    let wanted = queue::QueueClaim {
        node: cx.node,
        carrier: claim.carrier,
        now,
        now_for_own: cx.db.now_for_own_leases(),
        until: now.after(LEASE),
        limit,
    };
    let (found, more) = queue::claim(tx, &wanted).await?;
    let (mut leased, expired): (Vec<LeasedMessage>, Vec<LeasedMessage>) =
        found.into_iter().partition(|l| l.message.expires_at > now);
    let leases: Vec<_> = expired.iter().map(|l| &l.lease).collect();
    queue::settle(tx, &leases).await?;
    for l in &expired {
        let event = MessageEvent::SendFailed(Failure::new(FailureCode::Expired));
        changes.add((l.lease.account, l.lease.message), event);
    }
    for l in leased.iter().filter(|l| l.in_doubt) {
        changes.add((l.lease.account, l.lease.message), MessageEvent::InDoubt);
    }
    add_parts_taken(tx, &mut leased).await?;
    reject_opted_out(tx, &mut leased, changes).await?;
    Ok((leased, more))
}

/// Fails messages to people who opted out since the message was accepted. A partly sent message is
/// completed.
async fn reject_opted_out(
    tx: &mut Conn,
    leased: &mut Vec<LeasedMessage>,
    changes: &mut MessageChanges,
) -> StoreResult<()> {
    let unsent = leased.iter().filter(|l| l.accepted_parts.is_empty());
    let held = optouts::find_opted_out(tx, unsent.map(|l| &*l.message)).await?;
    if held.is_empty() {
        return Ok(());
    }
    let (out, rest) =
        std::mem::take(leased).into_iter().partition(|l| held.contains(&l.message.id.0));
    *leased = rest;
    let out: Vec<LeasedMessage> = out;
    queue::settle(tx, &out.iter().map(|l| &l.lease).collect::<Vec<_>>()).await?;
    for l in &out {
        let event = MessageEvent::SendFailed(Failure::new(FailureCode::OptedOut));
        changes.add((l.lease.account, l.lease.message), event);
    }
    Ok(())
}

async fn add_parts_taken(tx: &mut Conn, leased: &mut [LeasedMessage]) -> StoreResult<()> {
    let several = leased.iter().filter(|l| l.message.parts > 1 && l.lease.attempt > 1);
    let keys: Vec<_> = several.map(|l| (l.lease.account, l.lease.message)).collect();
    for (_, message, part) in parts::accepted(tx, &keys).await? {
        if let Some(l) = leased.iter_mut().find(|l| l.lease.message == message) {
            l.accepted_parts.push(part);
        }
    }
    Ok(())
}

/// Returns the queue depth of each known carrier, by name.
#[boxed]
pub async fn waiting(cx: &Context) -> StoreResult<Vec<(String, i64)>> {
    let mut conn = cx.db.read().await?;
    let mut all = Vec::new();
    for (carrier, name) in carriers::list(&mut conn).await? {
        let (depth, _) = queue::depth(&mut conn, carrier).await?;
        all.push((name, depth));
    }
    Ok(all)
}

/// Publishes the queue depth of each carrier and the age of its oldest due message as metrics.
#[boxed]
pub async fn measure(cx: &Context) -> StoreResult<()> {
    let mut conn = cx.db.read().await?;
    for (carrier, name) in carriers::list(&mut conn).await? {
        let (depth, oldest) = queue::depth(&mut conn, carrier).await?;
        let age = oldest.map_or(0.0, |due| cx.db.now().since(due).as_secs_f64());
        metrics().queue_depth.with_label_values(&[&name]).set(depth);
        metrics().queue_oldest_due.with_label_values(&[&name]).set(age);
    }
    Ok(())
}

/// Assigns a slot to each leased message.
pub(crate) fn assign_slots(
    leased: Vec<LeasedMessage>,
    mut room: OwnedSemaphorePermit,
    since: Instant,
) -> Vec<DispatchItem> {
    leased
        .into_iter()
        .filter_map(|leased| Some(DispatchItem { leased, since, room: room.split(1)? }))
        .collect()
}

/// Returns the outcome of a message from the outcomes of its submitted parts, at a carrier that sends
/// a receipt for each.
pub fn evaluate_outcomes(leased: &LeasedMessage, outcomes: Vec<(u8, SubmitOutcome)>) -> Settlement {
    let mut then = NextStep::Done;
    let mut accepted_parts = Vec::new();
    for (part, outcome) in outcomes {
        match outcome {
            SubmitOutcome::Accepted { smsc_id } => accepted_parts.push((part, smsc_id)),
            other => then = worse(then, follow(leased, other)),
        }
    }
    Settlement {
        lease: leased.lease.clone(),
        recipient: leased.message.recipient,
        originator: Recipient::from_digits(leased.message.originator.as_str()),
        parts: leased.message.parts,
        accepted_parts,
        receipts: ReceiptPolicy::All,
        next: then,
    }
}

fn follow(leased: &LeasedMessage, outcome: SubmitOutcome) -> NextStep {
    let tries = leased.tries;
    let retry = |after, tried, in_doubt| NextStep::Retry { after, tried, in_doubt };
    let delay = retry::submit_delay(u32::from(tries) + 1);
    let error = |status: u32| {
        NextStep::Fail(Failure {
            code: FailureCode::CarrierError,
            carrier_code: Some(format!("0x{status:08X}")),
        })
    };
    match outcome {
        SubmitOutcome::Accepted { .. } => NextStep::Done,
        SubmitOutcome::NotSent => retry(Duration::ZERO, false, false),
        SubmitOutcome::Throttled => retry(Duration::from_secs(1), false, false),
        SubmitOutcome::Temporary { .. } if tries < MAX_TRIES => retry(delay, true, false),
        SubmitOutcome::Ambiguous { .. } if tries < AMBIGUOUS_RETRIES => retry(delay, true, true),
        SubmitOutcome::Temporary { status } | SubmitOutcome::Ambiguous { status } => error(status),
        SubmitOutcome::Refused(failure) => NextStep::Fail(failure),
        // Sent once more, marked as a possible duplicate; a second lost response is final.
        SubmitOutcome::InDoubt if leased.doubts == 0 => NextStep::InDoubt,
        SubmitOutcome::InDoubt => NextStep::Fail(Failure::new(FailureCode::CarrierError)),
    }
}

/// Returns the more severe of the next steps of two parts.
fn worse(a: NextStep, b: NextStep) -> NextStep {
    let rank = |t: &NextStep| match t {
        NextStep::Done => 0,
        NextStep::Retry { tried: false, .. } => 1,
        NextStep::Retry { in_doubt: false, .. } => 2,
        NextStep::Retry { in_doubt: true, .. } => 3,
        NextStep::InDoubt => 4,
        NextStep::Fail(_) => 5,
    };
    if rank(&b) > rank(&a) { b } else { a }
}
