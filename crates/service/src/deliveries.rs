//! Deliveries: who may tell what, and what an answer means for a webhook.

use crate::context::Context;
use crate::events::Couriers;
use crate::parcel::{Attempted, Collect, Failure, Parcel, Report, Verdict};
use heliograph_domain::event::{Content, Ended, Event, Kind, Occurrence};
use heliograph_domain::id::{AccountId, EndpointId, InboundId, MessageId, NodeId};
use heliograph_domain::lease::{DeliveryLease, LEASE};
use heliograph_domain::message::{Message, State};
use heliograph_domain::retry;
use heliograph_domain::time::Timestamp;
use heliograph_domain::webhook::{Endpoint, OffReason, PATIENCE};
use heliograph_store::attempts::{self, Attempt};
use heliograph_store::deliveries::{self, Claim};
use heliograph_store::events::{self, First};
use heliograph_store::{Conn, Result, accounts, endpoints, inbound_messages, messages};
use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::OwnedSemaphorePermit;
use uuid::Uuid;

/// The most that an endpoint can ask to wait.
const MOST_WAIT: Duration = Duration::from_secs(24 * 3_600);

/// What came back from a POST.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Response {
    /// An HTTP answer.
    Answered {
        /// Its status.
        status: u16,
        /// How its body began.
        body: String,
        /// What its `Retry-After` asks for.
        retry_after: Option<Duration>,
    },
    /// None: why, in words.
    Broken(String),
}

/// What a response means for a webhook that was tried `tries` times before. `random` is uniform in 0..1.
pub fn judge(tries: u16, response: Response, random: f64) -> Verdict {
    let next = retry::webhook_delay(tries.saturating_add(1), random);
    let (status, body, retry_after) = match response {
        Response::Answered { status: status @ 200..=299, body, .. } => {
            return Verdict::Taken { status, body: Some(body).filter(|b| !b.is_empty()) };
        }
        Response::Answered { status, body, retry_after } => (status, body, retry_after),
        Response::Broken(detail) => {
            let failure = Failure { status: None, detail, body: None };
            return Verdict::Failed { failure, again: next, gone: false };
        }
    };
    let asked = retry_after.filter(|_| matches!(status, 429 | 503)).map(|d| d.min(MOST_WAIT));
    let again = next.map(|next| asked.map_or(next, |asked| asked.max(next)));
    let detail = match status {
        300..=399 => format!("it answered {status}: redirects are not followed"),
        410 => "it answered 410 Gone: the endpoint was switched off".to_owned(),
        _ => format!("it answered {status}"),
    };
    let body = Some(body).filter(|b| !b.is_empty());
    let failure = Failure { status: Some(status), detail, body };
    Verdict::Failed { failure, again, gone: status == 410 }
}

/// Leases deliveries for a courier.
///
/// # Errors
/// As any write.
pub async fn claim(
    tx: &mut Conn,
    node: NodeId,
    collect: &Collect,
    now: Timestamp,
) -> Result<Vec<(DeliveryLease, Occurrence)>> {
    let due = if collect.urgent { URGENT } else { now };
    let (until, limit) = (now.after(LEASE), collect.room.num_permits());
    let claim = Claim { node, endpoint: collect.endpoint, due, now, until, limit };
    deliveries::claim(tx, &claim).await
}

/// Due before everything else: tests.
pub const URGENT: Timestamp = Timestamp(0);

/// Finds what leased deliveries tell; what is gone meanwhile is left out.
///
/// # Errors
/// As any read.
pub async fn unfold(
    conn: &mut Conn,
    found: &[(DeliveryLease, Occurrence)],
) -> Result<Vec<Option<Arc<Event>>>> {
    let mut subjects = ended(conn, found).await?;
    subjects.extend(received(conn, found).await?);
    let event = |(_, e): &(DeliveryLease, Occurrence)| {
        let content = match e.test {
            true => Content::Test(e.kind),
            false => subjects.get(&(e.account, e.subject?))?.clone(),
        };
        let (id, account, mode, at) = (e.id, e.account, e.mode, e.at);
        Some(Arc::new(Event { id, account, mode, at, content }))
    };
    Ok(found.iter().map(event).collect())
}

