//! Webhook events, with the result of the first delivery attempt.

use crate::db::Conn;
use crate::db::bulk::{Bulk, Rows};
use crate::db::field::Field;
use crate::db::record::{Record, columns, record};
use crate::db::row::Row;
use crate::db::table::{Sql, Table, joined, names, unnest};
use crate::error::StoreResult;
use heliograph_domain::account::Mode;
use heliograph_domain::delivery_error::AttemptOutcome;
use heliograph_domain::event::{EventKind, StoredEvent};
use heliograph_domain::id::{AccountId, EndpointId, EventId};
use heliograph_domain::time::Timestamp;
use std::sync::LazyLock;
use std::time::Duration;
use uuid::Uuid;

record! {
    for StoredEvent { account, id, mode, kind, test, subject, at, endpoint }
}

record! {
    /// The result of the first delivery attempt; all NULL before it ends.
    struct FirstResult {
        outcome: Option<AttemptOutcome>,
        duration: Option<i32>,
        answered_at: Option<Timestamp>,
    }
}

const EVENTS: Table = Table { name: "events", key: columns!(StoredEvent: account, id) };

static INSERT: LazyLock<Bulk> = LazyLock::new(|| EVENTS.insert(StoredEvent::COLUMNS, &[], ""));

/// Stores events.
pub async fn insert(tx: &mut Conn, events: &[StoredEvent]) -> StoreResult<()> {
    tx.pipeline(&INSERT, &Rows::of(events.iter())).await
}

/// The result of the first attempt to deliver an event.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct FirstAttempt {
    /// The account.
    pub account: AccountId,
    /// The event.
    pub event: EventId,
    /// The status of the response, or the kind of the error.
    pub outcome: AttemptOutcome,
    /// The duration in milliseconds.
    pub duration: i32,
    /// The time at which the attempt ended.
    pub at: Timestamp,
}

static RECORD_FIRST: LazyLock<Bulk> = LazyLock::new(|| {
    let columns = [EVENTS.key, FirstResult::COLUMNS].concat();
    Bulk::new(
        "UPDATE events SET outcome = $3, duration = $4, answered_at = $5
         WHERE account = $1 AND id = $2 AND NOT coalesce(outcome, 0) BETWEEN 200 AND 299",
        format!(
            "UPDATE events e SET outcome = v.outcome, duration = v.duration, answered_at = v.answered_at
             FROM {} WHERE {} AND NOT coalesce(e.outcome, 0) BETWEEN 200 AND 299",
            unnest("v", &columns),
            joined("e", "v", EVENTS.key)
        ),
    )
});

/// Saves the results of first attempts. The first attempt of a replay never overwrites an earlier
/// success.
pub async fn record_first_attempts(tx: &mut Conn, all: &[FirstAttempt]) -> StoreResult<()> {
    let rows = all.iter().map(|f| {
        [f.account.value(), f.event.value(), f.outcome.value(), f.duration.value(), f.at.value()]
    });
    tx.pipeline(&RECORD_FIRST, &rows.collect()).await
}

/// The column list of an event with its first attempt, as [`with_first`] reads it.
fn all_columns() -> String {
    names(&[StoredEvent::COLUMNS, FirstResult::COLUMNS].concat())
}

fn with_first(r: &mut Row<'_>) -> StoreResult<(StoredEvent, Option<FirstAttempt>)> {
    let event: StoredEvent = r.record()?;
    let result: FirstResult = r.record()?;
    let first = match (result.outcome, result.duration, result.answered_at) {
        (Some(outcome), Some(duration), Some(at)) => {
            Some(FirstAttempt { account: event.account, event: event.id, outcome, duration, at })
        }
        _ => None,
    };
    Ok((event, first))
}

static GET: Sql =
    Sql::new(|| EVENTS.select_one(&[StoredEvent::COLUMNS, FirstResult::COLUMNS].concat()));

/// Returns an event and the result of its first attempt.
pub async fn get(
    conn: &mut Conn,
    account: AccountId,
    id: EventId,
) -> StoreResult<Option<(StoredEvent, Option<FirstAttempt>)>> {
    conn.query_one(&GET, &[account.value(), id.value()], with_first).await
}

static LIST_BEFORE: Sql = Sql::new(|| {
    format!(
        "SELECT {} FROM events WHERE account = $1 AND id < $2 ORDER BY id DESC LIMIT $3",
        all_columns()
    )
});

