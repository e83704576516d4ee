//! Webhooks: registering endpoints, trying them out, and telling things again.

use crate::caller::Caller;
use crate::context::Context;
use crate::deliveries::URGENT;
use crate::error::{Error, Result};
use heliograph_domain::account::{Mode, Scope};
use heliograph_domain::event::{Kind, Occurrence};
use heliograph_domain::id::{AccountId, EndpointId, EventId};
use heliograph_domain::target::Target;
use heliograph_domain::time::Timestamp;
use heliograph_domain::webhook::{Endpoint, Kinds, OffReason, ROTATION, Secret};
use heliograph_store::attempts::{self, Attempt};
use heliograph_store::deliveries::{self, Fresh};
use heliograph_store::events::{self, First, Replay};
use heliograph_store::{Conn, endpoints};
use std::collections::{BTreeMap, HashSet};
use uuid::Uuid;

/// Endpoints of one account in one mode, at most: each event is a row for each of them.
const MOST: usize = 1_000;
/// Events that one transaction lines up again.
const PAGE: i64 = 1_000;

/// An endpoint as somebody asks for it.
#[derive(Clone, Debug)]
pub struct Wish {
    /// Whose.
    pub account: AccountId,
    /// Of which world it is to be told.
    pub mode: Mode,
    /// Where to.
    pub url: String,
    /// What of.
    pub kinds: Kinds,
    /// Until when, for `heliograph listen` alone: its endpoint is on this machine.
    pub listening_until: Option<Timestamp>,
}

/// Registers an endpoint.
///
/// # Errors
/// [`Error::BadTarget`] when its URL leads where no webhook may go.
pub async fn add(cx: &Context, wish: Wish, secret: Secret) -> Result<Endpoint> {
    let url = check(cx, &wish).await?;
    let mut tx = cx.db.write().await?;
    let there = endpoints::of(&mut tx, wish.account).await?;
    if there.iter().filter(|e| e.mode == wish.mode).count() >= MOST {
        return Err(Error::BadTarget(format!("there are {MOST} endpoints already")));
    }
    let mut endpoint = Endpoint {
        id: EndpointId(0),
        account: wish.account,
        mode: wish.mode,
        url,
        kinds: wish.kinds,
        secret,
        old_secret: None,
        local: wish.listening_until.is_some(),
        created_at: cx.db.now(),
        expires_at: wish.listening_until,
        failing_since: None,
        off: None,
    };
    endpoint.id = endpoints::insert(&mut tx, &endpoint).await?;
    tx.commit().await?;
    Ok(endpoint)
}

/// Looks where a URL leads, as each attempt will again; gives it back as it is stored.
async fn check(cx: &Context, wish: &Wish) -> Result<String> {
    let bad = Error::BadTarget;
    let target = Target::parse(&wish.url).map_err(|e| bad(e.to_string()))?;
    let reach = cx.settings().reach.clone();
    let reach = if wish.listening_until.is_some() { reach.and_loopback() } else { reach };
    let host = target.host();
    let addresses = match target.address() {
        Some(address) => vec![address],
        None => {
            let found = cx.resolver.resolve(host.clone()).await;
            found.map_err(|e| bad(format!("{host} can't be resolved: {e}")))?
        }
    };
    if addresses.is_empty() {
        return Err(bad(format!("{host} has no address")));
    }
    for address in addresses {
        reach.check(address, target.is_https()).map_err(|e| bad(e.to_string()))?;
    }
    Ok(target.as_str().to_owned())
}

/// The endpoints of an account, the oldest first.
///
/// # Errors
/// What keeps the database away.
pub async fn list(cx: &Context, account: AccountId) -> Result<Vec<Endpoint>> {
    let mut conn = cx.db.read().await?;
    Ok(endpoints::of(&mut conn, account).await?)
}

/// The endpoint with this number.
///
/// # Errors
/// [`Error::NotFound`].
pub async fn get(cx: &Context, id: EndpointId) -> Result<Endpoint> {
    let mut conn = cx.db.read().await?;
    endpoints::by_number(&mut conn, id).await?.ok_or(Error::NotFound)
}

