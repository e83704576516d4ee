//! The queue: what is still to be submitted, claimed by lease, changed only by the lease's holder.

mod cancel;

use crate::bulk::Bulk;
use crate::db::Conn;
use crate::error::Result;
use crate::row;
pub use cancel::{Place, cancel, place};
use heliograph_domain::id::{AccountId, CarrierId, MessageId, NodeId};
use heliograph_domain::lease::{Lane, Lease, Leased};
use heliograph_domain::message::{Message, Status};
use heliograph_domain::time::Timestamp;

const INSERT: Bulk = Bulk {
    each: "INSERT INTO queue (carrier, lane, due_at, id, account, expires_at, owner, lease_until, attempt, tries, doubts)
           VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, 0, 0)",
    all: "INSERT INTO queue (carrier, lane, due_at, id, account, expires_at, owner, lease_until, attempt, tries, doubts)
          SELECT *, 0, 0 FROM unnest($1::smallint[], $2::smallint[], $3::bigint[], $4::uuid[], $5::bigint[],
            $6::bigint[], $7::integer[], $8::bigint[], $9::smallint[])",
};

/// Queues messages in the lane of single sends. Those with an owner are leased to it from the start, as attempt 1.
///
/// # Errors
/// As any write.
pub async fn insert(
    tx: &mut Conn,
    messages: &[(&Message, Option<NodeId>)],
    lease_until: Timestamp,
) -> Result<()> {
    let rows = messages.iter().map(|(m, owner)| {
        [
            m.carrier.0.into(),
            Lane::SINGLE.0.into(),
            m.due_at().into(),
            m.id.0.into(),
            m.account.0.into(),
            m.expires_at.into(),
            owner.map(|n| n.0).into(),
            owner.map(|_| lease_until).into(),
            i16::from(owner.is_some()).into(),
        ]
    });
    tx.bulk_ahead(&INSERT, &rows.collect()).await
}

const LEASE: Bulk = Bulk {
    each: "UPDATE queue SET owner = $5, attempt = $6, lease_until = $7
           WHERE carrier = $1 AND lane = $2 AND due_at = $3 AND id = $4",
    all: "UPDATE queue q SET owner = v.owner, attempt = v.attempt, lease_until = v.lease_until
          FROM unnest($1::smallint[], $2::smallint[], $3::bigint[], $4::uuid[], $5::integer[], $6::smallint[],
            $7::bigint[]) AS v (carrier, lane, due_at, id, owner, attempt, lease_until)
          WHERE q.carrier = v.carrier AND q.lane = v.lane AND q.due_at = v.due_at AND q.id = v.id",
};

/// What a claim asks for.
#[derive(Clone, Copy, Debug)]
pub struct Claim {
    /// Who claims.
    pub node: NodeId,
    /// Whose work.
    pub carrier: CarrierId,
    /// The present instant by the database's clock.
    pub now: Timestamp,
    /// Until when the leases hold.
    pub until: Timestamp,
    /// At most so many.
    pub limit: usize,
}

/// Leases what is due and free, lane by lane, the longest due first. `parts_taken` is left empty. The second
/// is whether there may be more.
///
/// What has ended while it waited is taken off the queue: a message of several parts fails by the
/// receipt of one, and an outcome can come after its lease.
///
/// # Errors
/// As any write.
pub async fn claim(tx: &mut Conn, claim: &Claim) -> Result<(Vec<Leased>, bool)> {
    let mut found: Vec<(Leased, bool)> = Vec::new();
    for lane in Lane::ALL {
        let room = claim.limit.saturating_sub(found.len());
        if room == 0 {
            break;
        }
        found.extend(find(tx, claim, lane, room).await?);
    }
    let more = found.len() >= claim.limit;
    let rows = found.iter().map(|(f, _)| {
        let l = &f.lease;
        [
            l.carrier.0.into(),
            l.lane.0.into(),
            l.due_at.into(),
            l.message.0.into(),
            l.owner.0.into(),
            l.attempt.into(),
            claim.until.into(),
        ]
    });
    tx.bulk_execute(&LEASE, &rows.collect()).await?;
    let (ended, waiting): (Vec<_>, Vec<_>) = found.into_iter().partition(|(_, ended)| *ended);
    let ended: Vec<_> = ended.iter().map(|(f, _)| &f.lease).collect();
    settle(tx, &ended).await?;
    Ok((waiting.into_iter().map(|(f, _)| f).collect(), more))
}

