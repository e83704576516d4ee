//! Dispatch: who may submit what, and what an outcome means for a message.

use crate::context::Context;
use crate::desk;
use crate::optouts;
use crate::progress::Changes;
use crate::writer::{Claim, Handed, Settlement, Then};
use heliograph_domain::id::{CarrierId, NodeId};
use heliograph_domain::lease::{LEASE, Leased};
use heliograph_domain::message::{Event, Failure, FailureCode};
use heliograph_domain::retry;
use heliograph_domain::submission::Outcome;
use heliograph_domain::time::Timestamp;
use heliograph_store::{Conn, Result, carriers, parts, queue};
use std::time::{Duration, Instant};
use tokio::sync::OwnedSemaphorePermit;

/// Tries after which a carrier's temporary "no" is taken as final. With the waits of
/// [`retry::submit_delay`] this is about a day; most messages expire before.
const MOST_TRIES: u16 = 300;
/// Retries after an answer that may mean anything.
const AMBIGUOUS_RETRIES: u16 = 2;

/// The desks of this node's dispatchers. A carrier without one is served by other nodes.
pub type Desks = desk::Desks<CarrierId, Handed>;
/// The desk of one dispatcher.
pub type Desk = desk::Desk<Handed>;

/// Leases work for a dispatcher. What has expired meanwhile is failed on the way, and what an
/// earlier holder never gave back is marked as a possible duplicate. The second is whether there may be more.
///
/// # Errors
/// As any write.
pub async fn claim(
    tx: &mut Conn,
    node: NodeId,
    claim: &Claim,
    now: Timestamp,
    changes: &mut Changes,
) -> Result<(Vec<Leased>, bool)> {
    let limit = claim.room.num_permits();
    let wanted = queue::Claim { node, carrier: claim.carrier, now, until: now.after(LEASE), limit };
    let (found, more) = queue::claim(tx, &wanted).await?;
    let (mut leased, expired): (Vec<Leased>, Vec<Leased>) =
        found.into_iter().partition(|l| l.message.expires_at > now);
    let leases: Vec<_> = expired.iter().map(|l| &l.lease).collect();
    queue::settle(tx, &leases).await?;
    for l in &expired {
        let event = Event::SendFailed(Failure::plain(FailureCode::Expired));
        changes.add((l.lease.account, l.lease.message), event);
    }
    for l in leased.iter().filter(|l| l.in_doubt) {
        changes.add((l.lease.account, l.lease.message), Event::InDoubt);
    }
    add_parts_taken(tx, &mut leased).await?;
    hold_back(tx, &mut leased, changes).await?;
    Ok((leased, more))
}

/// Fails what is for people who have opted out since it was accepted. What is half sent is sent to its end.
async fn hold_back(tx: &mut Conn, leased: &mut Vec<Leased>, changes: &mut Changes) -> Result<()> {
    let unsent = leased.iter().filter(|l| l.parts_taken.is_empty());
    let held = optouts::held_back(tx, unsent.map(|l| &*l.message)).await?;
    if held.is_empty() {
        return Ok(());
    }
    let (out, rest) =
        std::mem::take(leased).into_iter().partition(|l| held.contains(&l.message.id.0));
    *leased = rest;
    let out: Vec<Leased> = out;
    queue::settle(tx, &out.iter().map(|l| &l.lease).collect::<Vec<_>>()).await?;
    for l in &out {
        let event = Event::SendFailed(Failure::plain(FailureCode::OptedOut));
        changes.add((l.lease.account, l.lease.message), event);
    }
    Ok(())
}

async fn add_parts_taken(tx: &mut Conn, leased: &mut [Leased]) -> Result<()> {
    let several = leased.iter().filter(|l| l.message.parts > 1 && l.lease.attempt > 1);
    let keys: Vec<_> = several.map(|l| (l.lease.account, l.lease.message)).collect();
    for (_, message, part) in parts::of(tx, &keys).await? {
        if let Some(l) = leased.iter_mut().find(|l| l.lease.message == message) {
            l.parts_taken.push(part);
        }
    }
    Ok(())
}

