//! Deliveries: what is still to be told, to whom; claimed by lease, changed only by the lease's holder.

use crate::bulk::Bulk;
use crate::db::Conn;
use crate::error::Result;
use crate::row;
use heliograph_domain::event::Occurrence;
use heliograph_domain::id::{AccountId, EndpointId, EventId, NodeId};
use heliograph_domain::lease::DeliveryLease;
use heliograph_domain::time::Timestamp;
use std::collections::HashSet;

/// One event for one endpoint, on its way into the table.
#[derive(Clone, Copy, Debug)]
pub struct Fresh {
    /// To whom.
    pub endpoint: EndpointId,
    /// When.
    pub due_at: Timestamp,
    /// What.
    pub event: EventId,
    /// Whose.
    pub account: AccountId,
    /// Who holds it from the start, as attempt 1.
    pub owner: Option<NodeId>,
}

const INSERT: Bulk = Bulk {
    each: "INSERT INTO deliveries (endpoint, due_at, event, account, owner, lease_until, attempt, tries)
           VALUES ($1, $2, $3, $4, $5, $6, $7, 0)",
    all: "INSERT INTO deliveries (endpoint, due_at, event, account, owner, lease_until, attempt, tries)
          SELECT *, 0 FROM unnest($1::integer[], $2::bigint[], $3::uuid[], $4::bigint[], $5::integer[], $6::bigint[],
            $7::smallint[])",
};

/// Stores what is to be told.
///
/// # Errors
/// As any write.
pub async fn insert(tx: &mut Conn, all: &[Fresh], lease_until: Timestamp) -> Result<()> {
    let rows = all.iter().map(|d| {
        [
            d.endpoint.0.into(),
            d.due_at.into(),
            d.event.0.into(),
            d.account.0.into(),
            d.owner.map(|n| n.0).into(),
            d.owner.map(|_| lease_until).into(),
            i16::from(d.owner.is_some()).into(),
        ]
    });
    tx.bulk_ahead(&INSERT, &rows.collect()).await
}

const AGAIN: Bulk = Bulk {
    each: "INSERT INTO deliveries (endpoint, due_at, event, account, attempt, tries)
           VALUES ($1, $2, $3, $4, 0, 0) ON CONFLICT DO NOTHING",
    all: "INSERT INTO deliveries (endpoint, due_at, event, account, attempt, tries)
          SELECT *, 0, 0 FROM unnest($1::integer[], $2::bigint[], $3::uuid[], $4::bigint[]) ON CONFLICT DO NOTHING",
};

/// Lines up for an endpoint what it is to be told again; how many. Give none that is [`pending`].
///
/// # Errors
/// As any write.
pub async fn again(
    tx: &mut Conn,
    (endpoint, account): (EndpointId, AccountId),
    events: &[EventId],
    due_at: Timestamp,
) -> Result<u64> {
    let rows =
        events.iter().map(|e| [endpoint.0.into(), due_at.into(), e.0.into(), account.0.into()]);
    tx.bulk_execute(&AGAIN, &rows.collect()).await
}

/// All that waits for an endpoint.
///
/// # Errors
/// As any read.
pub async fn pending(conn: &mut Conn, endpoint: EndpointId) -> Result<HashSet<EventId>> {
    let sql = "SELECT event FROM deliveries WHERE endpoint = $1";
    let all = conn.query(sql, &[endpoint.0.into()], |r| Ok(EventId(r.uuid(0)?))).await?;
    Ok(all.into_iter().collect())
}

/// What waits for an account's endpoint, the first due first; at most `limit`. Each with when it is due, and how often
/// it was tried.
///
/// # Errors
/// As any read.
pub async fn next(
    conn: &mut Conn,
    (account, endpoint): (AccountId, EndpointId),
    limit: i64,
) -> Result<Vec<(EventId, Timestamp, u16)>> {
    let sql = "SELECT event, due_at, tries FROM deliveries
        WHERE endpoint = $1 AND account = $2 ORDER BY due_at, event LIMIT $3";
    let params = [endpoint.0.into(), account.0.into(), limit.into()];
    let read = |r: &row::Row<'_>| Ok((EventId(r.uuid(0)?), r.time(1)?, r.small(2)?));
    conn.query(sql, &params, read).await
}