/// Removes an endpoint, with all that it was still to be told.
///
/// # Errors
/// [`Error::NotFound`].
pub async fn remove(cx: &Context, id: EndpointId) -> Result<()> {
    change(cx, async |tx| {
        // The endpoint first, as reports do: two nodes that lock in different orders wait for each other.
        let there = endpoints::remove(tx, id).await?;
        deliveries::drop_for(tx, id).await?;
        Ok(there)
    })
    .await
}

/// Gives an endpoint a new secret; for a day, the one before it signs as well.
///
/// # Errors
/// [`Error::NotFound`].
pub async fn rotate(cx: &Context, id: EndpointId, secret: &Secret) -> Result<Timestamp> {
    let until = cx.db.now().after(ROTATION);
    change(cx, async |tx| endpoints::rotate(tx, id, secret, until).await).await?;
    Ok(until)
}

/// Switches an endpoint off: it is told nothing, and what it was still to be told can be replayed.
///
/// # Errors
/// [`Error::NotFound`] when there is none that is on.
pub async fn switch_off(cx: &Context, id: EndpointId) -> Result<()> {
    let now = cx.db.now();
    change(cx, async |tx| {
        let was_on = endpoints::switch_off(tx, id, OffReason::Owner, now).await?;
        deliveries::drop_for(tx, id).await?;
        Ok(was_on)
    })
    .await
}

/// Switches an endpoint on, with a clean record.
///
/// # Errors
/// [`Error::NotFound`].
pub async fn switch_on(cx: &Context, id: EndpointId) -> Result<()> {
    change(cx, async |tx| endpoints::switch_on(tx, id).await).await
}

/// Lets an endpoint of `heliograph listen` live on until then.
///
/// # Errors
/// [`Error::NotFound`].
pub async fn keep(cx: &Context, id: EndpointId, until: Timestamp) -> Result<()> {
    change(cx, async |tx| endpoints::keep(tx, id, until).await).await
}

async fn change(
    cx: &Context,
    work: impl AsyncFnOnce(&mut Conn) -> heliograph_store::Result<bool>,
) -> Result<()> {
    let mut tx = cx.db.write().await?;
    if !work(&mut tx).await? {
        return Err(Error::NotFound);
    }
    Ok(tx.commit().await?)
}

/// Has a sample sent to an endpoint, before everything else, also to one that is off. What came of it is told by
/// [`outcome`].
///
/// # Errors
/// [`Error::NotFound`].
pub async fn test(cx: &Context, id: EndpointId, kind: Kind) -> Result<EventId> {
    let endpoint = get(cx, id).await?;
    let (event, now) = cx.next_id();
    let (event, account, mode) = (EventId(event), endpoint.account, endpoint.mode);
    let (subject, test) = (None, true);
    let row = Occurrence { account, id: event, mode, kind, test, subject, at: now, endpoint: id };
    let mut tx = cx.db.write().await?;
    events::insert(&mut tx, &[row]).await?;
    let due = Fresh { endpoint: id, due_at: URGENT, event, account, owner: None };
    deliveries::insert(&mut tx, &[due], now).await?;
    tx.commit().await?;
    Ok(event)
}

/// What is known of an event's attempts.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// The first attempt at the first endpoint.
    pub first: Option<First>,
    /// What went wrong, and later successes; the oldest first.
    pub attempts: Vec<Attempt>,
}

/// How the attempts at an event went.
///
/// # Errors
/// [`Error::NotFound`].
pub async fn outcome(cx: &Context, account: AccountId, event: EventId) -> Result<Outcome> {
    let mut conn = cx.db.read().await?;
    let found = events::get(&mut conn, account, event).await?;
    let (_, first) = found.ok_or(Error::NotFound)?;
    let attempts = attempts::of(&mut conn, account, event).await?;
    Ok(Outcome { first, attempts })
}