/// How much waits for each carrier that ever had a number, by name.
///
/// # Errors
/// As any read.
pub async fn waiting(cx: &Context) -> Result<Vec<(String, i64)>> {
    let mut conn = cx.db.read().await?;
    let mut all = Vec::new();
    for (carrier, name) in carriers::all(&mut conn).await? {
        let (depth, _) = queue::depth(&mut conn, carrier).await?;
        all.push((name, depth));
    }
    Ok(all)
}

/// Publishes how much waits for each carrier, and for how long the oldest of it has been due.
///
/// # Errors
/// As any read.
pub async fn measure(cx: &Context) -> Result<()> {
    let mut conn = cx.db.read().await?;
    for (carrier, name) in carriers::all(&mut conn).await? {
        let (depth, oldest) = queue::depth(&mut conn, carrier).await?;
        let age = oldest.map_or(0.0, |due| cx.db.now().since(due).as_secs_f64());
        metrics::gauge!("heliograph_queue_depth", "carrier" => name.clone()).set(depth as f64);
        metrics::gauge!("heliograph_queue_oldest_due_seconds", "carrier" => name).set(age);
    }
    Ok(())
}

/// Gives each leased message its place.
pub(crate) fn place(
    leased: Vec<Leased>,
    mut room: OwnedSemaphorePermit,
    since: Instant,
) -> Vec<Handed> {
    leased
        .into_iter()
        .filter_map(|leased| Some(Handed { leased, since, room: room.split(1)? }))
        .collect()
}

/// What the outcomes of a message's parts, as far as they were submitted, mean for the message.
pub fn judge(leased: &Leased, outcomes: Vec<(u8, Outcome)>) -> Settlement {
    let mut then = Then::Done;
    let mut taken = Vec::new();
    for (part, outcome) in outcomes {
        match outcome {
            Outcome::Accepted { smsc_id } => taken.push((part, smsc_id)),
            other => then = worse(then, follow(leased, other)),
        }
    }
    Settlement {
        lease: leased.lease.clone(),
        recipient: leased.message.recipient,
        parts: leased.message.parts,
        taken,
        then,
    }
}

fn follow(leased: &Leased, outcome: Outcome) -> Then {
    let tries = leased.tries;
    let later = |tried| Then::Retry { after: retry::submit_delay(u32::from(tries) + 1), tried };
    let error = |status: u32| {
        Then::Fail(Failure {
            code: FailureCode::CarrierError,
            carrier_code: Some(format!("0x{status:08X}")),
        })
    };
    match outcome {
        Outcome::Accepted { .. } => Then::Done,
        Outcome::NotSent => Then::Retry { after: Duration::ZERO, tried: false },
        Outcome::Throttled => Then::Retry { after: Duration::from_secs(1), tried: false },
        Outcome::Temporary { .. } if tries < MOST_TRIES => later(true),
        Outcome::Ambiguous { .. } if tries < AMBIGUOUS_RETRIES => later(true),
        Outcome::Temporary { status } | Outcome::Ambiguous { status } => error(status),
        Outcome::Refused(failure) => Then::Fail(failure),
        // Once more, marked as a possible duplicate; a second lost response is the end.
        Outcome::InDoubt if leased.doubts == 0 => Then::Doubt,
        Outcome::InDoubt => Then::Fail(Failure::plain(FailureCode::CarrierError)),
    }
}

/// Of what two parts ask for, that which leaves less hope.
fn worse(a: Then, b: Then) -> Then {
    let rank = |t: &Then| match t {
        Then::Done => 0,
        Then::Retry { tried: false, .. } => 1,
        Then::Retry { tried: true, .. } => 2,
        Then::Doubt => 3,
        Then::Fail(_) => 4,
    };
    if rank(&b) > rank(&a) { b } else { a }
}
