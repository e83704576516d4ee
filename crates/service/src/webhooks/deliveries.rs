//! Webhook deliveries: leasing them to endpoint workers, and the meaning of responses.

use crate::kernel::commands::claim_deliveries::{ClaimDeliveries, LeasedDelivery};
use crate::kernel::commands::report_deliveries::{
    AttemptResult, DeliveryFailure, DeliveryOutcome, DeliveryReport,
};
use crate::kernel::context::Context;
use crate::webhooks::events::DeliveryQueues;
use async_recursion::async_recursion as boxed;
use heliograph_domain::delivery_error::{AttemptOutcome, DeliveryError, DeliveryErrorKind};
use heliograph_domain::endpoint_error::DisabledReason;
use heliograph_domain::event::{
    EventContent, EventKind, FinishedMessage, StoredEvent, WebhookEvent,
};
use heliograph_domain::id::{AccountId, EndpointId, InboundId, MessageId};
use heliograph_domain::lease::{DeliveryLease, LEASE};
use heliograph_domain::message::{Message, MessageState};
use heliograph_domain::retry;
use heliograph_domain::time::Timestamp;
use heliograph_domain::webhook::{DISABLE_AFTER, WebhookEndpoint};
use heliograph_store::identity::accounts;
use heliograph_store::messaging::inbound_messages;
use heliograph_store::messaging::messages;
use heliograph_store::webhooks::attempts::{self, DeliveryAttempt};
use heliograph_store::webhooks::deliveries::{self, DeliveryClaim};
use heliograph_store::webhooks::endpoints;
use heliograph_store::webhooks::events::{self, FirstAttempt};
use heliograph_store::{Conn, StoreResult};
use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::OwnedSemaphorePermit;
use uuid::Uuid;

/// The longest delay that an endpoint can request.
const MAX_RETRY_AFTER: Duration = Duration::from_secs(24 * 3_600);
/// The age up to which an event is retried every few seconds while its endpoint works.
const QUICK_RETRIES: Duration = Duration::from_secs(60);
/// The attempts after which a retry is brought forward when its endpoint works again: such a retry
/// waits for up to half an hour. Later ones keep their time, so that an endpoint that fails again
/// and again does not use up the attempts of three days.
const FORWARD_TRIES: u16 = 3;

/// The response to a webhook request.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum WebhookResponse {
    /// An HTTP response.
    Http {
        /// The status.
        status: u16,
        /// The beginning of the body.
        body: String,
        /// The delay requested by `Retry-After`.
        retry_after: Option<Duration>,
    },
    /// There was no response.
    NoResponse(DeliveryError),
}

/// What decides about the retry of a failed attempt, apart from the response.
#[derive(Clone, Copy, Debug)]
pub struct DeliveryAttemptInfo {
    /// The number of earlier attempts that count.
    pub tries: u16,
    /// The age of the event.
    pub age: Duration,
    /// True if other requests to the endpoint succeed.
    pub endpoint_works: bool,
}

/// Returns the outcome of an attempt. `random` is uniform in 0..1 and adds jitter to the back-off.
///
/// While other requests succeed, a failed one is retried every few seconds until its event is a
/// minute old, without counting: the failure may be one of many that come and go. Then the schedule
/// continues.
pub fn evaluate_response(
    attempt: DeliveryAttemptInfo,
    response: WebhookResponse,
    random: f64,
) -> DeliveryOutcome {
    let soon = attempt.endpoint_works && attempt.age < QUICK_RETRIES;
    let next = match soon {
        true => retry::webhook_delay(1, random),
        false => retry::webhook_delay(attempt.tries.saturating_add(1), random),
    };
    let counts = !soon;
    let (status, body, retry_after) = match response {
        WebhookResponse::Http { status: status @ 200..=299, body, .. } => {
            return DeliveryOutcome::Delivered {
                status,
                body: Some(body).filter(|b| !b.is_empty()),
            };
        }
        WebhookResponse::Http { status, body, retry_after } => (status, body, retry_after),
        WebhookResponse::NoResponse(error) => {
            let outcome = AttemptOutcome::Error(error.kind);
            let failure = DeliveryFailure { outcome, detail: Some(error.detail), body: None };
            return DeliveryOutcome::Failed { failure, retry_after: next, counts, gone: false };
        }
    };
    let asked = retry_after.filter(|_| matches!(status, 429 | 503)).map(|d| d.min(MAX_RETRY_AFTER));
    let retry_after = next.map(|next| asked.map_or(next, |asked| asked.max(next)));
    let body = Some(body).filter(|b| !b.is_empty());
    let outcome = AttemptOutcome::Response(status);
    let failure = DeliveryFailure { outcome, detail: None, body };
    DeliveryOutcome::Failed { failure, retry_after, counts, gone: status == 410 }
}

