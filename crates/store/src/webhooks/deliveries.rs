//! Pending webhook deliveries. They are claimed by lease, and only the holder of a lease changes
//! its row.

use crate::db::Conn;
use crate::db::bulk::{Bulk, Rows};
use crate::db::field::Field;
use crate::db::record::{Column, Record, columns, record};
use crate::db::row::{self, Row};
use crate::db::table::{Sql, Table, equals, joined, qualified, unnest};
use crate::db::value::Value;
use crate::error::StoreResult;
use heliograph_domain::event::StoredEvent;
use heliograph_domain::id::{AccountId, EndpointId, EventId, NodeId};
use heliograph_domain::lease::DeliveryLease;
use heliograph_domain::time::Timestamp;
use std::collections::HashSet;
use std::sync::LazyLock;

/// A delivery to insert.
#[derive(Clone, Copy, Debug)]
pub struct NewDelivery {
    /// The endpoint.
    pub endpoint: EndpointId,
    /// The time of the first attempt.
    pub due_at: Timestamp,
    /// The event.
    pub event: EventId,
    /// The account.
    pub account: AccountId,
    /// The node that holds the lease from the start, as attempt 1.
    pub owner: Option<NodeId>,
}

record! {
    /// A row of `deliveries` as it is inserted.
    struct DeliveryRow {
        endpoint: EndpointId,
        due_at: Timestamp,
        event: EventId,
        account: AccountId,
        owner: Option<NodeId>,
        lease_until: Option<Timestamp>,
        attempt: u16,
    }
}

record! {
    /// The number of delivery attempts, which begins at 0.
    struct Counter {
        tries: u16,
    }
}

const DELIVERIES: Table =
    Table { name: "deliveries", key: columns!(DeliveryRow: endpoint, due_at, event) };

/// The columns that, with the key, identify a lease.
const FENCE: &[Column] = columns!(DeliveryRow: owner, attempt);

/// The values of the key and of [`FENCE`].
fn fenced(l: &DeliveryLease) -> [Value<'_>; 5] {
    [l.endpoint.value(), l.due_at.value(), l.event.value(), l.owner.value(), l.attempt.value()]
}

static INSERT: LazyLock<Bulk> =
    LazyLock::new(|| DELIVERIES.insert(DeliveryRow::COLUMNS, &[("tries", "0")], ""));

/// Stores deliveries.
pub async fn insert(tx: &mut Conn, all: &[NewDelivery], lease_until: Timestamp) -> StoreResult<()> {
    let row = |d: &NewDelivery| DeliveryRow {
        endpoint: d.endpoint,
        due_at: d.due_at,
        event: d.event,
        account: d.account,
        owner: d.owner,
        lease_until: d.owner.map(|_| lease_until),
        attempt: d.owner.is_some().into(),
    };
    let rows: Vec<_> = all.iter().map(row).collect();
    tx.pipeline(&INSERT, &Rows::of(rows.iter())).await
}

static INSERT_REPLAY: LazyLock<Bulk> = LazyLock::new(|| {
    let columns = columns!(DeliveryRow: endpoint, due_at, event, account);
    DELIVERIES.insert(columns, &[("attempt", "0"), ("tries", "0")], "ON CONFLICT DO NOTHING")
});

/// Inserts a replay of these events to an endpoint and returns the number of deliveries. The caller
/// leaves out events that are among [`pending_events`].
pub async fn insert_replay(
    tx: &mut Conn,
    (endpoint, account): (EndpointId, AccountId),
    events: &[EventId],
    due_at: Timestamp,
) -> StoreResult<u64> {
    let rows =
        events.iter().map(|e| [endpoint.value(), due_at.value(), e.value(), account.value()]);
    tx.bulk_execute(&INSERT_REPLAY, &rows.collect()).await
}

/// Returns the events that wait for delivery to an endpoint.
pub async fn pending_events(
    conn: &mut Conn,
    endpoint: EndpointId,
) -> StoreResult<HashSet<EventId>> {
    let sql = "SELECT event FROM deliveries WHERE endpoint = $1";
    Ok(conn.query(sql, &[endpoint.value()], row::get).await?.into_iter().collect())
}

/// Returns up to `limit` deliveries that wait for an account's endpoint, first due first: the
/// event, the time of the next attempt and the number of attempts so far.
pub async fn list_pending(
    conn: &mut Conn,
    (account, endpoint): (AccountId, EndpointId),
    limit: i64,
) -> StoreResult<Vec<(EventId, Timestamp, u16)>> {
    let sql = "SELECT event, due_at, tries FROM deliveries
        WHERE endpoint = $1 AND account = $2 ORDER BY due_at, event LIMIT $3";
    let params = [endpoint.value(), account.value(), limit.into()];
    conn.query(sql, &params, |r| Ok((r.get()?, r.get()?, r.get()?))).await
}

