//! Webhooks: registering endpoints, trying them out, and telling things again.

use crate::audit::{self, Actor};
use crate::caller::Caller;
use crate::context::Context;
use crate::deliveries::URGENT;
use crate::error::{Error, Result};
use crate::once::{Asked, ENDPOINTS, Once, ROTATIONS};
use heliograph_domain::account::{Mode, Scope};
use heliograph_domain::event::{Kind, Occurrence};
use heliograph_domain::id::{AccountId, EndpointId, EventId};
use heliograph_domain::target::Target;
use heliograph_domain::time::Timestamp;
use heliograph_domain::webhook::{Endpoint, Kinds, OffReason, ROTATION, Secret};
use heliograph_store::attempts::{self, Attempt};
use heliograph_store::deliveries::{self, Fresh};
use heliograph_store::events::{self, First};
use heliograph_store::{Conn, endpoints};
use std::collections::BTreeMap;
use uuid::Uuid;

pub mod history;
mod replay;
pub mod trial;

pub use replay::{Again, replay, replay_once};

/// Endpoints of one account in one mode, at most: each event is a row for each of them.
const MOST: usize = 1_000;

/// An endpoint as somebody asks for it.
#[derive(Clone, Debug)]
pub struct Wish {
    /// Of which world it is to be told.
    pub mode: Mode,
    /// Where to.
    pub url: String,
    /// What of.
    pub kinds: Kinds,
    /// Until when, for `heliograph listen` alone: its endpoint is on this machine.
    pub listening_until: Option<Timestamp>,
}

/// A fresh secret.
///
/// # Errors
/// [`Error::Internal`] when the operating system has no randomness.
pub fn secret(cx: &Context) -> Result<Secret> {
    Ok(Secret::from_random(&cx.random()?))
}

/// Registers an endpoint.
///
/// # Errors
/// [`Error::BadTarget`] when its URL leads where no webhook may go.
pub async fn add(cx: &Context, actor: &Actor, wish: Wish, secret: Secret) -> Result<Endpoint> {
    let url = check(cx, &wish).await?;
    let mut tx = cx.db.write().await?;
    let endpoint = insert(cx, &mut tx, actor, (wish, url, secret)).await?;
    tx.commit().await?;
    Ok(endpoint)
}

/// The same, one time however often it is asked for; the endpoint's number.
///
/// # Errors
/// As [`add`].
pub async fn add_once(
    cx: &Context,
    (caller, actor): (&Caller, &Actor),
    wish: Wish,
    once: Once,
) -> Result<EndpointId> {
    let keep = |id: &EndpointId| id.to_string();
    let asked = Asked::new(caller, (ENDPOINTS, ""), Some(once), &keep);
    if let Some(before) = asked.before(cx).await? {
        return number(&before);
    }
    let url = check(cx, &wish).await?;
    let mut tx = cx.db.write().await?;
    let made = insert(cx, &mut tx, actor, (wish, url, secret(cx)?)).await?.id;
    if !asked.keep(cx, &mut tx, (Uuid::nil(), &made)).await? {
        drop(tx);
        return number(&asked.before(cx).await?.ok_or(Error::RequestInFlight)?);
    }
    tx.commit().await?;
    Ok(made)
}

fn number(kept: &str) -> Result<EndpointId> {
    let bad = |_| Error::Internal(format!("an endpoint's number was kept as {kept:?}"));
    kept.parse().map(EndpointId).map_err(bad)
}