/// Leases deliveries to an endpoint worker.
#[boxed]
pub async fn claim(
    cx: &Context,
    tx: &mut Conn,
    collect: &ClaimDeliveries,
    now: Timestamp,
) -> StoreResult<Vec<(DeliveryLease, StoredEvent)>> {
    let due = if collect.urgent { URGENT } else { now };
    let until = now.after(LEASE);
    let limit = collect.room.num_permits();
    let now_for_own = cx.db.now_for_own_leases();
    let (node, endpoint) = (cx.node, collect.endpoint);
    let claim = DeliveryClaim { node, endpoint, due, now, now_for_own, until, limit };
    deliveries::claim(tx, &claim).await
}

/// The due time of tests, before everything else.
pub const URGENT: Timestamp = Timestamp(0);

/// Loads the events of leased deliveries; `None` where the subject was deleted meanwhile.
#[boxed]
pub async fn load_events(
    conn: &mut Conn,
    found: &[(DeliveryLease, StoredEvent)],
) -> StoreResult<Vec<Option<Arc<WebhookEvent>>>> {
    let events: Vec<&StoredEvent> = found.iter().map(|(_, event)| event).collect();
    with_contents(conn, &events).await
}

/// Loads the contents of events; `None` where the subject was deleted meanwhile.
pub(crate) async fn with_contents(
    conn: &mut Conn,
    found: &[&StoredEvent],
) -> StoreResult<Vec<Option<Arc<WebhookEvent>>>> {
    let mut subjects = ended(conn, found).await?;
    subjects.extend(received(conn, found).await?);
    let event = |e: &&StoredEvent| {
        let content = if e.test {
            EventContent::Test(e.kind)
        } else {
            subjects.get(&(e.account, e.subject?))?.clone()
        };
        let id = e.id;
        let account = e.account;
        let mode = e.mode;
        let at = e.at;
        Some(Arc::new(WebhookEvent { id, account, mode, at, content }))
    };
    Ok(found.iter().map(event).collect())
}

/// The subjects of events, by account and id.
type Subjects = HashMap<(AccountId, Uuid), EventContent>;

/// Returns the distinct subjects of the events whose kind matches.
fn subjects(
    found: &[&StoredEvent],
    holds: impl Fn(EventKind) -> bool,
) -> BTreeSet<(AccountId, Uuid)> {
    let real = found.iter().filter(|e| !e.test && holds(e.kind));
    real.filter_map(|e| Some((e.account, e.subject?))).collect()
}

async fn ended(conn: &mut Conn, found: &[&StoredEvent]) -> StoreResult<Subjects> {
    let keys = subjects(found, |kind| kind != EventKind::MessageReceived);
    let keys: Vec<_> = keys.into_iter().map(|(a, id)| (a, MessageId(id))).collect();
    let mut currencies: HashMap<AccountId, Arc<str>> = HashMap::new();
    for account in keys.iter().map(|(a, _)| *a).collect::<BTreeSet<_>>() {
        let currency = accounts::currency(conn, account).await?.unwrap_or_default();
        currencies.insert(account, currency.into());
    }
    let content = |(message, state): (Message, MessageState)| {
        let currency = currencies.get(&message.account).cloned().unwrap_or_default();
        let key = (message.account, message.id.0);
        (
            key,
            EventContent::Message(Box::new(FinishedMessage {
                message: Arc::new(message),
                state,
                currency,
            })),
        )
    };
    Ok(messages::get_many(conn, &keys).await?.into_iter().map(content).collect())
}