/// An endpoint that was told of something, or is about to be.
#[derive(Clone, Debug)]
pub struct ToldOf {
    /// What happened.
    pub kind: Kind,
    /// The event.
    pub event: EventId,
    /// The endpoint.
    pub endpoint: EndpointId,
    /// Its URL; empty when it was removed.
    pub url: String,
    /// How the last attempt ended that is known: an HTTP status, 0 without one; `None` before the first.
    pub outcome: Option<i16>,
    /// When that was.
    pub at: Option<Timestamp>,
}

/// Who was told of these things, each with when it happened.
///
/// # Errors
/// [`Error::Scope`], or what keeps the database away.
pub async fn told_of(
    cx: &Context,
    caller: &Caller,
    things: &[(Uuid, Timestamp)],
) -> Result<Vec<ToldOf>> {
    caller.needs(Scope::Read)?;
    let mut conn = cx.db.read().await?;
    let endpoints = endpoints::of(&mut conn, caller.account).await?;
    let url = |id: EndpointId| endpoints.iter().find(|e| e.id == id).map(|e| e.url.clone());
    let mut told = Vec::new();
    for thing in things {
        for (event, first) in events::about(&mut conn, caller.account, *thing).await? {
            let attempts = attempts::of(&mut conn, caller.account, event.id).await?;
            let mut last: BTreeMap<EndpointId, Option<(i16, Timestamp)>> = BTreeMap::new();
            last.insert(event.endpoint, first.map(|f| (f.outcome, f.at)));
            last.extend(attempts.iter().map(|a| (a.endpoint, Some((a.outcome, a.at)))));
            told.extend(last.into_iter().map(|(endpoint, last)| ToldOf {
                kind: event.kind,
                event: event.id,
                endpoint,
                url: url(endpoint).unwrap_or_default(),
                outcome: last.map(|(outcome, _)| outcome),
                at: last.map(|(_, at)| at),
            }));
        }
    }
    Ok(told)
}

/// The last attempts at an endpoint that are worth telling, the newest first.
///
/// # Errors
/// What keeps the database away.
pub async fn attempts(cx: &Context, id: EndpointId, limit: i64) -> Result<Vec<Attempt>> {
    let mut conn = cx.db.read().await?;
    Ok(attempts::at(&mut conn, id, limit).await?)
}

/// How much waits for an endpoint.
///
/// # Errors
/// What keeps the database away.
pub async fn waiting(cx: &Context, id: EndpointId) -> Result<i64> {
    let mut conn = cx.db.read().await?;
    Ok(deliveries::depth(&mut conn, id).await?)
}

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
pub async fn replay(cx: &Context, id: EndpointId, again: Again) -> Result<u64> {
    let endpoint = get(cx, id).await?;
    if let Some((_, reason)) = endpoint.off {
        let why = format!("endpoint {id} is off, because {}: switch it on first", reason.detail());
        return Err(Error::BadTarget(why));
    }
    let (from, to, failed) = match again {
        Again::These(events) => return replay_these(cx, &endpoint, events).await,
        Again::All(from, to) => (from, to, false),
        Again::Failed(from, to) => (from, to, true),
    };
    let (account, mode) = (endpoint.account, endpoint.mode);
    let what = Replay { account, mode, endpoint: id, from, to, failed };
    // Read once: what comes to wait from now on happened after `to`, or is lined up here.
    let pending = deliveries::pending(&mut cx.db.read().await?, id).await?;
    let (mut after, mut lined_up) = (EventId(Uuid::nil()), 0);
    loop {
        let mut tx = cx.db.write().await?;
        let found = events::to_replay(&mut tx, &what, after, PAGE).await?;
        let Some((last, _)) = found.last() else { return Ok(lined_up) };
        after = *last;
        let wanted = found.iter().filter(|(_, kind)| endpoint.kinds.has(*kind));
        let wanted = wanted.map(|(event, _)| *event).filter(|event| !pending.contains(event));
        let wanted: Vec<EventId> = wanted.collect();
        lined_up += deliveries::again(&mut tx, (id, account), &wanted, cx.db.now()).await?;
        tx.commit().await?;
    }
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