async fn insert(
    cx: &Context,
    tx: &mut Conn,
    actor: &Actor,
    (wish, url, secret): (Wish, String, Secret),
) -> Result<Endpoint> {
    let there = endpoints::of(tx, actor.account).await?;
    if there.iter().filter(|e| e.mode == wish.mode).count() >= MOST {
        return Err(Error::BadTarget(format!("there are {MOST} endpoints already")));
    }
    let mut endpoint = Endpoint {
        id: EndpointId(0),
        account: actor.account,
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
    endpoint.id = endpoints::insert(tx, &endpoint).await?;
    audit::write(cx, tx, actor, ("webhook added", &named(&endpoint))).await?;
    Ok(endpoint)
}

/// How the audit log names an endpoint.
fn named(e: &Endpoint) -> String {
    format!("{} ({}, {})", e.url, e.id, e.mode)
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

/// An account's endpoint with this number.
///
/// # Errors
/// [`Error::NotFound`].
pub async fn get(cx: &Context, account: AccountId, id: EndpointId) -> Result<Endpoint> {
    let mut conn = cx.db.read().await?;
    endpoints::get(&mut conn, account, id).await?.ok_or(Error::NotFound)
}

/// Whatever account's endpoint has this number, for the operator.
///
/// # Errors
/// [`Error::NotFound`].
pub async fn by_number(cx: &Context, id: EndpointId) -> Result<Endpoint> {
    let mut conn = cx.db.read().await?;
    endpoints::by_number(&mut conn, id).await?.ok_or(Error::NotFound)
}

/// Removes an endpoint, with all that it was still to be told.
///
/// # Errors
/// [`Error::NotFound`].
pub async fn remove(cx: &Context, actor: &Actor, id: EndpointId) -> Result<()> {
    change(cx, actor, id, "webhook removed", async |tx| {
        // The endpoint first, as reports do: two nodes that lock in different orders wait for each other.
        let there = endpoints::remove(tx, id).await?;
        deliveries::drop_for(tx, id).await?;
        Ok(there)
    })
    .await
}

/// Changes what an endpoint is told from now on.
///
/// # Errors
/// [`Error::NotFound`].
pub async fn choose(cx: &Context, actor: &Actor, id: EndpointId, kinds: Kinds) -> Result<()> {
    change(cx, actor, id, "webhook changed", async |tx| endpoints::choose(tx, id, kinds).await)
        .await
}

/// Shows an endpoint's secret.
///
/// # Errors
/// [`Error::NotFound`].
pub async fn reveal(cx: &Context, actor: &Actor, id: EndpointId) -> Result<Secret> {
    change(cx, actor, id, "webhook secret revealed", async |_| Ok(true)).await?;
    Ok(get(cx, actor.account, id).await?.secret)
}

/// Gives an endpoint a new secret; for a day, the one before it signs as well.
///
/// # Errors
/// [`Error::NotFound`].
pub async fn rotate(
    cx: &Context,
    actor: &Actor,
    id: EndpointId,
    secret: &Secret,
) -> Result<Timestamp> {
    let until = cx.db.now().after(ROTATION);
    let work = async |tx: &mut Conn| endpoints::rotate(tx, id, secret, until).await;
    change(cx, actor, id, "webhook secret rotated", work).await?;
    Ok(until)
}

/// The same, one time however often it is asked for: twice would take away the secret that is still in use.
///
/// # Errors
/// [`Error::NotFound`].
pub async fn rotate_once(
    cx: &Context,
    (caller, actor): (&Caller, &Actor),
    id: EndpointId,
    once: Once,
) -> Result<()> {
    let (secret, until) = (secret(cx)?, cx.db.now().after(ROTATION));
    let keep = |(): &()| String::new();
    let asked = Asked::new(caller, (ROTATIONS, &id.to_string()), Some(once), &keep);
    let work = async |tx: &mut Conn| {
        let first = asked.keep(cx, tx, (Uuid::nil(), &())).await?;
        Ok(first && endpoints::rotate(tx, id, &secret, until).await?)
    };
    match change(cx, actor, id, "webhook secret rotated", work).await {
        Err(Error::NotFound) if asked.before(cx).await?.is_some() => Ok(()),
        done => done,
    }
}

/// Switches an endpoint off: it is told nothing, and what it was still to be told can be replayed.
///
/// # Errors
/// [`Error::NotFound`] when there is none that is on.
pub async fn switch_off(cx: &Context, actor: &Actor, id: EndpointId) -> Result<()> {
    let now = cx.db.now();
    change(cx, actor, id, "webhook switched off", async |tx| {
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
pub async fn switch_on(cx: &Context, actor: &Actor, id: EndpointId) -> Result<()> {
    let work = async |tx: &mut Conn| endpoints::switch_on(tx, id).await;
    change(cx, actor, id, "webhook switched on", work).await
}

/// Lets an endpoint of `heliograph listen` live on until then.
///
/// # Errors
/// [`Error::NotFound`].
pub async fn keep(
    cx: &Context,
    account: AccountId,
    id: EndpointId,
    until: Timestamp,
) -> Result<()> {
    let mut tx = cx.db.write().await?;
    own(&mut tx, account, id).await?;
    endpoints::keep(&mut tx, id, until).await?;
    Ok(tx.commit().await?)
}

/// Does something to an account's endpoint, and writes down who did it. A number stays with its account for good, so
/// that whose it is needs to be looked at but once.
async fn change(
    cx: &Context,
    actor: &Actor,
    id: EndpointId,
    action: &str,
    work: impl AsyncFnOnce(&mut Conn) -> heliograph_store::Result<bool>,
) -> Result<()> {
    let mut tx = cx.db.write().await?;
    let endpoint = own(&mut tx, actor.account, id).await?;
    if !work(&mut tx).await? {
        return Err(Error::NotFound);
    }
    audit::write(cx, &mut tx, actor, (action, &named(&endpoint))).await?;
    Ok(tx.commit().await?)
}

async fn own(tx: &mut Conn, account: AccountId, id: EndpointId) -> Result<Endpoint> {
    endpoints::get(tx, account, id).await?.ok_or(Error::NotFound)
}

/// Has a sample sent to an endpoint, before everything else, also to one that is off. What came of it is told by
/// [`trial::Trial::of`].
///
/// # Errors
/// [`Error::NotFound`].
pub async fn test(cx: &Context, account: AccountId, id: EndpointId, kind: Kind) -> Result<EventId> {
    let endpoint = get(cx, account, id).await?;
    let (event, now) = cx.next_id();
    let (event, mode) = (EventId(event), endpoint.mode);
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
pub async fn attempts(
    cx: &Context,
    endpoint: (AccountId, EndpointId),
    limit: i64,
) -> Result<Vec<Attempt>> {
    let mut conn = cx.db.read().await?;
    Ok(attempts::at(&mut conn, endpoint, limit).await?)
}

/// How much waits for an endpoint.
///
/// # Errors
/// What keeps the database away, or [`Error::NotFound`].
pub async fn waiting(cx: &Context, account: AccountId, id: EndpointId) -> Result<i64> {
    let mut conn = cx.db.read().await?;
    own(&mut conn, account, id).await?;
    Ok(deliveries::depth(&mut conn, id).await?)
}
