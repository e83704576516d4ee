//! Events: what clients are told, with the outcome of the first attempt.

use crate::bulk::Bulk;
use crate::db::Conn;
use crate::error::{Error, Result};
use crate::row::{self, Row};
use heliograph_domain::account::Mode;
use heliograph_domain::event::{Kind, Occurrence};
use heliograph_domain::id::{AccountId, EndpointId, EventId};
use heliograph_domain::time::Timestamp;
use std::time::Duration;
use uuid::Uuid;

const INSERT: Bulk = Bulk {
    each: "INSERT INTO events (account, id, mode, kind, test, subject, at, endpoint)
           VALUES ($1, $2, $3, $4, $5, $6, $7, $8)",
    all: "INSERT INTO events (account, id, mode, kind, test, subject, at, endpoint)
          SELECT * FROM unnest($1::bigint[], $2::uuid[], $3::smallint[], $4::smallint[], $5::smallint[], $6::uuid[],
            $7::bigint[], $8::integer[])",
};

/// Stores events.
///
/// # Errors
/// As any write.
pub async fn insert(tx: &mut Conn, events: &[Occurrence]) -> Result<()> {
    let rows = events.iter().map(|e| {
        [
            e.account.0.into(),
            e.id.0.into(),
            e.mode.code().into(),
            e.kind.code().into(),
            i16::from(e.test).into(),
            e.subject.into(),
            e.at.into(),
            e.endpoint.0.into(),
        ]
    });
    tx.bulk_ahead(&INSERT, &rows.collect()).await
}

/// How a first attempt ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct First {
    /// Whose event.
    pub account: AccountId,
    /// Which.
    pub event: EventId,
    /// The HTTP status, 0 without one.
    pub outcome: i16,
    /// How long it took, in milliseconds.
    pub duration: i32,
    /// When it ended.
    pub at: Timestamp,
}

const ANSWERED: Bulk = Bulk {
    each: "UPDATE events SET outcome = $3, duration = $4, answered_at = $5
           WHERE account = $1 AND id = $2 AND NOT coalesce(outcome, 0) BETWEEN 200 AND 299",
    all: "UPDATE events e SET outcome = v.outcome, duration = v.duration, answered_at = v.at
          FROM unnest($1::bigint[], $2::uuid[], $3::smallint[], $4::integer[], $5::bigint[])
            AS v (account, id, outcome, duration, at)
          WHERE e.account = v.account AND e.id = v.id AND NOT coalesce(e.outcome, 0) BETWEEN 200 AND 299",
};

/// Notes how first attempts ended. A replay has one as well: it never takes back that the event was taken.
///
/// # Errors
/// As any write.
pub async fn answered(tx: &mut Conn, all: &[First]) -> Result<()> {
    let rows = all.iter().map(|f| {
        [f.account.0.into(), f.event.0.into(), f.outcome.into(), f.duration.into(), f.at.into()]
    });
    tx.bulk_ahead(&ANSWERED, &rows.collect()).await
}

/// The event with this id, and how the first attempt ended.
///
/// # Errors
/// As any read.
pub async fn get(
    conn: &mut Conn,
    account: AccountId,
    id: EventId,
) -> Result<Option<(Occurrence, Option<First>)>> {
    let sql = "SELECT account, id, mode, kind, test, subject, at, endpoint, outcome, duration, answered_at
        FROM events WHERE account = $1 AND id = $2";
    conn.query_one(sql, &[account.0.into(), id.0.into()], with_first).await
}

/// The last events of an account before `before`, in both its worlds, the newest first; at most `limit`.
///
/// # Errors
/// As any read.
pub async fn newest(
    conn: &mut Conn,
    account: AccountId,
    before: EventId,
    limit: i64,
) -> Result<Vec<(Occurrence, Option<First>)>> {
    let sql = "SELECT account, id, mode, kind, test, subject, at, endpoint, outcome, duration, answered_at
        FROM events WHERE account = $1 AND id < $2 ORDER BY id DESC LIMIT $3";
    conn.query(sql, &[account.0.into(), before.0.into(), limit.into()], with_first).await
}

const THESE: Bulk = Bulk {
    each: "SELECT account, id, mode, kind, test, subject, at, endpoint, outcome, duration, answered_at
           FROM events WHERE account = $1 AND id = $2",
    all: "SELECT e.account, e.id, e.mode, e.kind, e.test, e.subject, e.at, e.endpoint, e.outcome, e.duration,
            e.answered_at
          FROM unnest($1::bigint[], $2::uuid[]) AS v (account, id)
          JOIN events e ON e.account = v.account AND e.id = v.id",
};