/// Returns up to `limit` events of an account before `before`, of both modes, newest first.
pub async fn list_before(
    conn: &mut Conn,
    account: AccountId,
    before: EventId,
    limit: i64,
) -> StoreResult<Vec<(StoredEvent, Option<FirstAttempt>)>> {
    let params = [account.value(), before.value(), limit.into()];
    conn.query(&LIST_BEFORE, &params, with_first).await
}

static GET_MANY: LazyLock<Bulk> =
    LazyLock::new(|| EVENTS.select(&[StoredEvent::COLUMNS, FirstResult::COLUMNS].concat()));

/// Returns these events of an account, in any order. Events that do not exist are left out.
pub async fn get_many(
    conn: &mut Conn,
    account: AccountId,
    ids: &[EventId],
) -> StoreResult<Vec<(StoredEvent, Option<FirstAttempt>)>> {
    let rows = ids.iter().map(|id| [account.value(), id.value()]);
    conn.bulk_query(&GET_MANY, &rows.collect(), with_first).await
}

/// The time in the id of an event may be later than its cause by this much, because the ids of a
/// process rise even when its clock is set back.
const SLACK: Duration = Duration::from_secs(1);

static LIST_FOR_SUBJECT: Sql = Sql::new(|| {
    format!(
        "SELECT {} FROM events
         WHERE account = $1 AND id >= $2 AND id < $3 AND subject = $4 ORDER BY id",
        all_columns()
    )
});

/// Returns the events about a subject that changed at `at`. Events are stored in the transaction
/// that causes them, so the time in their ids is enough to find them.
pub async fn list_for_subject(
    conn: &mut Conn,
    account: AccountId,
    (subject, at): (Uuid, Timestamp),
) -> StoreResult<Vec<(StoredEvent, Option<FirstAttempt>)>> {
    let (from, to) = (EventId::first_at(at), EventId::first_at(at.after(SLACK)));
    let params = [account.value(), from.value(), to.value(), subject.value()];
    conn.query(&LIST_FOR_SUBJECT, &params, with_first).await
}

/// Selects the events of an endpoint to replay.
#[derive(Clone, Copy, Debug)]
pub struct ReplayFilter {
    /// The account.
    pub account: AccountId,
    /// Live or test mode.
    pub mode: Mode,
    /// The endpoint.
    pub endpoint: EndpointId,
    /// The beginning of the period, inclusive.
    pub from: Timestamp,
    /// The end of the period, exclusive.
    pub to: Timestamp,
    /// Only events that were never delivered to the endpoint.
    pub failed: bool,
}

/// Returns up to `limit` events after `after` that match the filter, oldest first. The time in an
/// event's id is never before the event, so a caller that begins with `filter.from` misses none.
pub async fn list_for_replay(
    conn: &mut Conn,
    filter: &ReplayFilter,
    after: EventId,
    limit: i64,
) -> StoreResult<Vec<(EventId, EventKind)>> {
    let sql = "SELECT e.id, e.kind FROM events e
        WHERE e.account = $1 AND e.id > $2 AND e.mode = $3 AND e.test = 0 AND e.at >= $4 AND e.at < $5
          AND ($7 = 0 OR (NOT (e.endpoint = $6 AND coalesce(e.outcome, 0) BETWEEN 200 AND 299)
            AND NOT EXISTS (SELECT 1 FROM attempts t WHERE t.account = e.account AND t.event = e.id
              AND t.endpoint = $6 AND t.outcome BETWEEN 200 AND 299)))
        ORDER BY e.id LIMIT $8";
    let params = [
        filter.account.value(),
        after.value(),
        filter.mode.value(),
        filter.from.value(),
        filter.to.value(),
        filter.endpoint.value(),
        filter.failed.value(),
        limit.into(),
    ];
    conn.query(sql, &params, |r| Ok((r.get()?, r.get()?))).await
}

/// Deletes up to `limit` events of an account before `before`, oldest first, and returns how many
/// there were.
pub async fn delete_old(
    tx: &mut Conn,
    account: AccountId,
    before: EventId,
    limit: i64,
) -> StoreResult<u64> {
    let sql = "DELETE FROM events WHERE account = $1 AND id IN
        (SELECT id FROM events WHERE account = $1 AND id < $2 ORDER BY id LIMIT $3)";
    tx.execute(sql, &[account.value(), before.value(), limit.into()]).await
}