async fn received(conn: &mut Conn, found: &[&StoredEvent]) -> StoreResult<Subjects> {
    let keys = subjects(found, |kind| kind == EventKind::MessageReceived);
    let keys: Vec<_> = keys.into_iter().map(|(a, id)| (a, InboundId(id))).collect();
    let all = inbound_messages::get_many(conn, &keys).await?.into_iter();
    Ok(all.map(|m| ((m.account, m.id.0), EventContent::Received(Box::new(m)))).collect())
}

/// Assigns a slot to each leased delivery.
pub(crate) fn assign_slots(
    found: Vec<(DeliveryLease, StoredEvent)>,
    events: Vec<Option<Arc<WebhookEvent>>>,
    mut room: OwnedSemaphorePermit,
    since: Instant,
) -> Vec<LeasedDelivery> {
    let delivery =
        |((lease, row), event): ((DeliveryLease, StoredEvent), Option<Arc<WebhookEvent>>)| {
            let primary = row.endpoint == lease.endpoint;
            Some(LeasedDelivery { primary, lease, event: event?, since, room: room.split(1)? })
        };
    found.into_iter().zip(events).filter_map(delivery).collect()
}

/// Stores the results of deliveries, and returns whether they switched the endpoint off.
#[boxed]
pub async fn settle(tx: &mut Conn, report: &DeliveryReport, now: Timestamp) -> StoreResult<bool> {
    let mut done = Vec::new();
    let mut back = Vec::new();
    let mut firsts = Vec::new();
    let mut others = Vec::new();
    let mut results = EndpointResults::default();
    for a in &report.attempts {
        match &a.outcome {
            DeliveryOutcome::NotAttempted => {
                back.push((&a.lease, a.lease.due_at, a.lease.tries));
                continue;
            }
            DeliveryOutcome::Delivered { .. } => {
                results.delivered = true;
                done.push(&a.lease);
            }
            DeliveryOutcome::Failed { retry_after, counts, gone: leaves, .. } => {
                // The first attempt always counts: only it is stored with the event.
                let tries = a.lease.tries.saturating_add(u16::from(*counts)).max(1);
                // A test failure does not count against the endpoint, which may not be ready yet.
                results.failed |= a.lease.due_at != URGENT;
                results.gone |= leaves;
                match retry_after.filter(|_| !leaves && a.lease.due_at != URGENT) {
                    Some(wait) => back.push((&a.lease, now.after(wait), tries)),
                    None => done.push(&a.lease),
                }
            }
        }
        let first = a.primary && a.lease.tries == 0;
        if first {
            firsts.push(first_of(a));
        }
        // A test shows the response also when it succeeded.
        let test = a.lease.due_at == URGENT;
        if !first || test || matches!(a.outcome, DeliveryOutcome::Failed { .. }) {
            others.push(attempt_of(a));
        }
    }
    // The endpoint is locked before its deliveries: switching it off drops all of them, also those
    // that were just released here.
    let off = judge_endpoint(tx, report.endpoint, results, now).await?;
    deliveries::settle(tx, &done).await?;
    deliveries::release(tx, &back).await?;
    events::record_first_attempts(tx, &firsts).await?;
    attempts::insert(tx, &others).await?;
    if off {
        deliveries::delete_for_endpoint(tx, report.endpoint).await?;
    }
    Ok(off)
}

/// The results of a report that decide about its endpoint.
#[derive(Clone, Copy, Default)]
struct EndpointResults {
    /// True if a delivery succeeded.
    delivered: bool,
    /// True if a delivery that is not a test failed.
    failed: bool,
    /// True if the endpoint responded with 410 Gone.
    gone: bool,
}

