//! The submission queue. Rows are claimed by lease, and only the holder of a lease changes its row.

mod cancel;

use crate::db::Conn;
use crate::db::bulk::{Bulk, Rows};
use crate::db::field::Field;
use crate::db::record::{Column, Record, columns, record};
use crate::db::row::{self, Row};
use crate::db::table::{Sql, Table, equals, joined, names, qualified, unnest};
use crate::db::value::Value;
use crate::error::StoreResult;
pub use cancel::{QueuePosition, cancel, position};
use heliograph_domain::id::{AccountId, CarrierId, MessageId, NodeId};
use heliograph_domain::lease::{Lane, Lease, LeasedMessage};
use heliograph_domain::message::{Message, MessageStatus};
use heliograph_domain::time::Timestamp;
use std::sync::{Arc, LazyLock};

record! {
    /// A row of `queue` as it is inserted.
    struct QueueRow {
        carrier: CarrierId,
        lane: Lane,
        due_at: Timestamp,
        id: MessageId,
        account: AccountId,
        expires_at: Timestamp,
        owner: Option<NodeId>,
        lease_until: Option<Timestamp>,
        attempt: u16,
    }
}

record! {
    /// The columns of `queue` that begin at 0.
    struct Counters {
        tries: u16,
        doubts: u16,
    }
}

const QUEUE: Table = Table { name: "queue", key: columns!(QueueRow: carrier, lane, due_at, id) };

/// The columns that, with the key, identify a lease.
const FENCE: &[Column] = columns!(QueueRow: owner, attempt);

/// The values of the key and of [`FENCE`].
fn fenced(l: &Lease) -> [Value<'_>; 6] {
    [
        l.carrier.value(),
        l.lane.value(),
        l.due_at.value(),
        l.message.value(),
        l.owner.value(),
        l.attempt.value(),
    ]
}

static INSERT: LazyLock<Bulk> =
    LazyLock::new(|| QUEUE.insert(QueueRow::COLUMNS, &[("tries", "0"), ("doubts", "0")], ""));

/// Queues messages in the lane of single sends. A message with an owner is leased to it from the
/// start, as attempt 1.
pub async fn insert(
    tx: &mut Conn,
    messages: &[(&Message, Option<NodeId>)],
    lease_until: Timestamp,
) -> StoreResult<()> {
    let row = |(m, owner): &(&Message, Option<NodeId>)| QueueRow {
        carrier: m.carrier,
        lane: Lane::SINGLE,
        due_at: m.due_at(),
        id: m.id,
        account: m.account,
        expires_at: m.expires_at,
        owner: *owner,
        lease_until: owner.map(|_| lease_until),
        attempt: owner.is_some().into(),
    };
    let rows: Vec<_> = messages.iter().map(row).collect();
    tx.pipeline(&INSERT, &Rows::of(rows.iter())).await
}

static LEASE: LazyLock<Bulk> =
    LazyLock::new(|| QUEUE.update(columns!(QueueRow: owner, attempt, lease_until)));

/// A request for leases.
#[derive(Clone, Copy, Debug)]
pub struct QueueClaim {
    /// The node that claims.
    pub node: NodeId,
    /// The carrier whose rows are claimed.
    pub carrier: CarrierId,
    /// The current time by the database's clock.
    pub now: Timestamp,
    /// The current time for the leases of the node that claims.
    pub now_for_own: Timestamp,
    /// The end of the leases.
    pub until: Timestamp,
    /// The maximum number of leases.
    pub limit: usize,
}

/// Leases rows that are due and free, lane by lane, longest due first, and returns them with
/// whether there may be more. `accepted_parts` is left empty.
///
/// A message can end while its row waits: a message of several parts fails by the receipt of one of
/// them, and an outcome can come after its lease has ended. Such rows are deleted.
pub async fn claim(tx: &mut Conn, claim: &QueueClaim) -> StoreResult<(Vec<LeasedMessage>, bool)> {
    let mut found: Vec<(LeasedMessage, bool)> = Vec::new();
    for lane in Lane::ALL {
        let room = claim.limit.saturating_sub(found.len());
        if room == 0 {
            break;
        }
        found.extend(find(tx, claim, lane, room).await?);
    }
    let more = found.len() >= claim.limit;
    let rows = found.iter().map(|(f, _)| {
        let [carrier, lane, due_at, id, owner, attempt] = fenced(&f.lease);
        [carrier, lane, due_at, id, owner, attempt, claim.until.into()]
    });
    tx.bulk_execute(&LEASE, &rows.collect()).await?;
    let (ended, waiting): (Vec<_>, Vec<_>) = found.into_iter().partition(|(_, ended)| *ended);
    let ended: Vec<_> = ended.iter().map(|(f, _)| &f.lease).collect();
    settle(tx, &ended).await?;
    Ok((waiting.into_iter().map(|(f, _)| f).collect(), more))
}

