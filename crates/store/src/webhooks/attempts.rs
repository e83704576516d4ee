//! Delivery attempts that failed, and successes that have no place in `events`.

use crate::db::Conn;
use crate::db::bulk::{Bulk, Rows};
use crate::db::field::Field;
use crate::db::record::{Record, columns, record};
use crate::db::row;
use crate::db::table::{Sql, Table, equals, joined, names, unnest};
use crate::error::StoreResult;
use heliograph_domain::delivery_error::AttemptOutcome;
use heliograph_domain::id::{AccountId, EndpointId, EventId};
use heliograph_domain::time::Timestamp;
use std::sync::LazyLock;

record! {
    /// One POST to a webhook endpoint and its response.
    #[derive(Clone, PartialEq, Eq, Debug)]
    pub struct DeliveryAttempt {
        /// The account.
        pub account: AccountId,
        /// The event.
        pub event: EventId,
        /// The endpoint.
        pub endpoint: EndpointId,
        /// The time at which the attempt ended.
        pub at: Timestamp,
        /// The status of the response, or the kind of the error.
        pub outcome: AttemptOutcome,
        /// The duration in milliseconds.
        pub duration: i32,
        /// The technical detail of the error.
        pub detail: Option<String>,
        /// The beginning of the response body.
        pub body: Option<String>,
    }
}

const ATTEMPTS: Table =
    Table { name: "attempts", key: columns!(DeliveryAttempt: account, event, endpoint, at) };

static INSERT: LazyLock<Bulk> =
    LazyLock::new(|| ATTEMPTS.insert(DeliveryAttempt::COLUMNS, &[], "ON CONFLICT DO NOTHING"));

/// Stores attempts.
pub async fn insert(tx: &mut Conn, all: &[DeliveryAttempt]) -> StoreResult<()> {
    tx.pipeline(&INSERT, &Rows::of(all.iter())).await
}

static LIST_FOR_EVENT: Sql = Sql::new(|| {
    format!(
        "SELECT {} FROM attempts WHERE account = $1 AND event = $2 ORDER BY at",
        names(DeliveryAttempt::COLUMNS)
    )
});

/// Returns the attempts to deliver an event, oldest first.
pub async fn list_for_event(
    conn: &mut Conn,
    account: AccountId,
    event: EventId,
) -> StoreResult<Vec<DeliveryAttempt>> {
    conn.query(&LIST_FOR_EVENT, &[account.value(), event.value()], row::record).await
}

static LIST_FOR_ENDPOINT: Sql = Sql::new(|| {
    format!(
        "SELECT {} FROM attempts WHERE endpoint = $1 AND account = $2 ORDER BY at DESC LIMIT $3",
        names(DeliveryAttempt::COLUMNS)
    )
});

/// Returns the last `limit` attempts at an account's endpoint, newest first.
pub async fn list_for_endpoint(
    conn: &mut Conn,
    (account, endpoint): (AccountId, EndpointId),
    limit: i64,
) -> StoreResult<Vec<DeliveryAttempt>> {
    let params = [endpoint.value(), account.value(), limit.into()];
    conn.query(&LIST_FOR_ENDPOINT, &params, row::record).await
}

/// Returns the last `limit` attempts before `before` at an account's endpoint, newest first: the
/// event, the time and whether the attempt failed.
pub async fn list_before(
    conn: &mut Conn,
    (account, endpoint): (AccountId, EndpointId),
    before: Timestamp,
    limit: i64,
) -> StoreResult<Vec<(EventId, Timestamp, bool)>> {
    let sql = "SELECT event, at, outcome FROM attempts
        WHERE endpoint = $1 AND account = $2 AND at < $3 ORDER BY at DESC LIMIT $4";
    let params = [endpoint.value(), account.value(), before.value(), limit.into()];
    let failed = |outcome: AttemptOutcome| !outcome.is_success();
    conn.query(sql, &params, |r| Ok((r.get()?, r.get()?, failed(r.get()?)))).await
}

static LIST_FOR_EVENTS: LazyLock<Bulk> = LazyLock::new(|| {
    let key = columns!(DeliveryAttempt: account, event, endpoint);
    let columns = names(DeliveryAttempt::COLUMNS);
    Bulk::new(
        format!("SELECT {columns} FROM attempts WHERE {} ORDER BY at DESC LIMIT 20", equals(key)),
        format!(
            "SELECT t.* FROM {} CROSS JOIN LATERAL
               (SELECT {columns} FROM attempts a WHERE {} ORDER BY at DESC LIMIT 20) AS t",
            unnest("v", key),
            joined("a", "v", key)
        ),
    )
});

/// Returns the last 20 attempts to deliver each of these events to an account's endpoint, in any
/// order.
pub async fn list_for_events(
    conn: &mut Conn,
    (account, endpoint): (AccountId, EndpointId),
    events: &[EventId],
) -> StoreResult<Vec<DeliveryAttempt>> {
    let rows = events.iter().map(|e| [account.value(), e.value(), endpoint.value()]);
    conn.bulk_query(&LIST_FOR_EVENTS, &rows.collect(), row::record).await
}

/// Deletes attempts of an account to deliver events that are older than `before`: those of up to
/// `limit` rows of attempts, oldest events first. Returns the number of deleted rows.
pub async fn delete_old(
    tx: &mut Conn,
    account: AccountId,
    before: EventId,
    limit: i64,
) -> StoreResult<u64> {
    let sql = "DELETE FROM attempts WHERE account = $1 AND event IN
        (SELECT event FROM attempts WHERE account = $1 AND event < $2 ORDER BY event LIMIT $3)";
    tx.execute(sql, &[account.value(), before.value(), limit.into()]).await
}
