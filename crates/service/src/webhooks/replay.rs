//! Replays: what happened is told again.

use crate::caller::Caller;
use crate::context::Context;
use crate::error::{Error, Result};
use crate::once::{Asked, Once, REPLAYS};
use crate::webhooks::get;
use heliograph_domain::id::{AccountId, EndpointId, EventId};
use heliograph_domain::time::Timestamp;
use heliograph_domain::webhook::Endpoint;
use heliograph_store::deliveries;
use heliograph_store::events::{self, Replay};
use std::collections::HashSet;
use uuid::Uuid;

/// Events that one transaction lines up again.
const PAGE: i64 = 1_000;

/// What is to be told again.
#[derive(Clone, Debug)]
pub enum Again {
    /// These events.
    These(Vec<EventId>),
    /// All that happened from then on (included) and before then.
    All(Timestamp, Timestamp),
    /// Of those, what the endpoint never took.
    Failed(Timestamp, Timestamp),
}

/// Lines up for an endpoint what it is to be told again; how many events. What still waits for it is left alone.
///
/// # Errors
/// [`Error::NotFound`] when there is no such endpoint or event, [`Error::BadTarget`] when it is off.
pub async fn replay(cx: &Context, account: AccountId, id: EndpointId, again: Again) -> Result<u64> {
    let endpoint = get(cx, account, id).await?;
    if let Some((_, reason)) = endpoint.off {
        let why = format!("endpoint {id} is off, because {}: switch it on first", reason.detail());
        return Err(Error::BadTarget(why));
    }
    let (from, to, failed) = match again {
        Again::These(events) => return replay_these(cx, &endpoint, events).await,
        Again::All(from, to) => (from, to, false),
        Again::Failed(from, to) => (from, to, true),
    };
    let mode = endpoint.mode;
    let what = Replay { account, mode, endpoint: id, from, to, failed };
    // Read once: what comes to wait from now on happened after `to`, or is lined up here.
    let pending = deliveries::pending(&mut cx.db.read().await?, id).await?;
    let (mut after, mut lined_up) = (EventId::first_at(from), 0);
    loop {
        // Looking may take long where little is found, and others write meanwhile.
        let found = events::to_replay(&mut cx.db.read().await?, &what, after, PAGE).await?;
        let Some((last, _)) = found.last() else { return Ok(lined_up) };
        after = *last;
        let wanted = found.iter().filter(|(_, kind)| endpoint.kinds.has(*kind));
        let wanted = wanted.map(|(event, _)| *event).filter(|event| !pending.contains(event));
        let wanted: Vec<EventId> = wanted.collect();
        let mut tx = cx.db.write().await?;
        lined_up += deliveries::again(&mut tx, (id, account), &wanted, cx.db.now()).await?;
        tx.commit().await?;
    }
}

/// The same, one time however often it is asked for; how many events, or nothing when it was asked for before.
///
/// # Errors
/// As [`replay`].
pub async fn replay_once(
    cx: &Context,
    caller: &Caller,
    id: EndpointId,
    (again, once): (Again, Once),
) -> Result<Option<u64>> {
    let keep = |(): &()| String::new();
    let asked = Asked::new(caller, (REPLAYS, &id.to_string()), Some(once), &keep);
    // Before what it may do in many transactions: two at once would line up everything twice.
    let mut tx = cx.db.write().await?;
    if !asked.keep(cx, &mut tx, (Uuid::nil(), &())).await? {
        return Ok(None);
    }
    tx.commit().await?;
    replay(cx, caller.account, id, again).await.map(Some)
}

async fn replay_these(cx: &Context, endpoint: &Endpoint, events: Vec<EventId>) -> Result<u64> {
    let mut tx = cx.db.write().await?;
    let pending = deliveries::pending(&mut tx, endpoint.id).await?;
    let unique: HashSet<EventId> = events.into_iter().collect();
    for event in &unique {
        let found = events::get(&mut tx, endpoint.account, *event).await?;
        found.filter(|(e, _)| e.mode == endpoint.mode).ok_or(Error::NotFound)?;
    }
    let wanted: Vec<EventId> = unique.difference(&pending).copied().collect();
    let whom = (endpoint.id, endpoint.account);
    let lined_up = deliveries::again(&mut tx, whom, &wanted, cx.db.now()).await?;
    tx.commit().await?;
    Ok(lined_up)
}