async fn judge_endpoint(
    tx: &mut Conn,
    endpoint: EndpointId,
    results: EndpointResults,
    now: Timestamp,
) -> StoreResult<bool> {
    if results.gone {
        return endpoints::disable(tx, endpoint, DisabledReason::Gone, now).await;
    }
    if results.delivered {
        endpoints::mark_working(tx, endpoint).await?;
    }
    if results.delivered || !results.failed {
        return Ok(false);
    }
    endpoints::mark_failing(tx, endpoint, now).await?;
    let limit = now.millis().saturating_sub(i64::try_from(DISABLE_AFTER.as_millis()).unwrap_or(0));
    endpoints::disable_if_failing(tx, endpoint, Timestamp(limit), now).await
}

fn first_of(a: &AttemptResult) -> FirstAttempt {
    let outcome = outcome(&a.outcome);
    let duration = millis(a.took);
    FirstAttempt { account: a.account, event: a.lease.event, outcome, duration, at: a.at }
}

fn attempt_of(a: &AttemptResult) -> DeliveryAttempt {
    let (detail, body) = match &a.outcome {
        DeliveryOutcome::Failed { failure, .. } => (failure.detail.clone(), failure.body.clone()),
        DeliveryOutcome::Delivered { body, .. } if a.lease.due_at == URGENT => (None, body.clone()),
        _ => (None, None),
    };
    DeliveryAttempt {
        account: a.account,
        event: a.lease.event,
        endpoint: a.lease.endpoint,
        at: a.at,
        outcome: outcome(&a.outcome),
        duration: millis(a.took),
        detail,
        body,
    }
}

fn outcome(outcome: &DeliveryOutcome) -> AttemptOutcome {
    match outcome {
        DeliveryOutcome::Delivered { status, .. } => AttemptOutcome::Response(*status),
        DeliveryOutcome::Failed { failure, .. } => failure.outcome,
        DeliveryOutcome::NotAttempted => AttemptOutcome::Error(DeliveryErrorKind::Other),
    }
}

fn millis(took: Duration) -> i32 {
    i32::try_from(took.as_millis()).unwrap_or(i32::MAX)
}

/// Returns the endpoints with due deliveries, each with whether one of them is a test.
#[boxed]
pub async fn due_endpoints(cx: &Context) -> StoreResult<Vec<(EndpointId, bool)>> {
    let mut conn = cx.db.read().await?;
    let now = cx.db.now();
    let all = deliveries::endpoints_with_pending(&mut conn)
        .await?
        .into_iter()
        .filter(|(_, due)| *due <= now);
    Ok(all.map(|(endpoint, due)| (endpoint, due <= URGENT)).collect())
}

/// Makes up to `limit` retries of an endpoint due now, the earliest first, and returns their number.
#[boxed]
pub async fn bring_forward(cx: &Context, endpoint: EndpointId, limit: u64) -> StoreResult<u64> {
    let mut tx = cx.db.write().await?;
    let now = cx.db.now();
    let moved = deliveries::bring_forward(&mut tx, endpoint, (now, FORWARD_TRIES), limit).await?;
    tx.commit().await?;
    Ok(moved)
}

/// Returns an endpoint, unless it has expired.
#[boxed]
pub async fn endpoint(cx: &Context, id: EndpointId) -> StoreResult<Option<WebhookEndpoint>> {
    let mut conn = cx.db.read().await?;
    let found = endpoints::by_id(&mut conn, id).await?;
    Ok(found.filter(|e| e.expires_at.is_none_or(|at| at > cx.db.now())))
}

/// Drops the pending deliveries of an endpoint that was switched off; they can be replayed.
#[boxed]
pub async fn drop_pending_if_off(cx: &Context, id: EndpointId) -> StoreResult<()> {
    let mut tx = cx.db.write().await?;
    deliveries::delete_if_disabled(&mut tx, id).await?;
    tx.commit().await
}

/// Hands freshly committed deliveries to the endpoint workers, and wakes those that have to claim.
pub(crate) fn hand_over(
    queues: &DeliveryQueues,
    pending: crate::webhooks::events::PendingHandOver,
) {
    for (endpoint, leased) in pending.handed_over {
        queues.hand_over(endpoint, leased);
    }
    for endpoint in pending.backlogged {
        queues.mark_backlogged(endpoint);
    }
}