/// Returns the endpoints that have pending deliveries, each with the due time of the first.
pub async fn endpoints_with_pending(conn: &mut Conn) -> StoreResult<Vec<(EndpointId, Timestamp)>> {
    // One index look-up per endpoint, however many deliveries wait.
    let sql = "SELECT e.id, (SELECT min(d.due_at) FROM deliveries d WHERE d.endpoint = e.id) FROM endpoints e";
    let read = |r: &mut Row<'_>| Ok((r.get()?, r.get::<Option<Timestamp>>()?));
    let all = conn.query(sql, &[], read).await?.into_iter();
    Ok(all.filter_map(|(endpoint, due)| Some((endpoint, due?))).collect())
}

/// A request for leases.
#[derive(Clone, Copy, Debug)]
pub struct DeliveryClaim {
    /// The node that claims.
    pub node: NodeId,
    /// The endpoint whose deliveries are claimed.
    pub endpoint: EndpointId,
    /// Deliveries that are due by this time are claimed: the current time by the database's clock,
    /// or less.
    pub due: Timestamp,
    /// The current time by the database's clock.
    pub now: Timestamp,
    /// The current time for the leases of the node that claims.
    pub now_for_own: Timestamp,
    /// The end of the leases.
    pub until: Timestamp,
    /// The maximum number of leases.
    pub limit: usize,
}

record! {
    /// The columns of `deliveries` that a claim reads.
    struct ClaimedRow {
        due_at: Timestamp,
        attempt: u16,
    }
}

static FIND: Sql = Sql::new(|| {
    format!(
        "SELECT {}, {} FROM deliveries d CROSS JOIN events e
         WHERE d.endpoint = $1 AND d.due_at <= $2 AND (d.owner IS NULL OR d.lease_until < CASE WHEN d.owner = $5 THEN CAST($6 AS bigint) ELSE CAST($3 AS bigint) END)
           AND e.account = d.account AND e.id = d.event
         ORDER BY d.due_at, d.event LIMIT $4",
        qualified("d", &[ClaimedRow::COLUMNS, Counter::COLUMNS].concat()),
        qualified("e", StoredEvent::COLUMNS)
    )
});

/// PostgreSQL skips the rows that another node is claiming.
static FIND_POSTGRES: Sql = Sql::new(|| format!("{} FOR UPDATE OF d SKIP LOCKED", *FIND));

static LEASE: LazyLock<Bulk> =
    LazyLock::new(|| DELIVERIES.update(columns!(DeliveryRow: owner, attempt, lease_until)));

/// Leases deliveries that are due and free, longest due first.
pub async fn claim(
    tx: &mut Conn,
    claim: &DeliveryClaim,
) -> StoreResult<Vec<(DeliveryLease, StoredEvent)>> {
    let sql = tx.pick(&FIND, &FIND_POSTGRES);
    let limit = i64::try_from(claim.limit).unwrap_or(i64::MAX);
    let params = [
        claim.endpoint.value(),
        claim.due.value(),
        claim.now.value(),
        limit.into(),
        claim.node.value(),
        claim.now_for_own.value(),
    ];
    let found = tx.query(sql, &params, |r| {
        let row: ClaimedRow = r.record()?;
        let Counter { tries } = r.record()?;
        let event: StoredEvent = r.record()?;
        let lease = DeliveryLease {
            endpoint: claim.endpoint,
            due_at: row.due_at,
            event: event.id,
            owner: claim.node,
            attempt: row.attempt.wrapping_add(1) & 0x7fff,
            tries,
        };
        Ok((lease, event))
    });
    let found = found.await?;
    let rows = found.iter().map(|(l, _)| {
        let [endpoint, due_at, event, owner, attempt] = fenced(l);
        [endpoint, due_at, event, owner, attempt, claim.until.into()]
    });
    tx.pipeline(&LEASE, &rows.collect()).await?;
    Ok(found)
}

static SETTLE: LazyLock<Bulk> = LazyLock::new(|| DELIVERIES.delete_fenced(FENCE));

/// Deletes settled deliveries. A lease that was lost meanwhile changes nothing.
pub async fn settle(tx: &mut Conn, leases: &[&DeliveryLease]) -> StoreResult<()> {
    let rows = leases.iter().map(|l| fenced(l));
    tx.pipeline(&SETTLE, &rows.collect()).await
}