/// These events of an account, in any order, without those that do not exist.
///
/// # Errors
/// As any read.
pub async fn these(
    conn: &mut Conn,
    account: AccountId,
    ids: &[EventId],
) -> Result<Vec<(Occurrence, Option<First>)>> {
    let rows = ids.iter().map(|id| [account.0.into(), id.0.into()]);
    conn.bulk_query(&THESE, &rows.collect(), with_first).await
}

/// How much later than its cause an event's id may say it was: ids of a process rise, also when its clock is set back.
const SLACK: Duration = Duration::from_secs(1);

/// The events that tell of one thing, which happened at `at`: they were stored in that transaction, and are looked for
/// by their time alone.
///
/// # Errors
/// As any read.
pub async fn about(
    conn: &mut Conn,
    account: AccountId,
    (subject, at): (Uuid, Timestamp),
) -> Result<Vec<(Occurrence, Option<First>)>> {
    let sql = "SELECT account, id, mode, kind, test, subject, at, endpoint, outcome, duration, answered_at
        FROM events WHERE account = $1 AND id >= $2 AND id < $3 AND subject = $4 ORDER BY id";
    let (from, to) = (EventId::first_at(at), EventId::first_at(at.after(SLACK)));
    let params = [account.0.into(), from.0.into(), to.0.into(), subject.into()];
    conn.query(sql, &params, with_first).await
}

fn with_first(r: &Row<'_>) -> Result<(Occurrence, Option<First>)> {
    let event = row::occurrence(r, 0)?;
    let first = match (r.opt_small(8)?, r.opt_small(9)?, r.opt_time(10)?) {
        (Some(outcome), Some(duration), Some(at)) => {
            Some(First { account: event.account, event: event.id, outcome, duration, at })
        }
        _ => None,
    };
    Ok((event, first))
}

/// What of an endpoint's events is to be told again.
#[derive(Clone, Copy, Debug)]
pub struct Replay {
    /// Whose.
    pub account: AccountId,
    /// In which world.
    pub mode: Mode,
    /// To whom.
    pub endpoint: EndpointId,
    /// From here on, included.
    pub from: Timestamp,
    /// Up to here, not included.
    pub to: Timestamp,
    /// Only what the endpoint never took.
    pub failed: bool,
}

/// Events that match and come after `after`, the oldest first; at most `limit`. An event's id is never from before it
/// happened: who begins with `what.from` passes over none.
///
/// # Errors
/// As any read.
pub async fn to_replay(
    conn: &mut Conn,
    what: &Replay,
    after: EventId,
    limit: i64,
) -> Result<Vec<(EventId, Kind)>> {
    let sql = "SELECT e.id, e.kind FROM events e
        WHERE e.account = $1 AND e.id > $2 AND e.mode = $3 AND e.test = 0 AND e.at >= $4 AND e.at < $5
          AND ($7 = 0 OR (NOT (e.endpoint = $6 AND coalesce(e.outcome, 0) BETWEEN 200 AND 299)
            AND NOT EXISTS (SELECT 1 FROM attempts t WHERE t.account = e.account AND t.event = e.id
              AND t.endpoint = $6 AND t.outcome BETWEEN 200 AND 299)))
        ORDER BY e.id LIMIT $8";
    let params = [
        what.account.0.into(),
        after.0.into(),
        what.mode.code().into(),
        what.from.into(),
        what.to.into(),
        what.endpoint.0.into(),
        i16::from(what.failed).into(),
        limit.into(),
    ];
    conn.query(sql, &params, |r| {
        let kind = Kind::from_code(r.small(1)?).ok_or_else(|| Error::corrupt("unknown kind"))?;
        Ok((EventId(r.uuid(0)?), kind))
    })
    .await
}

/// Drops an account's events from before `before`, the oldest first, at most `limit`; how many.
///
/// # Errors
/// As any write.
pub async fn drop_old(
    tx: &mut Conn,
    account: AccountId,
    before: EventId,
    limit: i64,
) -> Result<u64> {
    let sql = "DELETE FROM events WHERE account = $1 AND id IN
        (SELECT id FROM events WHERE account = $1 AND id < $2 ORDER BY id LIMIT $3)";
    tx.execute(sql, &[account.0.into(), before.0.into(), limit.into()]).await
}