/// What can be leased, and whether it has ended.
async fn find(
    tx: &mut Conn,
    claim: &Claim,
    lane: Lane,
    limit: usize,
) -> Result<Vec<(Leased, bool)>> {
    // CROSS JOIN keeps SQLite from turning the join around; PostgreSQL passes over what another node
    // is just claiming.
    let sql = tx.pick(FIND, FIND_POSTGRES);
    let params = [
        claim.carrier.0.into(),
        lane.0.into(),
        claim.now.into(),
        i64::try_from(limit).unwrap_or(i64::MAX).into(),
    ];
    tx.query(sql, &params, |r| {
        let message = row::message(r, 5)?;
        let ended = r.small::<i16>(23)? != Status::Queued.code();
        let leased = Leased {
            lease: Lease {
                carrier: claim.carrier,
                lane,
                due_at: r.time(0)?,
                message: message.id,
                account: message.account,
                owner: claim.node,
                attempt: r.small::<u16>(1)?.wrapping_add(1) & 0x7fff,
            },
            message: std::sync::Arc::new(message),
            tries: r.small(2)?,
            doubts: r.small(3)?,
            in_doubt: r.opt_int(4)?.is_some(),
            parts_taken: Vec::new(),
        };
        Ok((leased, ended))
    })
    .await
}

const FIND: &str = "SELECT q.due_at, q.attempt, q.tries, q.doubts, q.lease_until,
        m.id, m.account, m.mode, m.api_key, m.campaign, m.recipient, m.country, m.originator, m.text, m.reference,
        m.encoding, m.parts, m.part_price, m.carrier, m.optout_list, m.accepted_at, m.scheduled_for, m.expires_at,
        m.status
    FROM queue q CROSS JOIN messages m
    WHERE q.carrier = $1 AND q.lane = $2 AND q.due_at <= $3 AND (q.owner IS NULL OR q.lease_until < $3)
      AND m.account = q.account AND m.id = q.id
    ORDER BY q.due_at, q.id LIMIT $4";

const FIND_POSTGRES: &str = "SELECT q.due_at, q.attempt, q.tries, q.doubts, q.lease_until,
        m.id, m.account, m.mode, m.api_key, m.campaign, m.recipient, m.country, m.originator, m.text, m.reference,
        m.encoding, m.parts, m.part_price, m.carrier, m.optout_list, m.accepted_at, m.scheduled_for, m.expires_at,
        m.status
    FROM queue q CROSS JOIN messages m
    WHERE q.carrier = $1 AND q.lane = $2 AND q.due_at <= $3 AND (q.owner IS NULL OR q.lease_until < $3)
      AND m.account = q.account AND m.id = q.id
    ORDER BY q.due_at, q.id LIMIT $4 FOR UPDATE OF q SKIP LOCKED";

const SETTLE: Bulk = Bulk {
    each: "DELETE FROM queue WHERE carrier = $1 AND lane = $2 AND due_at = $3 AND id = $4 AND owner = $5 AND attempt = $6",
    all: "DELETE FROM queue q
          USING unnest($1::smallint[], $2::smallint[], $3::bigint[], $4::uuid[], $5::integer[], $6::smallint[])
            AS v (carrier, lane, due_at, id, owner, attempt)
          WHERE q.carrier = v.carrier AND q.lane = v.lane AND q.due_at = v.due_at AND q.id = v.id
            AND q.owner = v.owner AND q.attempt = v.attempt",
};

/// Takes settled messages off the queue. Leases that were lost meanwhile change nothing.
///
/// # Errors
/// As any write.
pub async fn settle(tx: &mut Conn, leases: &[&Lease]) -> Result<u64> {
    let rows = leases.iter().map(|l| {
        [
            l.carrier.0.into(),
            l.lane.0.into(),
            l.due_at.into(),
            l.message.0.into(),
            l.owner.0.into(),
            l.attempt.into(),
        ]
    });
    tx.bulk_execute(&SETTLE, &rows.collect()).await
}