/// The endpoints that something waits for, with the time when the first of it is due.
///
/// # Errors
/// As any read.
pub async fn waiting(conn: &mut Conn) -> Result<Vec<(EndpointId, Timestamp)>> {
    // One look into the index for each endpoint, however much waits.
    let sql = "SELECT e.id, (SELECT min(d.due_at) FROM deliveries d WHERE d.endpoint = e.id) FROM endpoints e";
    let all =
        conn.query(sql, &[], |r| Ok((EndpointId(r.small(0)?), r.opt_time(1)?))).await?.into_iter();
    Ok(all.filter_map(|(endpoint, due)| Some((endpoint, due?))).collect())
}

/// What a claim asks for.
#[derive(Clone, Copy, Debug)]
pub struct Claim {
    /// Who claims.
    pub node: NodeId,
    /// What is for whom.
    pub endpoint: EndpointId,
    /// What is due by then: the present instant by the database's clock, or less.
    pub due: Timestamp,
    /// The present instant by the database's clock.
    pub now: Timestamp,
    /// Until when the leases hold.
    pub until: Timestamp,
    /// At most so many.
    pub limit: usize,
}

const FIND: &str = "SELECT d.due_at, d.attempt, d.tries,
      e.account, e.id, e.mode, e.kind, e.test, e.subject, e.at, e.endpoint
    FROM deliveries d CROSS JOIN events e
    WHERE d.endpoint = $1 AND d.due_at <= $2 AND (d.owner IS NULL OR d.lease_until < $3)
      AND e.account = d.account AND e.id = d.event
    ORDER BY d.due_at, d.event LIMIT $4";
const FIND_POSTGRES: &str = "SELECT d.due_at, d.attempt, d.tries,
      e.account, e.id, e.mode, e.kind, e.test, e.subject, e.at, e.endpoint
    FROM deliveries d JOIN events e ON e.account = d.account AND e.id = d.event
    WHERE d.endpoint = $1 AND d.due_at <= $2 AND (d.owner IS NULL OR d.lease_until < $3)
    ORDER BY d.due_at, d.event LIMIT $4 FOR UPDATE OF d SKIP LOCKED";

const LEASE: Bulk = Bulk {
    each: "UPDATE deliveries SET owner = $4, attempt = $5, lease_until = $6
           WHERE endpoint = $1 AND due_at = $2 AND event = $3",
    all: "UPDATE deliveries d SET owner = v.owner, attempt = v.attempt, lease_until = v.lease_until
          FROM unnest($1::integer[], $2::bigint[], $3::uuid[], $4::integer[], $5::smallint[], $6::bigint[])
            AS v (endpoint, due_at, event, owner, attempt, lease_until)
          WHERE d.endpoint = v.endpoint AND d.due_at = v.due_at AND d.event = v.event",
};

/// Leases what is due and free, the longest due first.
///
/// # Errors
/// As any write.
pub async fn claim(tx: &mut Conn, claim: &Claim) -> Result<Vec<(DeliveryLease, Occurrence)>> {
    let sql = tx.pick(FIND, FIND_POSTGRES);
    let limit = i64::try_from(claim.limit).unwrap_or(i64::MAX);
    let params = [claim.endpoint.0.into(), claim.due.into(), claim.now.into(), limit.into()];
    let found = tx.query(sql, &params, |r| {
        let event = row::occurrence(r, 3)?;
        let lease = DeliveryLease {
            endpoint: claim.endpoint,
            due_at: r.time(0)?,
            event: event.id,
            owner: claim.node,
            attempt: r.small::<u16>(1)?.wrapping_add(1) & 0x7fff,
            tries: r.small(2)?,
        };
        Ok((lease, event))
    });
    let found = found.await?;
    let rows = found.iter().map(|(l, _)| {
        [
            l.endpoint.0.into(),
            l.due_at.into(),
            l.event.0.into(),
            l.owner.0.into(),
            l.attempt.into(),
            claim.until.into(),
        ]
    });
    tx.bulk_ahead(&LEASE, &rows.collect()).await?;
    Ok(found)
}

const SETTLE: Bulk = Bulk {
    each: "DELETE FROM deliveries WHERE endpoint = $1 AND due_at = $2 AND event = $3 AND owner = $4 AND attempt = $5",
    all: "DELETE FROM deliveries d
          USING unnest($1::integer[], $2::bigint[], $3::uuid[], $4::integer[], $5::smallint[])
            AS v (endpoint, due_at, event, owner, attempt)
          WHERE d.endpoint = v.endpoint AND d.due_at = v.due_at AND d.event = v.event
            AND d.owner = v.owner AND d.attempt = v.attempt",
};

