//! Attempts at webhooks that went wrong, and successes that `events` has no place for.

use crate::bulk::Bulk;
use crate::db::Conn;
use crate::error::Result;
use crate::row::Row;
use heliograph_domain::id::{AccountId, EndpointId, EventId};
use heliograph_domain::time::Timestamp;

/// One POST, and what came back.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Attempt {
    /// Whose event.
    pub account: AccountId,
    /// Which.
    pub event: EventId,
    /// To whom.
    pub endpoint: EndpointId,
    /// When it ended.
    pub at: Timestamp,
    /// The HTTP status, 0 without one.
    pub outcome: i16,
    /// How long it took, in milliseconds.
    pub duration: i32,
    /// What went wrong, in words.
    pub detail: Option<String>,
    /// How the answer's body began.
    pub body: Option<String>,
}

const INSERT: Bulk = Bulk {
    each: "INSERT INTO attempts (account, event, endpoint, at, outcome, duration, detail, body)
           VALUES ($1, $2, $3, $4, $5, $6, $7, $8) ON CONFLICT DO NOTHING",
    all: "INSERT INTO attempts (account, event, endpoint, at, outcome, duration, detail, body)
          SELECT * FROM unnest($1::bigint[], $2::uuid[], $3::integer[], $4::bigint[], $5::smallint[], $6::integer[],
            $7::text[], $8::text[])
          ON CONFLICT DO NOTHING",
};

/// Stores attempts.
///
/// # Errors
/// As any write.
pub async fn insert(tx: &mut Conn, all: &[Attempt]) -> Result<()> {
    let rows = all.iter().map(|a| {
        [
            a.account.0.into(),
            a.event.0.into(),
            a.endpoint.0.into(),
            a.at.into(),
            a.outcome.into(),
            a.duration.into(),
            a.detail.as_deref().into(),
            a.body.as_deref().into(),
        ]
    });
    tx.bulk_ahead(&INSERT, &rows.collect()).await
}

/// The attempts at one event, the oldest first.
///
/// # Errors
/// As any read.
pub async fn of(conn: &mut Conn, account: AccountId, event: EventId) -> Result<Vec<Attempt>> {
    let sql = "SELECT account, event, endpoint, at, outcome, duration, detail, body
        FROM attempts WHERE account = $1 AND event = $2 ORDER BY at";
    conn.query(sql, &[account.0.into(), event.0.into()], attempt).await
}

/// The last attempts at an account's endpoint, the newest first; at most `limit`.
///
/// # Errors
/// As any read.
pub async fn at(
    conn: &mut Conn,
    (account, endpoint): (AccountId, EndpointId),
    limit: i64,
) -> Result<Vec<Attempt>> {
    let sql = "SELECT account, event, endpoint, at, outcome, duration, detail, body
        FROM attempts WHERE endpoint = $1 AND account = $2 ORDER BY at DESC LIMIT $3";
    conn.query(sql, &[endpoint.0.into(), account.0.into(), limit.into()], attempt).await
}

/// The last attempts before `before` at an account's endpoint, the newest first, with the events that they were about
/// and whether they failed; at most `limit`.
///
/// # Errors
/// As any read.
pub async fn before(
    conn: &mut Conn,
    (account, endpoint): (AccountId, EndpointId),
    before: Timestamp,
    limit: i64,
) -> Result<Vec<(EventId, Timestamp, bool)>> {
    let sql = "SELECT event, at, outcome FROM attempts
        WHERE endpoint = $1 AND account = $2 AND at < $3 ORDER BY at DESC LIMIT $4";
    let params = [endpoint.0.into(), account.0.into(), before.into(), limit.into()];
    let failed = |outcome: i16| !(200..300).contains(&outcome);
    let read = |r: &Row<'_>| Ok((EventId(r.uuid(0)?), r.time(1)?, failed(r.small(2)?)));
    conn.query(sql, &params, read).await
}

const OF_THESE: Bulk = Bulk {
    each: "SELECT account, event, endpoint, at, outcome, duration, detail, body FROM attempts
           WHERE account = $1 AND event = $2 AND endpoint = $3 ORDER BY at DESC LIMIT 20",
    all: "SELECT t.* FROM unnest($1::bigint[], $2::uuid[], $3::integer[]) AS v (account, event, endpoint)
          CROSS JOIN LATERAL (SELECT account, event, endpoint, at, outcome, duration, detail, body FROM attempts a
            WHERE a.account = v.account AND a.event = v.event AND a.endpoint = v.endpoint
            ORDER BY at DESC LIMIT 20) AS t",
};

/// The attempts at these events at one endpoint of an account, in any order: of each event the last twenty.
///
/// # Errors
/// As any read.
pub async fn of_these(
    conn: &mut Conn,
    (account, endpoint): (AccountId, EndpointId),
    events: &[EventId],
) -> Result<Vec<Attempt>> {
    let rows = events.iter().map(|e| [account.0.into(), e.0.into(), endpoint.0.into()]);
    conn.bulk_query(&OF_THESE, &rows.collect(), attempt).await
}

/// Drops an account's attempts at events from before `before`, the oldest events first, at most those of `limit`
/// rows; how many.
///
/// # Errors
/// As any write.
pub async fn drop_old(
    tx: &mut Conn,
    account: AccountId,
    before: EventId,
    limit: i64,
) -> Result<u64> {
    let sql = "DELETE FROM attempts WHERE account = $1 AND event IN
        (SELECT event FROM attempts WHERE account = $1 AND event < $2 ORDER BY event LIMIT $3)";
    tx.execute(sql, &[account.0.into(), before.0.into(), limit.into()]).await
}

fn attempt(r: &Row<'_>) -> Result<Attempt> {
    Ok(Attempt {
        account: AccountId(r.int(0)?),
        event: EventId(r.uuid(1)?),
        endpoint: EndpointId(r.small(2)?),
        at: r.time(3)?,
        outcome: r.small(4)?,
        duration: r.small(5)?,
        detail: r.opt_text(6)?,
        body: r.opt_text(7)?,
    })
}