record! {
    /// The columns of `queue` that a claim reads.
    struct ClaimedRow {
        due_at: Timestamp,
        attempt: u16,
        lease_until: Option<Timestamp>,
    }
}

/// CROSS JOIN keeps SQLite from reordering the join.
static FIND: Sql = Sql::new(|| {
    format!(
        "SELECT {}, {}, m.status FROM queue q CROSS JOIN messages m
         WHERE q.carrier = $1 AND q.lane = $2 AND q.due_at <= $3 AND (q.owner IS NULL OR q.lease_until < CASE WHEN q.owner = $5 THEN CAST($6 AS bigint) ELSE CAST($3 AS bigint) END)
           AND m.account = q.account AND m.id = q.id
         ORDER BY q.due_at, q.id LIMIT $4",
        qualified("q", &[ClaimedRow::COLUMNS, Counters::COLUMNS].concat()),
        qualified("m", Message::COLUMNS)
    )
});

/// PostgreSQL skips the rows that another node is claiming.
static FIND_POSTGRES: Sql = Sql::new(|| format!("{} FOR UPDATE OF q SKIP LOCKED", *FIND));

/// Returns the rows of a lane that can be leased, each with whether its message has ended.
async fn find(
    tx: &mut Conn,
    claim: &QueueClaim,
    lane: Lane,
    limit: usize,
) -> StoreResult<Vec<(LeasedMessage, bool)>> {
    let sql = tx.pick(&FIND, &FIND_POSTGRES);
    let params = [
        claim.carrier.value(),
        lane.value(),
        claim.now.value(),
        i64::try_from(limit).unwrap_or(i64::MAX).into(),
        claim.node.value(),
        claim.now_for_own.value(),
    ];
    tx.query(sql, &params, |r| {
        let row: ClaimedRow = r.record()?;
        let Counters { tries, doubts } = r.record()?;
        let message: Message = r.record()?;
        let status: MessageStatus = r.get()?;
        let leased = LeasedMessage {
            lease: Lease {
                carrier: claim.carrier,
                lane,
                due_at: row.due_at,
                message: message.id,
                account: message.account,
                owner: claim.node,
                attempt: row.attempt.wrapping_add(1) & 0x7fff,
            },
            message: Arc::new(message),
            tries,
            doubts,
            in_doubt: row.lease_until.is_some(),
            accepted_parts: Vec::new(),
        };
        Ok((leased, status != MessageStatus::Queued))
    })
    .await
}

static SETTLE: LazyLock<Bulk> = LazyLock::new(|| QUEUE.delete_fenced(FENCE));

/// Deletes the rows of settled messages and returns how many there were. A lease that was lost
/// meanwhile changes nothing.
pub async fn settle(tx: &mut Conn, leases: &[&Lease]) -> StoreResult<u64> {
    let rows = leases.iter().map(|l| fenced(l));
    tx.bulk_execute(&SETTLE, &rows.collect()).await
}

/// The release of a lease, for a later try.
#[derive(Clone, Copy, Debug)]
pub struct LeaseRelease<'a> {
    /// The lease.
    pub lease: &'a Lease,
    /// The time of the next try.
    pub due_at: Timestamp,
    /// True to count a try.
    pub count_try: bool,
    /// True to count a doubt.
    pub count_doubt: bool,
}

static RELEASE: LazyLock<Bulk> = LazyLock::new(|| {
    let by = [QUEUE.key, FENCE].concat();
    let changes = [
        Column::parameter::<Timestamp>("next_due_at"),
        Column::parameter::<bool>("tried"),
        Column::parameter::<bool>("doubted"),
    ];
    Bulk::new(
        format!(
            "UPDATE queue SET due_at = $7, tries = tries + $8, doubts = doubts + $9, owner = NULL, lease_until = NULL
             WHERE {}",
            equals(&by)
        ),
        format!(
            "UPDATE queue q SET due_at = v.next_due_at, tries = q.tries + v.tried, doubts = q.doubts + v.doubted,
               owner = NULL, lease_until = NULL
             FROM {} WHERE {}",
            unnest("v", &[&by[..], &changes].concat()),
            joined("q", "v", &by)
        ),
    )
});

