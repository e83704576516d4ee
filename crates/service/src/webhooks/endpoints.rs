//! Webhook endpoints: registering, changing, testing and replaying.

use crate::kernel::audit::{self, Actor, AuditAction};
use crate::kernel::caller::Caller;
use crate::kernel::context::Context;
use crate::kernel::error::{Error, Result};
use crate::kernel::idempotency::{ENDPOINTS, IdempotentRequest, ROTATIONS, RequestKey};
use crate::webhooks::deliveries::URGENT;
use async_recursion::async_recursion as boxed;
use heliograph_domain::account::{Mode, Scope};
use heliograph_domain::account_limit::AccountLimit;
use heliograph_domain::delivery_error::AttemptOutcome;
use heliograph_domain::endpoint_error::{DisabledReason, InvalidEndpoint};
use heliograph_domain::event::{EventKind, StoredEvent};
use heliograph_domain::id::{AccountId, EndpointId, EventId};
use heliograph_domain::time::Timestamp;
use heliograph_domain::webhook::{EventKinds, SECRET_OVERLAP, WebhookEndpoint, WebhookSecret};
use heliograph_domain::webhook_url::WebhookUrl;
use heliograph_store::Conn;
use heliograph_store::webhooks::attempts::{self, DeliveryAttempt};
use heliograph_store::webhooks::deliveries::{self, NewDelivery};
use heliograph_store::webhooks::endpoints;
use heliograph_store::webhooks::events::{self, FirstAttempt};
use std::collections::BTreeMap;
use uuid::Uuid;

/// A request to register an endpoint.
#[derive(Clone, Debug)]
pub struct NewEndpoint {
    /// The mode (live or test) of its events.
    pub mode: Mode,
    /// The URL.
    pub url: String,
    /// The event kinds.
    pub kinds: EventKinds,
    /// The expiry, only for `heliograph listen`: its endpoint is on this machine.
    pub listening_until: Option<Timestamp>,
}

/// Returns a fresh signing secret.
///
/// # Errors
/// [`Error::Internal`] when the operating system provides no random bytes.
pub fn secret(cx: &Context) -> Result<WebhookSecret> {
    Ok(WebhookSecret::from_random(&cx.random()?))
}

/// Registers an endpoint.
///
/// # Errors
/// [`Error::InvalidEndpoint`] when the egress policy forbids its URL (SSRF protection), or when
/// there is an endpoint with this URL; [`Error::LimitReached`].
#[boxed]
pub async fn add(
    cx: &Context,
    actor: &Actor,
    wish: NewEndpoint,
    secret: WebhookSecret,
) -> Result<WebhookEndpoint> {
    let url = check(cx, actor.account, &wish.url, wish.listening_until.is_some()).await?;
    let mut tx = cx.db.write().await?;
    let endpoint = insert(cx, &mut tx, actor, CheckedEndpoint { wish, url, secret }).await?;
    tx.commit().await?;
    Ok(endpoint)
}

/// Registers an endpoint once per idempotency key, and returns its id.
///
/// # Errors
/// Those of [`add`].
#[boxed]
pub async fn add_once(
    cx: &Context,
    caller: &Caller,
    actor: &Actor,
    wish: NewEndpoint,
    once: RequestKey,
) -> Result<EndpointId> {
    let keep = |id: &EndpointId| id.to_string();
    let asked = IdempotentRequest::new(caller, ENDPOINTS, "", Some(once), &keep);
    if let Some(before) = asked.stored_answer(cx).await? {
        return number(&before);
    }
    let url = check(cx, actor.account, &wish.url, wish.listening_until.is_some()).await?;
    let mut tx = cx.db.write().await?;
    let checked = CheckedEndpoint { wish, url, secret: secret(cx)? };
    let made = insert(cx, &mut tx, actor, checked).await?.id;
    if !asked.save(cx, &mut tx, Uuid::nil(), &made).await? {
        drop(tx);
        return number(&asked.stored_answer(cx).await?.ok_or(Error::RequestInFlight)?);
    }
    tx.commit().await?;
    Ok(made)
}

fn number(kept: &str) -> Result<EndpointId> {
    let bad = |_| Error::Internal(format!("invalid endpoint id in a stored answer: {kept:?}"));
    kept.parse().map(EndpointId).map_err(bad)
}

/// An endpoint whose URL was checked.
struct CheckedEndpoint {
    wish: NewEndpoint,
    /// The normalized URL.
    url: String,
    secret: WebhookSecret,
}