/// Gives a lease back, for a later try.
#[derive(Clone, Copy, Debug)]
pub struct GiveBack<'a> {
    /// The lease.
    pub lease: &'a Lease,
    /// When to try again.
    pub due_at: Timestamp,
    /// Counts as a try.
    pub tried: bool,
    /// Counts as a doubt.
    pub doubted: bool,
}

const GIVE_BACK: Bulk = Bulk {
    each: "UPDATE queue SET due_at = $7, tries = tries + $8, doubts = doubts + $9, owner = NULL, lease_until = NULL
           WHERE carrier = $1 AND lane = $2 AND due_at = $3 AND id = $4 AND owner = $5 AND attempt = $6",
    all: "UPDATE queue q SET due_at = v.next, tries = q.tries + v.tried, doubts = q.doubts + v.doubted,
            owner = NULL, lease_until = NULL
          FROM unnest($1::smallint[], $2::smallint[], $3::bigint[], $4::uuid[], $5::integer[], $6::smallint[],
            $7::bigint[], $8::smallint[], $9::smallint[])
            AS v (carrier, lane, due_at, id, owner, attempt, next, tried, doubted)
          WHERE q.carrier = v.carrier AND q.lane = v.lane AND q.due_at = v.due_at AND q.id = v.id
            AND q.owner = v.owner AND q.attempt = v.attempt",
};

/// Gives leases back. Those that were lost meanwhile change nothing.
///
/// # Errors
/// As any write.
pub async fn give_back(tx: &mut Conn, back: &[GiveBack<'_>]) -> Result<u64> {
    let rows = back.iter().map(|b| {
        let l = b.lease;
        [
            l.carrier.0.into(),
            l.lane.0.into(),
            l.due_at.into(),
            l.message.0.into(),
            l.owner.0.into(),
            l.attempt.into(),
            b.due_at.into(),
            i16::from(b.tried).into(),
            i16::from(b.doubted).into(),
        ]
    });
    tx.bulk_execute(&GIVE_BACK, &rows.collect()).await
}

const RENEW: Bulk = Bulk {
    each: "UPDATE queue SET lease_until = $7
           WHERE carrier = $1 AND lane = $2 AND due_at = $3 AND id = $4 AND owner = $5 AND attempt = $6",
    all: "UPDATE queue q SET lease_until = v.lease_until
          FROM unnest($1::smallint[], $2::smallint[], $3::bigint[], $4::uuid[], $5::integer[], $6::smallint[],
            $7::bigint[]) AS v (carrier, lane, due_at, id, owner, attempt, lease_until)
          WHERE q.carrier = v.carrier AND q.lane = v.lane AND q.due_at = v.due_at AND q.id = v.id
            AND q.owner = v.owner AND q.attempt = v.attempt",
};

/// Keeps leases for longer. Those that were lost meanwhile stay lost.
///
/// # Errors
/// As any write.
pub async fn renew(tx: &mut Conn, leases: &[Lease], until: Timestamp) -> Result<u64> {
    let rows = leases.iter().map(|l| {
        [
            l.carrier.0.into(),
            l.lane.0.into(),
            l.due_at.into(),
            l.message.0.into(),
            l.owner.0.into(),
            l.attempt.into(),
            until.into(),
        ]
    });
    tx.bulk_execute(&RENEW, &rows.collect()).await
}

/// Frees what a node held when it died: each may have been submitted, so `lease_until` stays behind
/// as the mark of doubt.
///
/// # Errors
/// As any write.
pub async fn free(tx: &mut Conn, node: NodeId) -> Result<u64> {
    tx.execute("UPDATE queue SET owner = NULL, lease_until = 0 WHERE owner = $1", &[node.0.into()])
        .await
}

/// Frees what every node held, as each does for itself when it starts again: for a database whose nodes are all gone.
///
/// # Errors
/// As any write.
pub async fn free_all(tx: &mut Conn) -> Result<u64> {
    tx.execute("UPDATE queue SET owner = NULL, lease_until = 0 WHERE owner IS NOT NULL", &[]).await
}

/// Names a row whose message has expired.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Expired {
    carrier: CarrierId,
    lane: Lane,
    due_at: Timestamp,
    id: MessageId,
}