/// What events speak of, by account and id.
type Subjects = HashMap<(AccountId, Uuid), Content>;

/// The subjects of the events of which this holds; none twice.
fn subjects(
    found: &[(DeliveryLease, Occurrence)],
    holds: impl Fn(Kind) -> bool,
) -> BTreeSet<(AccountId, Uuid)> {
    let real = found.iter().filter(|(_, e)| !e.test && holds(e.kind));
    real.filter_map(|(_, e)| Some((e.account, e.subject?))).collect()
}

async fn ended(conn: &mut Conn, found: &[(DeliveryLease, Occurrence)]) -> Result<Subjects> {
    let keys = subjects(found, |kind| kind != Kind::MessageReceived);
    let keys: Vec<_> = keys.into_iter().map(|(a, id)| (a, MessageId(id))).collect();
    let mut currencies: HashMap<AccountId, Arc<str>> = HashMap::new();
    for account in keys.iter().map(|(a, _)| *a).collect::<BTreeSet<_>>() {
        let currency = accounts::currency(conn, account).await?.unwrap_or_default();
        currencies.insert(account, currency.into());
    }
    let content = |(message, state): (Message, State)| {
        let currency = currencies.get(&message.account).cloned().unwrap_or_default();
        let key = (message.account, message.id.0);
        (key, Content::Message(Box::new(Ended { message: Arc::new(message), state, currency })))
    };
    Ok(messages::whole(conn, &keys).await?.into_iter().map(content).collect())
}

async fn received(conn: &mut Conn, found: &[(DeliveryLease, Occurrence)]) -> Result<Subjects> {
    let keys = subjects(found, |kind| kind == Kind::MessageReceived);
    let keys: Vec<_> = keys.into_iter().map(|(a, id)| (a, InboundId(id))).collect();
    let all = inbound_messages::whole(conn, &keys).await?.into_iter();
    Ok(all.map(|m| ((m.account, m.id.0), Content::Received(Box::new(m)))).collect())
}

/// Gives each leased delivery its place.
pub(crate) fn place(
    found: Vec<(DeliveryLease, Occurrence)>,
    events: Vec<Option<Arc<Event>>>,
    mut room: OwnedSemaphorePermit,
    since: Instant,
) -> Vec<Parcel> {
    let parcel = |((lease, row), event): ((DeliveryLease, Occurrence), Option<Arc<Event>>)| {
        let primary = row.endpoint == lease.endpoint;
        Some(Parcel { primary, lease, event: event?, since, room: room.split(1)? })
    };
    found.into_iter().zip(events).filter_map(parcel).collect()
}

/// Writes down what became of parcels; whether the endpoint was switched off for it.
///
/// # Errors
/// As any write.
pub async fn settle(tx: &mut Conn, report: &Report, now: Timestamp) -> Result<bool> {
    let (mut done, mut back) = (Vec::new(), Vec::new());
    let (mut firsts, mut others) = (Vec::new(), Vec::new());
    let (mut taken, mut failed, mut gone) = (false, false, false);
    for a in &report.attempts {
        let tries = a.lease.tries.saturating_add(1);
        match &a.verdict {
            Verdict::NotTried => {
                back.push((&a.lease, a.lease.due_at, a.lease.tries));
                continue;
            }
            Verdict::Taken { .. } => {
                taken = true;
                done.push(&a.lease);
            }
            Verdict::Failed { again, gone: leaves, .. } => {
                // A test may be of an endpoint that is not ready yet.
                failed |= a.lease.due_at != URGENT;
                gone |= leaves;
                match again.filter(|_| !leaves && a.lease.due_at != URGENT) {
                    Some(wait) => back.push((&a.lease, now.after(wait), tries)),
                    None => done.push(&a.lease),
                }
            }
        }
        let first = a.primary && a.lease.tries == 0;
        if first {
            firsts.push(first_of(a));
        }
        // Who tests wants to see the answer, also a good one.
        let test = a.lease.due_at == URGENT;
        if !first || test || matches!(a.verdict, Verdict::Failed { .. }) {
            others.push(attempt_of(a));
        }
    }
    // The endpoint before what waits for it: whoever switches it off takes away all of that, also what others
    // have just settled.
    let off = judge_endpoint(tx, report.endpoint, (taken, failed, gone), now).await?;
    deliveries::settle(tx, &done).await?;
    deliveries::give_back(tx, &back).await?;
    events::answered(tx, &firsts).await?;
    attempts::insert(tx, &others).await?;
    if off {
        deliveries::drop_for(tx, report.endpoint).await?;
    }
    Ok(off)
}