async fn insert(
    cx: &Context,
    tx: &mut Conn,
    actor: &Actor,
    checked: CheckedEndpoint,
) -> Result<WebhookEndpoint> {
    let CheckedEndpoint { wish, url, secret } = checked;
    let there = endpoints::list(tx, actor.account).await?;
    let there: Vec<_> = there.iter().filter(|e| e.mode == wish.mode && !e.local).collect();
    // Endpoints of `heliograph listen` are few and end by themselves.
    let local = wish.listening_until.is_some();
    if !local {
        require_unused_url(&there, &url)?;
    }
    let limit = AccountLimit::WebhookEndpoints;
    let max = cx.limits.max(actor.account, limit).filter(|_| !local);
    if max.is_some_and(|max| there.len() >= usize::try_from(max).unwrap_or(usize::MAX)) {
        return Err(cx.limits.reached(actor.account, limit));
    }
    let mut endpoint = WebhookEndpoint {
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
    audit::record(cx, tx, actor, AuditAction::WebhookAdded, &named(&endpoint)).await?;
    Ok(endpoint)
}

/// Rejects a URL that one of these endpoints has.
fn require_unused_url(all: &[&WebhookEndpoint], url: &str) -> Result<()> {
    match all.iter().find(|e| e.url == url) {
        Some(same) => Err(InvalidEndpoint::Duplicate(same.id).into()),
        None => Ok(()),
    }
}

/// Returns the name of an endpoint in the audit log.
fn named(e: &WebhookEndpoint) -> String {
    format!("{} ({}, {})", e.url, e.id, e.mode)
}

/// Checks a URL against the egress policy (SSRF protection), as each attempt does again, and
/// returns it normalized. The endpoint of `heliograph listen` is `local`: it is on this machine.
async fn check(cx: &Context, account: AccountId, url: &str, local: bool) -> Result<String> {
    let target = WebhookUrl::parse(url).map_err(InvalidEndpoint::Url)?;
    let egress_policy = cx.settings().egress_policy.clone();
    let egress_policy = if local { egress_policy.with_loopback() } else { egress_policy };
    egress_policy.check_port(target.port()).map_err(InvalidEndpoint::Denied)?;
    let host = target.host();
    let addresses = match target.address() {
        Some(address) => vec![address],
        None => {
            let found = cx.names.resolve(account, host.clone()).await;
            found.map_err(|e| InvalidEndpoint::HostNotFound {
                host: host.clone(),
                error: e.to_string(),
            })?
        }
    };
    if addresses.is_empty() {
        return Err(InvalidEndpoint::NoAddress(host).into());
    }
    for address in addresses {
        egress_policy.check(address, target.is_https()).map_err(InvalidEndpoint::Denied)?;
    }
    Ok(target.as_str().to_owned())
}

/// Returns the endpoints of an account, the oldest first.
#[boxed]
pub async fn list(cx: &Context, account: AccountId) -> Result<Vec<WebhookEndpoint>> {
    let mut conn = cx.db.read().await?;
    Ok(endpoints::list(&mut conn, account).await?)
}

/// Returns an endpoint of an account.
#[boxed]
pub async fn get(cx: &Context, account: AccountId, id: EndpointId) -> Result<WebhookEndpoint> {
    let mut conn = cx.db.read().await?;
    endpoints::get(&mut conn, account, id).await?.ok_or(Error::NotFound)
}

/// Returns an endpoint of any account, for operators.
#[boxed]
pub async fn by_number(cx: &Context, id: EndpointId) -> Result<WebhookEndpoint> {
    let mut conn = cx.db.read().await?;
    endpoints::by_id(&mut conn, id).await?.ok_or(Error::NotFound)
}

/// Removes an endpoint with its pending deliveries.
#[boxed]
pub async fn remove(cx: &Context, actor: &Actor, id: EndpointId) -> Result<()> {
    change(cx, actor, id, AuditAction::WebhookRemoved, async |tx| {
        // The endpoint first, as in reports: different lock orders of two nodes would deadlock.
        let there = endpoints::delete(tx, id).await?;
        deliveries::delete_for_endpoint(tx, id).await?;
        Ok(there)
    })
    .await
}

/// A change of an endpoint; what is `None` stays as it is.
#[derive(Clone, Debug, Default)]
pub struct EndpointChange {
    /// The URL. Pending deliveries go to the new one.
    pub url: Option<String>,
    /// The event kinds, from now on.
    pub kinds: Option<EventKinds>,
}

/// Changes an endpoint.
///
/// # Errors
/// [`Error::InvalidEndpoint`], as when an endpoint is added.
#[boxed]
pub async fn update(
    cx: &Context,
    actor: &Actor,
    id: EndpointId,
    wish: EndpointChange,
) -> Result<()> {
    let endpoint = get(cx, actor.account, id).await?;
    let url = wish.url.filter(|url| *url != endpoint.url);
    let url = match url {
        Some(url) => Some(check(cx, actor.account, &url, endpoint.local).await?),
        None => None,
    };
    let mut tx = cx.db.write().await?;
    let mut endpoint = own(&mut tx, actor.account, id).await?;
    if let Some(url) = url.filter(|url| *url != endpoint.url) {
        let all = endpoints::list(&mut tx, actor.account).await?;
        let all: Vec<_> = all.iter().filter(|e| e.mode == endpoint.mode && !e.local).collect();
        require_unused_url(&all, &url)?;
        endpoints::set_url(&mut tx, id, &url).await?;
        endpoint.url = url;
    }
    if let Some(kinds) = wish.kinds {
        endpoints::set_kinds(&mut tx, id, kinds).await?;
    }
    audit::record(cx, &mut tx, actor, AuditAction::WebhookChanged, &named(&endpoint)).await?;
    Ok(tx.commit().await?)
}

/// Returns the signing secret of an endpoint.
#[boxed]
pub async fn reveal(cx: &Context, actor: &Actor, id: EndpointId) -> Result<WebhookSecret> {
    change(cx, actor, id, AuditAction::WebhookSecretRevealed, async |_| Ok(true)).await?;
    Ok(get(cx, actor.account, id).await?.secret)
}

/// Replaces the signing secret of an endpoint; requests are signed with both secrets for a day.
#[boxed]
pub async fn rotate(
    cx: &Context,
    actor: &Actor,
    id: EndpointId,
    secret: &WebhookSecret,
) -> Result<Timestamp> {
    let until = cx.db.now().after(SECRET_OVERLAP);
    let work = async |tx: &mut Conn| endpoints::rotate_secret(tx, id, secret, until).await;
    change(cx, actor, id, AuditAction::WebhookSecretRotated, work).await?;
    Ok(until)
}

/// Replaces the signing secret once per idempotency key: a second rotation would revoke the secret
/// that is still in use.
#[boxed]
pub async fn rotate_once(
    cx: &Context,
    caller: &Caller,
    actor: &Actor,
    id: EndpointId,
    once: RequestKey,
) -> Result<()> {
    let secret = secret(cx)?;
    let until = cx.db.now().after(SECRET_OVERLAP);
    let keep = |(): &()| String::new();
    let asked = IdempotentRequest::new(caller, ROTATIONS, &id.to_string(), Some(once), &keep);
    let work = async |tx: &mut Conn| {
        let first = asked.save(cx, tx, Uuid::nil(), &()).await?;
        Ok(first && endpoints::rotate_secret(tx, id, &secret, until).await?)
    };
    match change(cx, actor, id, AuditAction::WebhookSecretRotated, work).await {
        Err(Error::NotFound) if asked.stored_answer(cx).await?.is_some() => Ok(()),
        done => done,
    }
}

/// Switches an endpoint off and drops its pending deliveries, which can be replayed.
///
/// # Errors
/// [`Error::NotFound`] also when the endpoint is off.
#[boxed]
pub async fn switch_off(cx: &Context, actor: &Actor, id: EndpointId) -> Result<()> {
    let now = cx.db.now();
    change(cx, actor, id, AuditAction::WebhookDisabled, async |tx| {
        let was_on = endpoints::disable(tx, id, DisabledReason::Manual, now).await?;
        deliveries::delete_for_endpoint(tx, id).await?;
        Ok(was_on)
    })
    .await
}

/// Switches an endpoint on and clears its record of failures.
#[boxed]
pub async fn switch_on(cx: &Context, actor: &Actor, id: EndpointId) -> Result<()> {
    let work = async |tx: &mut Conn| endpoints::enable(tx, id).await;
    change(cx, actor, id, AuditAction::WebhookEnabled, work).await
}

/// Extends the life of an endpoint of `heliograph listen`.
#[boxed]
pub async fn extend(
    cx: &Context,
    account: AccountId,
    id: EndpointId,
    until: Timestamp,
) -> Result<()> {
    let mut tx = cx.db.write().await?;
    own(&mut tx, account, id).await?;
    endpoints::extend(&mut tx, id, until).await?;
    Ok(tx.commit().await?)
}

/// Changes an endpoint of an account and records it in the audit log. An endpoint never moves to
/// another account, so that its owner is checked only once.
async fn change(
    cx: &Context,
    actor: &Actor,
    id: EndpointId,
    action: AuditAction,
    work: impl AsyncFnOnce(&mut Conn) -> heliograph_store::StoreResult<bool>,
) -> Result<()> {
    let mut tx = cx.db.write().await?;
    let endpoint = own(&mut tx, actor.account, id).await?;
    if !work(&mut tx).await? {
        return Err(Error::NotFound);
    }
    audit::record(cx, &mut tx, actor, action, &named(&endpoint)).await?;
    Ok(tx.commit().await?)
}

async fn own(tx: &mut Conn, account: AccountId, id: EndpointId) -> Result<WebhookEndpoint> {
    endpoints::get(tx, account, id).await?.ok_or(Error::NotFound)
}

/// Sends a test event to an endpoint before everything else, even when the endpoint is off.
/// [`crate::webhooks::test_delivery::TestDelivery::load`] returns the result.
#[boxed]
pub async fn send_test(
    cx: &Context,
    account: AccountId,
    id: EndpointId,
    kind: EventKind,
) -> Result<EventId> {
    let endpoint = get(cx, account, id).await?;
    let (event, now) = cx.next_id();
    let event = EventId(event);
    let row = StoredEvent {
        account,
        id: event,
        mode: endpoint.mode,
        kind,
        test: true,
        subject: None,
        at: now,
        endpoint: id,
    };
    let mut tx = cx.db.write().await?;
    events::insert(&mut tx, &[row]).await?;
    let due = NewDelivery { endpoint: id, due_at: URGENT, event, account, owner: None };
    deliveries::insert(&mut tx, &[due], now).await?;
    tx.commit().await?;
    Ok(event)
}

/// The known delivery attempts of an event.
#[derive(Clone, Debug)]
pub struct EventAttempts {
    /// The first attempt at the first endpoint.
    pub first: Option<FirstAttempt>,
    /// Failures and later successes, the oldest first.
    pub attempts: Vec<DeliveryAttempt>,
}

/// Returns the delivery attempts of an event.
#[boxed]
pub async fn event_attempts(
    cx: &Context,
    account: AccountId,
    event: EventId,
) -> Result<EventAttempts> {
    let mut conn = cx.db.read().await?;
    let found = events::get(&mut conn, account, event).await?;
    let (_, first) = found.ok_or(Error::NotFound)?;
    let attempts = attempts::list_for_event(&mut conn, account, event).await?;
    Ok(EventAttempts { first, attempts })
}

/// A delivery of an event to an endpoint.
#[derive(Clone, Debug)]
pub struct EndpointDelivery {
    /// The event kind.
    pub kind: EventKind,
    /// The event.
    pub event: EventId,
    /// The endpoint.
    pub endpoint: EndpointId,
    /// The URL; empty when the endpoint was removed.
    pub url: String,
    /// The outcome of the last known attempt; `None` before the first attempt.
    pub outcome: Option<AttemptOutcome>,
    /// The time of that attempt.
    pub at: Option<Timestamp>,
}

/// Returns the deliveries about these messages, each given with the time of its event.
#[boxed]
pub async fn deliveries_about(
    cx: &Context,
    caller: &Caller,
    things: &[(Uuid, Timestamp)],
) -> Result<Vec<EndpointDelivery>> {
    caller.require_scope(Scope::Read)?;
    let mut conn = cx.db.read().await?;
    let endpoints = endpoints::list(&mut conn, caller.account).await?;
    let url = |id: EndpointId| endpoints.iter().find(|e| e.id == id).map(|e| e.url.clone());
    let mut rows = Vec::new();
    for thing in things {
        for (event, first) in events::list_for_subject(&mut conn, caller.account, *thing).await? {
            let attempts = attempts::list_for_event(&mut conn, caller.account, event.id).await?;
            let mut last: BTreeMap<EndpointId, Option<(AttemptOutcome, Timestamp)>> =
                BTreeMap::new();
            last.insert(event.endpoint, first.map(|f| (f.outcome, f.at)));
            last.extend(attempts.iter().map(|a| (a.endpoint, Some((a.outcome, a.at)))));
            rows.extend(last.into_iter().map(|(endpoint, last)| EndpointDelivery {
                kind: event.kind,
                event: event.id,
                endpoint,
                url: url(endpoint).unwrap_or_default(),
                outcome: last.map(|(outcome, _)| outcome),
                at: last.map(|(_, at)| at),
            }));
        }
    }
    Ok(rows)
}

/// Returns the latest attempts at an endpoint, the newest first; first-attempt successes are left
/// out.
#[boxed]
pub async fn attempts(
    cx: &Context,
    account: AccountId,
    id: EndpointId,
    limit: i64,
) -> Result<Vec<DeliveryAttempt>> {
    let mut conn = cx.db.read().await?;
    Ok(attempts::list_for_endpoint(&mut conn, (account, id), limit).await?)
}

/// Returns the number of pending deliveries of an endpoint.
#[boxed]
pub async fn waiting(cx: &Context, account: AccountId, id: EndpointId) -> Result<i64> {
    let mut conn = cx.db.read().await?;
    own(&mut conn, account, id).await?;
    Ok(deliveries::depth(&mut conn, id).await?)
}