static RELEASE: LazyLock<Bulk> = LazyLock::new(|| {
    let by = [DELIVERIES.key, FENCE].concat();
    let changes =
        [Column::parameter::<Timestamp>("next_due_at"), Column::parameter::<u16>("tries")];
    Bulk::new(
        format!(
            "UPDATE deliveries SET due_at = $6, tries = $7, owner = NULL, lease_until = NULL WHERE {}",
            equals(&by)
        ),
        format!(
            "UPDATE deliveries d SET due_at = v.next_due_at, tries = v.tries, owner = NULL, lease_until = NULL
             FROM {} WHERE {}",
            unnest("v", &[&by[..], &changes].concat()),
            joined("d", "v", &by)
        ),
    )
});

/// Releases leases, each with the time of the next attempt and the number of attempts so far. A
/// lease that was lost meanwhile changes nothing.
pub async fn release(tx: &mut Conn, all: &[(&DeliveryLease, Timestamp, u16)]) -> StoreResult<()> {
    let rows = Rows::with(7, all.iter(), |values, (lease, next, tries)| {
        values.extend(fenced(lease));
        values.extend([next.value(), tries.value()]);
    });
    tx.pipeline(&RELEASE, &rows).await
}

/// Makes up to `limit` retries of an endpoint due `now`, the earliest first: those that wait after
/// at most `tries` attempts. Returns their number.
pub async fn bring_forward(
    tx: &mut Conn,
    endpoint: EndpointId,
    (now, tries): (Timestamp, u16),
    limit: u64,
) -> StoreResult<u64> {
    let sql = "UPDATE deliveries SET due_at = $2
        WHERE endpoint = $1 AND due_at > $2 AND owner IS NULL AND event IN (
            SELECT event FROM deliveries
            WHERE endpoint = $1 AND due_at > $2 AND owner IS NULL AND tries BETWEEN 1 AND $3
            ORDER BY due_at, event LIMIT $4)";
    let limit = i64::try_from(limit).unwrap_or(i64::MAX);
    tx.execute(sql, &[endpoint.value(), now.value(), tries.value(), limit.into()]).await
}

/// Frees the leases that a node held when it died.
pub async fn release_for_node(tx: &mut Conn, node: NodeId) -> StoreResult<u64> {
    let sql = "UPDATE deliveries SET owner = NULL, lease_until = NULL WHERE owner = $1";
    tx.execute(sql, &[node.value()]).await
}

/// Frees the leases of all nodes: for a database without running nodes.
pub async fn release_all(tx: &mut Conn) -> StoreResult<u64> {
    let sql = "UPDATE deliveries SET owner = NULL, lease_until = NULL WHERE owner IS NOT NULL";
    tx.execute(sql, &[]).await
}

/// Deletes all deliveries to an endpoint.
pub async fn delete_for_endpoint(tx: &mut Conn, endpoint: EndpointId) -> StoreResult<u64> {
    tx.execute("DELETE FROM deliveries WHERE endpoint = $1", &[endpoint.value()]).await
}

/// Deletes deliveries that can never happen and returns how many there were. Either the event is
/// older than `oldest` and was deleted, or the endpoint was deleted before another node knew and
/// inserted the delivery.
pub async fn delete_orphans(tx: &mut Conn, oldest: EventId) -> StoreResult<u64> {
    let sql = "DELETE FROM deliveries WHERE event < $1
        OR NOT EXISTS (SELECT 1 FROM endpoints e WHERE e.id = deliveries.endpoint)";
    tx.execute(sql, &[oldest.value()]).await
}

/// Deletes the deliveries to a disabled endpoint, except test deliveries: another node inserted
/// them before it knew.
pub async fn delete_if_disabled(tx: &mut Conn, endpoint: EndpointId) -> StoreResult<u64> {
    let sql = "DELETE FROM deliveries WHERE endpoint = $1 AND due_at > 0
        AND EXISTS (SELECT 1 FROM endpoints e WHERE e.id = $1 AND e.disabled_at IS NOT NULL)";
    tx.execute(sql, &[endpoint.value()]).await
}

/// Returns the number of deliveries that wait for an endpoint.
pub async fn depth(conn: &mut Conn, endpoint: EndpointId) -> StoreResult<i64> {
    let sql = "SELECT count(*) FROM deliveries WHERE endpoint = $1";
    Ok(conn.query_one(sql, &[endpoint.value()], row::get).await?.unwrap_or(0))
}