/// Takes off the table what is told. A lease that was lost meanwhile changes nothing.
///
/// # Errors
/// As any write.
pub async fn settle(tx: &mut Conn, leases: &[&DeliveryLease]) -> Result<()> {
    let rows = leases.iter().map(|l| {
        [l.endpoint.0.into(), l.due_at.into(), l.event.0.into(), l.owner.0.into(), l.attempt.into()]
    });
    tx.bulk_ahead(&SETTLE, &rows.collect()).await
}

const GIVE_BACK: Bulk = Bulk {
    each: "UPDATE deliveries SET due_at = $6, tries = $7, owner = NULL, lease_until = NULL
           WHERE endpoint = $1 AND due_at = $2 AND event = $3 AND owner = $4 AND attempt = $5",
    all: "UPDATE deliveries d SET due_at = v.next, tries = v.tries, owner = NULL, lease_until = NULL
          FROM unnest($1::integer[], $2::bigint[], $3::uuid[], $4::integer[], $5::smallint[], $6::bigint[],
            $7::smallint[]) AS v (endpoint, due_at, event, owner, attempt, next, tries)
          WHERE d.endpoint = v.endpoint AND d.due_at = v.due_at AND d.event = v.event
            AND d.owner = v.owner AND d.attempt = v.attempt",
};

/// Gives leases back, each with the time of its next attempt and how many there were.
///
/// # Errors
/// As any write.
pub async fn give_back(tx: &mut Conn, all: &[(&DeliveryLease, Timestamp, u16)]) -> Result<()> {
    let rows = all.iter().map(|(l, next, tries)| {
        [
            l.endpoint.0.into(),
            l.due_at.into(),
            l.event.0.into(),
            l.owner.0.into(),
            l.attempt.into(),
            (*next).into(),
            (*tries).into(),
        ]
    });
    tx.bulk_ahead(&GIVE_BACK, &rows.collect()).await
}

/// Frees what a node held when it died.
///
/// # Errors
/// As any write.
pub async fn free(tx: &mut Conn, node: NodeId) -> Result<u64> {
    let sql = "UPDATE deliveries SET owner = NULL, lease_until = NULL WHERE owner = $1";
    tx.execute(sql, &[node.0.into()]).await
}

/// Frees what every node held: for a database whose nodes are all gone.
///
/// # Errors
/// As any write.
pub async fn free_all(tx: &mut Conn) -> Result<u64> {
    let sql = "UPDATE deliveries SET owner = NULL, lease_until = NULL WHERE owner IS NOT NULL";
    tx.execute(sql, &[]).await
}

/// Takes off the table all that waits for an endpoint.
///
/// # Errors
/// As any write.
pub async fn drop_for(tx: &mut Conn, endpoint: EndpointId) -> Result<u64> {
    tx.execute("DELETE FROM deliveries WHERE endpoint = $1", &[endpoint.0.into()]).await
}

/// Takes off the table what can never be told: its event is from before `oldest` and gone with it, or its endpoint
/// is gone, and another node lined it up before it knew. How much.
///
/// # Errors
/// As any write.
pub async fn drop_orphans(tx: &mut Conn, oldest: EventId) -> Result<u64> {
    let sql = "DELETE FROM deliveries WHERE event < $1
        OR NOT EXISTS (SELECT 1 FROM endpoints e WHERE e.id = deliveries.endpoint)";
    tx.execute(sql, &[oldest.0.into()]).await
}

/// Takes off the table what waits for an endpoint that is off, but for tests: another node wrote it before it knew.
///
/// # Errors
/// As any write.
pub async fn drop_if_off(tx: &mut Conn, endpoint: EndpointId) -> Result<u64> {
    let sql = "DELETE FROM deliveries WHERE endpoint = $1 AND due_at > 0
        AND EXISTS (SELECT 1 FROM endpoints e WHERE e.id = $1 AND e.off_since IS NOT NULL)";
    tx.execute(sql, &[endpoint.0.into()]).await
}

/// How much waits for an endpoint.
///
/// # Errors
/// As any read.
pub async fn depth(conn: &mut Conn, endpoint: EndpointId) -> Result<i64> {
    let sql = "SELECT count(*) FROM deliveries WHERE endpoint = $1";
    let found = conn.query_one(sql, &[endpoint.0.into()], |r| r.int(0)).await?;
    Ok(found.unwrap_or(0))
}