async fn judge_endpoint(
    tx: &mut Conn,
    endpoint: EndpointId,
    (taken, failed, gone): (bool, bool, bool),
    now: Timestamp,
) -> Result<bool> {
    if gone {
        return endpoints::switch_off(tx, endpoint, OffReason::Gone, now).await;
    }
    if taken {
        endpoints::working(tx, endpoint).await?;
    }
    if taken || !failed {
        return Ok(false);
    }
    endpoints::failing(tx, endpoint, now).await?;
    let limit = now.millis().saturating_sub(i64::try_from(PATIENCE.as_millis()).unwrap_or(0));
    endpoints::give_up(tx, endpoint, Timestamp(limit), now).await
}

fn first_of(a: &Attempted) -> First {
    let (outcome, duration) = (outcome(&a.verdict), millis(a.took));
    First { account: a.account, event: a.lease.event, outcome, duration, at: a.at }
}

fn attempt_of(a: &Attempted) -> Attempt {
    let (detail, body) = match &a.verdict {
        Verdict::Failed { failure, .. } => (Some(failure.detail.clone()), failure.body.clone()),
        Verdict::Taken { body, .. } if a.lease.due_at == URGENT => (None, body.clone()),
        _ => (None, None),
    };
    Attempt {
        account: a.account,
        event: a.lease.event,
        endpoint: a.lease.endpoint,
        at: a.at,
        outcome: outcome(&a.verdict),
        duration: millis(a.took),
        detail,
        body,
    }
}

fn outcome(verdict: &Verdict) -> i16 {
    let status = match verdict {
        Verdict::Taken { status, .. } => *status,
        Verdict::Failed { failure, .. } => failure.status.unwrap_or(0),
        Verdict::NotTried => 0,
    };
    i16::try_from(status).unwrap_or(0)
}

fn millis(took: Duration) -> i32 {
    i32::try_from(took.as_millis()).unwrap_or(i32::MAX)
}

/// The endpoints that something is due for now, each with whether that is a test.
///
/// # Errors
/// As any read.
pub async fn due(cx: &Context) -> Result<Vec<(EndpointId, bool)>> {
    let mut conn = cx.db.read().await?;
    let now = cx.db.now();
    let all = deliveries::waiting(&mut conn).await?.into_iter().filter(|(_, due)| *due <= now);
    Ok(all.map(|(endpoint, due)| (endpoint, due <= URGENT)).collect())
}

/// An endpoint as it is now, unless its time is over.
///
/// # Errors
/// As any read.
pub async fn endpoint(cx: &Context, id: EndpointId) -> Result<Option<Endpoint>> {
    let mut conn = cx.db.read().await?;
    let found = endpoints::by_number(&mut conn, id).await?;
    Ok(found.filter(|e| e.expires_at.is_none_or(|at| at > cx.db.now())))
}

/// Drops what waits for an endpoint that was switched off meanwhile; it can be replayed.
///
/// # Errors
/// As any write.
pub async fn withdraw(cx: &Context, id: EndpointId) -> Result<()> {
    let mut tx = cx.db.write().await?;
    deliveries::drop_if_off(&mut tx, id).await?;
    tx.commit().await
}

/// Gives freshly committed parcels to the couriers, and rings for those that have to be claimed.
pub(crate) fn hand_over(couriers: &Couriers, told: crate::events::Told) {
    for (endpoint, parcels) in told.handed {
        couriers.hand_over(endpoint, parcels);
    }
    for endpoint in told.left {
        couriers.left(endpoint);
    }
}