/// Rows that nobody holds, or no longer, and whose message has expired by `now`; at most `limit`.
///
/// # Errors
/// As any read.
pub async fn expired(conn: &mut Conn, now: Timestamp, limit: i64) -> Result<Vec<Expired>> {
    let sql = "SELECT carrier, lane, due_at, id FROM queue
        WHERE (owner IS NULL OR lease_until < $1) AND expires_at <= $1 LIMIT $2";
    conn.query(sql, &[now.into(), limit.into()], |r| {
        Ok(Expired {
            carrier: CarrierId(r.small(0)?),
            lane: Lane(r.small(1)?),
            due_at: r.time(2)?,
            id: MessageId(r.uuid(3)?),
        })
    })
    .await
}

const EXPIRE: Bulk = Bulk {
    each: "DELETE FROM queue WHERE carrier = $1 AND lane = $2 AND due_at = $3 AND id = $4
             AND (owner IS NULL OR lease_until < $5)
           RETURNING account, id",
    all: "DELETE FROM queue q
          USING unnest($1::smallint[], $2::smallint[], $3::bigint[], $4::uuid[], $5::bigint[])
            AS v (carrier, lane, due_at, id, now)
          WHERE q.carrier = v.carrier AND q.lane = v.lane AND q.due_at = v.due_at AND q.id = v.id
            AND (q.owner IS NULL OR q.lease_until < v.now)
          RETURNING q.account, q.id",
};

/// Takes expired rows off the queue; gives back those that were still there, and free.
///
/// # Errors
/// As any write.
pub async fn expire(
    tx: &mut Conn,
    rows: &[Expired],
    now: Timestamp,
) -> Result<Vec<(AccountId, MessageId)>> {
    let rows = rows
        .iter()
        .map(|e| [e.carrier.0.into(), e.lane.0.into(), e.due_at.into(), e.id.0.into(), now.into()]);
    tx.bulk_query(&EXPIRE, &rows.collect(), |r| Ok((AccountId(r.int(0)?), MessageId(r.uuid(1)?))))
        .await
}

/// Work that waits in one lane of a carrier, counted up to a limit.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Waiting {
    /// What is due.
    pub due: i64,
    /// What is for later: put off, or scheduled.
    pub later: i64,
    /// Since when the oldest of it is due.
    pub oldest: Option<Timestamp>,
}

/// What waits in one lane of a carrier; of each sort `limit` rows are counted at most, however many there are.
///
/// # Errors
/// As any read.
pub async fn waiting(
    conn: &mut Conn,
    (carrier, lane): (CarrierId, Lane),
    now: Timestamp,
    limit: i64,
) -> Result<Waiting> {
    let sql = "SELECT
        (SELECT count(*) FROM (SELECT 1 FROM queue
            WHERE carrier = $1 AND lane = $2 AND due_at <= $3 LIMIT $4) AS due),
        (SELECT count(*) FROM (SELECT 1 FROM queue
            WHERE carrier = $1 AND lane = $2 AND due_at > $3 LIMIT $4) AS later),
        (SELECT min(due_at) FROM queue WHERE carrier = $1 AND lane = $2 AND due_at <= $3)";
    let params = [carrier.0.into(), lane.0.into(), now.into(), limit.into()];
    let read =
        |r: &row::Row<'_>| Ok(Waiting { due: r.int(0)?, later: r.int(1)?, oldest: r.opt_time(2)? });
    let found = conn.query_one(sql, &params, read).await?;
    Ok(found.unwrap_or(Waiting { due: 0, later: 0, oldest: None }))
}

/// How much waits for a carrier, and since when the oldest of it is due.
///
/// # Errors
/// As any read.
pub async fn depth(conn: &mut Conn, carrier: CarrierId) -> Result<(i64, Option<Timestamp>)> {
    let sql = "SELECT count(*), min(due_at) FROM queue WHERE carrier = $1";
    let found =
        conn.query_one(sql, &[carrier.0.into()], |r| Ok((r.int(0)?, r.opt_time(1)?))).await?;
    Ok(found.unwrap_or((0, None)))
}