/// Releases leases and returns how many there were. A lease that was lost meanwhile changes
/// nothing.
pub async fn release(tx: &mut Conn, releases: &[LeaseRelease<'_>]) -> StoreResult<u64> {
    let rows = Rows::with(9, releases.iter(), |values, r| {
        values.extend(fenced(r.lease));
        values.extend([r.due_at.value(), r.count_try.value(), r.count_doubt.value()]);
    });
    tx.bulk_execute(&RELEASE, &rows).await
}

static RENEW: LazyLock<Bulk> =
    LazyLock::new(|| QUEUE.update_fenced(FENCE, columns!(QueueRow: lease_until)));

/// Extends leases and returns how many there were. A lease that was lost meanwhile stays lost.
pub async fn renew(tx: &mut Conn, leases: &[Lease], until: Timestamp) -> StoreResult<u64> {
    let rows = Rows::with(7, leases.iter(), |values, l| {
        values.extend(fenced(l));
        values.push(until.into());
    });
    tx.bulk_execute(&RENEW, &rows).await
}

/// Frees the leases that a node held when it died. Each message may have been submitted, so
/// `lease_until` stays set, which marks the message as in doubt.
pub async fn release_for_node(tx: &mut Conn, node: NodeId) -> StoreResult<u64> {
    let sql = "UPDATE queue SET owner = NULL, lease_until = 0 WHERE owner = $1";
    tx.execute(sql, &[node.value()]).await
}

/// Frees the leases of all nodes, as each node does for itself at its start: for a database without
/// running nodes.
pub async fn release_all(tx: &mut Conn) -> StoreResult<u64> {
    tx.execute("UPDATE queue SET owner = NULL, lease_until = 0 WHERE owner IS NOT NULL", &[]).await
}

record! {
    /// The key of a row whose message has expired.
    #[derive(Clone, PartialEq, Eq, Debug)]
    pub struct ExpiredEntry {
        carrier: CarrierId,
        lane: Lane,
        due_at: Timestamp,
        id: MessageId,
    }
}

static EXPIRED: Sql = Sql::new(|| {
    format!(
        "SELECT {} FROM queue WHERE (owner IS NULL OR lease_until < $1) AND expires_at <= $1 LIMIT $2",
        names(ExpiredEntry::COLUMNS)
    )
});

/// Returns up to `limit` rows that no node holds and whose message has expired by `now`.
pub async fn expired(
    conn: &mut Conn,
    now: Timestamp,
    limit: i64,
) -> StoreResult<Vec<ExpiredEntry>> {
    conn.query(&EXPIRED, &[now.value(), limit.into()], row::record).await
}

static EXPIRE: LazyLock<Bulk> = LazyLock::new(|| {
    let key = QUEUE.key;
    let now = Column::parameter::<Timestamp>("now");
    Bulk::new(
        format!(
            "DELETE FROM queue WHERE {} AND (owner IS NULL OR lease_until < $5) RETURNING account, id",
            equals(key)
        ),
        format!(
            "DELETE FROM queue q USING {}
             WHERE {} AND (q.owner IS NULL OR q.lease_until < v.now) RETURNING q.account, q.id",
            unnest("v", &[key, &[now]].concat()),
            joined("q", "v", key)
        ),
    )
});

/// Deletes expired rows and returns the messages of those that were still there and free.
pub async fn expire(
    tx: &mut Conn,
    rows: &[ExpiredEntry],
    now: Timestamp,
) -> StoreResult<Vec<(AccountId, MessageId)>> {
    let rows = Rows::with(ExpiredEntry::COLUMNS.len() + 1, rows.iter(), |values, row| {
        row.push(values);
        values.push(now.into());
    });
    tx.bulk_query(&EXPIRE, &rows, |r| Ok((r.get()?, r.get()?))).await
}

/// The backlog of one lane of a carrier, counted up to a limit.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct LaneBacklog {
    /// The rows that are due.
    pub due: i64,
    /// The rows that are due later: deferred or scheduled.
    pub later: i64,
    /// The due time of the oldest row that is due.
    pub oldest: Option<Timestamp>,
}

/// Returns the backlog of a lane. At most `limit` rows of each sort are counted.
pub async fn backlog(
    conn: &mut Conn,
    (carrier, lane): (CarrierId, Lane),
    now: Timestamp,
    limit: i64,
) -> StoreResult<LaneBacklog> {
    let sql = "SELECT
        (SELECT count(*) FROM (SELECT 1 FROM queue
            WHERE carrier = $1 AND lane = $2 AND due_at <= $3 LIMIT $4) AS due),
        (SELECT count(*) FROM (SELECT 1 FROM queue
            WHERE carrier = $1 AND lane = $2 AND due_at > $3 LIMIT $4) AS later),
        (SELECT min(due_at) FROM queue WHERE carrier = $1 AND lane = $2 AND due_at <= $3)";
    let params = [carrier.value(), lane.value(), now.value(), limit.into()];
    let read =
        |r: &mut Row<'_>| Ok(LaneBacklog { due: r.get()?, later: r.get()?, oldest: r.get()? });
    let found = conn.query_one(sql, &params, read).await?;
    Ok(found.unwrap_or(LaneBacklog { due: 0, later: 0, oldest: None }))
}

/// Returns the number of rows of a carrier and the due time of the oldest.
pub async fn depth(conn: &mut Conn, carrier: CarrierId) -> StoreResult<(i64, Option<Timestamp>)> {
    let sql = "SELECT count(*), min(due_at) FROM queue WHERE carrier = $1";
    let found = conn.query_one(sql, &[carrier.value()], |r| Ok((r.get()?, r.get()?))).await?;
    Ok(found.unwrap_or((0, None)))
}
