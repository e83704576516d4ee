//! Replaying webhook events.

use crate::kernel::audit::{self, Actor, AuditAction};
use crate::kernel::caller::Caller;
use crate::kernel::context::Context;
use crate::kernel::error::{Error, Result};
use crate::kernel::idempotency::{IdempotentRequest, REPLAYS, RequestKey};
use crate::webhooks::endpoints::get;
use async_recursion::async_recursion as boxed;
use heliograph_domain::endpoint_error::InvalidEndpoint;
use heliograph_domain::id::{AccountId, EndpointId, EventId};
use heliograph_domain::time::Timestamp;
use heliograph_domain::webhook::WebhookEndpoint;
use heliograph_store::webhooks::deliveries;
use heliograph_store::webhooks::events::{self, ReplayFilter};
use std::collections::HashSet;
use uuid::Uuid;

/// The number of events that one transaction queues.
const PAGE: i64 = 1_000;

/// The events to replay.
#[derive(Clone, Debug)]
pub enum ReplaySelection {
    /// These events.
    Events(Vec<EventId>),
    /// All events of a period; the start is included, the end is not.
    All(Timestamp, Timestamp),
    /// The events of a period that the endpoint never accepted.
    Failed(Timestamp, Timestamp),
}

/// A request to replay events.
#[derive(Clone, Debug)]
pub struct ReplayRequest {
    /// The endpoint.
    pub endpoint: EndpointId,
    /// The events.
    pub selection: ReplaySelection,
}

/// Queues events for an endpoint of the actor's account again and returns their number. Pending deliveries are not
/// duplicated.
///
/// # Errors
/// [`Error::NotFound`] also when an event does not exist; [`Error::InvalidEndpoint`] when the
/// endpoint is off.
#[boxed]
pub async fn replay(
    cx: &Context,
    actor: &Actor,
    id: EndpointId,
    again: ReplaySelection,
) -> Result<u64> {
    let queued = queue(cx, actor.account, id, again).await?;
    let mut tx = cx.db.write().await?;
    let detail = format!("{queued} to endpoint {id}");
    audit::record(cx, &mut tx, actor, AuditAction::WebhookReplayed, &detail).await?;
    tx.commit().await?;
    Ok(queued)
}

async fn queue(
    cx: &Context,
    account: AccountId,
    id: EndpointId,
    again: ReplaySelection,
) -> Result<u64> {
    let endpoint = get(cx, account, id).await?;
    if let Some((_, reason)) = endpoint.off {
        return Err(InvalidEndpoint::Off(id, reason).into());
    }
    let (from, to, failed) = match again {
        ReplaySelection::Events(events) => return replay_these(cx, &endpoint, events).await,
        ReplaySelection::All(from, to) => (from, to, false),
        ReplaySelection::Failed(from, to) => (from, to, true),
    };
    let mode = endpoint.mode;
    let what = ReplayFilter { account, mode, endpoint: id, from, to, failed };
    // Read once: later deliveries are of events after `to`, or are queued here.
    let pending = deliveries::pending_events(&mut cx.db.read().await?, id).await?;
    let mut after = EventId::first_at(from);
    let mut queued = 0;
    loop {
        // The search may take long; it must not block writers.
        let found = events::list_for_replay(&mut cx.db.read().await?, &what, after, PAGE).await?;
        let Some((last, _)) = found.last() else { return Ok(queued) };
        after = *last;
        let wanted = found.iter().filter(|(_, kind)| endpoint.kinds.contains(*kind));
        let wanted = wanted.map(|(event, _)| *event).filter(|event| !pending.contains(event));
        let wanted: Vec<EventId> = wanted.collect();
        let mut tx = cx.db.write().await?;
        queued += deliveries::insert_replay(&mut tx, (id, account), &wanted, cx.db.now()).await?;
        tx.commit().await?;
    }
}

/// Replays events once per idempotency key; returns their number, or `None` for a repeated request.
///
/// # Errors
/// Those of [`replay`].
#[boxed]
pub async fn replay_once(
    cx: &Context,
    caller: &Caller,
    actor: &Actor,
    request: ReplayRequest,
    once: RequestKey,
) -> Result<Option<u64>> {
    let ReplayRequest { endpoint: id, selection: again } = request;
    let keep = |(): &()| String::new();
    let asked = IdempotentRequest::new(caller, REPLAYS, &id.to_string(), Some(once), &keep);
    // Before the replay, which takes many transactions: two at once would queue all events twice.
    let mut tx = cx.db.write().await?;
    if !asked.save(cx, &mut tx, Uuid::nil(), &()).await? {
        return Ok(None);
    }
    tx.commit().await?;
    replay(cx, actor, id, again).await.map(Some)
}

async fn replay_these(
    cx: &Context,
    endpoint: &WebhookEndpoint,
    events: Vec<EventId>,
) -> Result<u64> {
    let mut tx = cx.db.write().await?;
    let pending = deliveries::pending_events(&mut tx, endpoint.id).await?;
    let unique: HashSet<EventId> = events.into_iter().collect();
    for event in &unique {
        let found = events::get(&mut tx, endpoint.account, *event).await?;
        found.filter(|(e, _)| e.mode == endpoint.mode).ok_or(Error::NotFound)?;
    }
    let wanted: Vec<EventId> = unique.difference(&pending).copied().collect();
    let target = (endpoint.id, endpoint.account);
    let queued = deliveries::insert_replay(&mut tx, target, &wanted, cx.db.now()).await?;
    tx.commit().await?;
    Ok(queued)
}
