//! Webhook endpoints.

use crate::db::Conn;
use crate::db::bulk::Bulk;
use crate::db::field::Field;
use crate::db::record::{Record, columns, record};
use crate::db::row::{self, Row};
use crate::db::sealing::{Place, Sealer};
use crate::db::table::{Sql, Table};
use crate::error::{StoreError, StoreResult};
use heliograph_domain::account::Mode;
use heliograph_domain::endpoint_error::DisabledReason;
use heliograph_domain::id::{AccountId, EndpointId};
use heliograph_domain::time::Timestamp;
use heliograph_domain::webhook::{EventKinds, WebhookEndpoint, WebhookSecret};
use std::sync::LazyLock;

record! {
    /// A row of `endpoints`. Both secrets are sealed.
    struct EndpointRow {
        id: EndpointId,
        account: AccountId,
        mode: Mode,
        url: String,
        kinds: EventKinds,
        secret: String,
        old_secret: Option<String>,
        old_secret_until: Option<Timestamp>,
        local: bool,
        created_at: Timestamp,
        expires_at: Option<Timestamp>,
        failing_since: Option<Timestamp>,
        disabled_at: Option<Timestamp>,
        disabled_reason: Option<DisabledReason>,
    }
}

impl EndpointRow {
    fn open(self, sealer: &Sealer) -> StoreResult<WebhookEndpoint> {
        let open = |sealed: String| {
            let text = sealer.open(place(&self.id.0), &sealed)?;
            WebhookSecret::parse(&text).ok_or_else(|| StoreError::corrupt("bad secret"))
        };
        let old_secret = match (self.old_secret, self.old_secret_until) {
            (Some(sealed), Some(until)) => Some((open(sealed)?, until)),
            _ => None,
        };
        Ok(WebhookEndpoint {
            id: self.id,
            account: self.account,
            mode: self.mode,
            url: self.url,
            kinds: self.kinds,
            secret: open(self.secret)?,
            old_secret,
            local: self.local,
            created_at: self.created_at,
            expires_at: self.expires_at,
            failing_since: self.failing_since,
            off: self.disabled_at.zip(self.disabled_reason),
        })
    }
}

const ENDPOINTS: Table = Table { name: "endpoints", key: columns!(EndpointRow: id) };

/// The place of both secrets of an endpoint is the same, so that a rotation can move a sealed
/// value.
fn place(id: &i32) -> Place<'_> {
    Place(ENDPOINTS.name, id)
}

static INSERT: Sql = Sql::new(|| {
    let columns = columns!(EndpointRow: account, mode, url, kinds, local, created_at, expires_at);
    ENDPOINTS.insert_one(columns, &[("secret", "''")], "ON CONFLICT DO NOTHING RETURNING id")
});

static SET_SECRET: Sql = Sql::new(|| ENDPOINTS.update_one(columns!(EndpointRow: secret)));

/// Registers an endpoint and returns its id. `endpoint.id` is ignored.
///
/// # Errors
/// [`StoreError::Conflict`] when the account has an endpoint with this URL in this mode.
pub async fn insert(tx: &mut Conn, endpoint: &WebhookEndpoint) -> StoreResult<EndpointId> {
    let params = [
        endpoint.account.value(),
        endpoint.mode.value(),
        endpoint.url.value(),
        endpoint.kinds.value(),
        endpoint.local.value(),
        endpoint.created_at.value(),
        endpoint.expires_at.value(),
    ];
    let id: Option<EndpointId> = tx.query_one(&INSERT, &params, row::get).await?;
    let taken = || StoreError::Conflict("an endpoint with this URL was just added".to_owned());
    let id = id.ok_or_else(taken)?;
    // A sealed value is bound to its row, whose id is only known now.
    let secret = tx.sealer()?.seal(place(&id.0), endpoint.secret.reveal())?;
    tx.execute(&SET_SECRET, &[id.value(), secret.value()]).await?;
    Ok(id)
}

static LIST: Sql =
    Sql::new(|| ENDPOINTS.select_by(columns!(EndpointRow: account), EndpointRow::COLUMNS, "id"));

/// Returns the endpoints of an account, oldest first.
pub async fn list(conn: &mut Conn, account: AccountId) -> StoreResult<Vec<WebhookEndpoint>> {
    let sealer = conn.sealer()?;
    let open = |r: &mut Row<'_>| r.record::<EndpointRow>()?.open(&sealer);
    conn.query(&LIST, &[account.value()], open).await
}

static GET: Sql =
    Sql::new(|| ENDPOINTS.select_by(columns!(EndpointRow: account, id), EndpointRow::COLUMNS, ""));

/// Returns an endpoint of an account.
pub async fn get(
    conn: &mut Conn,
    account: AccountId,
    id: EndpointId,
) -> StoreResult<Option<WebhookEndpoint>> {
    let sealer = conn.sealer()?;
    let open = |r: &mut Row<'_>| r.record::<EndpointRow>()?.open(&sealer);
    conn.query_one(&GET, &[account.value(), id.value()], open).await
}

static BY_ID: Sql = Sql::new(|| ENDPOINTS.select_one(EndpointRow::COLUMNS));

/// Returns an endpoint of any account, for the operator and for delivery.
pub async fn by_id(conn: &mut Conn, id: EndpointId) -> StoreResult<Option<WebhookEndpoint>> {
    let sealer = conn.sealer()?;
    let open = |r: &mut Row<'_>| r.record::<EndpointRow>()?.open(&sealer);
    conn.query_one(&BY_ID, &[id.value()], open).await
}

/// The columns of an endpoint that a transaction needs to create events for it.
#[derive(Clone, Debug)]
pub struct SubscribedEndpoint {
    /// The endpoint's id.
    pub id: EndpointId,
    /// The account.
    pub account: AccountId,
    /// Live or test mode.
    pub mode: Mode,
    /// The event kinds that the endpoint subscribes to.
    pub kinds: EventKinds,
    /// True if the endpoint is disabled: events are stored for a replay, but not delivered.
    pub off: bool,
    /// The account's currency, ISO 4217.
    pub currency: String,
}

static SUBSCRIBED: LazyLock<Bulk> = LazyLock::new(|| {
    Bulk::new(
        "SELECT e.id, e.account, e.mode, e.kinds, e.disabled_at, a.currency
         FROM endpoints e CROSS JOIN accounts a
         WHERE e.account = $1 AND a.id = e.account AND (e.expires_at IS NULL OR e.expires_at > $2) ORDER BY e.id",
        "SELECT e.id, e.account, e.mode, e.kinds, e.disabled_at, a.currency
         FROM unnest($1::bigint[], $2::bigint[]) AS v (account, now)
         JOIN endpoints e ON e.account = v.account JOIN accounts a ON a.id = e.account
         WHERE e.expires_at IS NULL OR e.expires_at > v.now ORDER BY e.id",
    )
});

/// Returns the endpoints of these accounts that have not expired, by id.
pub async fn subscribed(
    conn: &mut Conn,
    accounts: &[AccountId],
    now: Timestamp,
) -> StoreResult<Vec<SubscribedEndpoint>> {
    let rows = accounts.iter().map(|a| [a.value(), now.value()]);
    conn.bulk_query(&SUBSCRIBED, &rows.collect(), |r| {
        Ok(SubscribedEndpoint {
            id: r.get()?,
            account: r.get()?,
            mode: r.get()?,
            kinds: r.get()?,
            off: r.get::<Option<Timestamp>>()?.is_some(),
            currency: r.get()?,
        })
    })
    .await
}

/// Replaces the signing secret. The previous one signs too until `until`.
pub async fn rotate_secret(
    tx: &mut Conn,
    id: EndpointId,
    secret: &WebhookSecret,
    until: Timestamp,
) -> StoreResult<bool> {
    let sql = "UPDATE endpoints SET old_secret = secret, old_secret_until = $3, secret = $2 WHERE id = $1";
    let secret = tx.sealer()?.seal(place(&id.0), secret.reveal())?;
    Ok(tx.execute(sql, &[id.value(), secret.value(), until.value()]).await? > 0)
}

static SET_KINDS: Sql = Sql::new(|| ENDPOINTS.update_one(columns!(EndpointRow: kinds)));

/// Changes the event kinds that an endpoint subscribes to.
pub async fn set_kinds(tx: &mut Conn, id: EndpointId, kinds: EventKinds) -> StoreResult<bool> {
    Ok(tx.execute(&SET_KINDS, &[id.value(), kinds.value()]).await? > 0)
}

/// Changes the URL of an endpoint, and clears the failures of the previous one.
pub async fn set_url(tx: &mut Conn, id: EndpointId, url: &str) -> StoreResult<bool> {
    let sql = "UPDATE endpoints SET url = $2, failing_since = NULL WHERE id = $1";
    Ok(tx.execute(sql, &[id.value(), url.into()]).await? > 0)
}

/// Marks an endpoint as failing since `since`, unless it is marked already.
pub async fn mark_failing(tx: &mut Conn, id: EndpointId, since: Timestamp) -> StoreResult<()> {
    let sql = "UPDATE endpoints SET failing_since = $2 WHERE id = $1 AND failing_since IS NULL";
    tx.execute(sql, &[id.value(), since.value()]).await.map(drop)
}

static MARK_WORKING: LazyLock<Bulk> = LazyLock::new(|| {
    Bulk::new(
        "UPDATE endpoints SET failing_since = NULL WHERE id = $1 AND failing_since IS NOT NULL",
        "UPDATE endpoints SET failing_since = NULL WHERE id = ANY ($1::integer[]) AND failing_since IS NOT NULL",
    )
});

/// Marks an endpoint as working. Every delivery report does this; it costs no round trip.
pub async fn mark_working(tx: &mut Conn, id: EndpointId) -> StoreResult<()> {
    tx.pipeline(&MARK_WORKING, &std::iter::once([id.value()]).collect()).await
}

/// Disables an endpoint that has been failing since before `limit`. Returns whether it did.
pub async fn disable_if_failing(
    tx: &mut Conn,
    id: EndpointId,
    limit: Timestamp,
    now: Timestamp,
) -> StoreResult<bool> {
    let sql = "UPDATE endpoints SET disabled_at = $3, disabled_reason = $4
        WHERE id = $1 AND disabled_at IS NULL AND failing_since <= $2";
    let params = [id.value(), limit.value(), now.value(), DisabledReason::Failing.code().into()];
    Ok(tx.execute(sql, &params).await? > 0)
}

/// Disables an endpoint. Returns whether it was enabled.
pub async fn disable(
    tx: &mut Conn,
    id: EndpointId,
    reason: DisabledReason,
    now: Timestamp,
) -> StoreResult<bool> {
    let sql = "UPDATE endpoints SET disabled_at = $3, disabled_reason = $2 WHERE id = $1 AND disabled_at IS NULL";
    Ok(tx.execute(sql, &[id.value(), reason.value(), now.value()]).await? > 0)
}

/// Enables an endpoint and clears its failures.
pub async fn enable(tx: &mut Conn, id: EndpointId) -> StoreResult<bool> {
    let sql = "UPDATE endpoints SET disabled_at = NULL, disabled_reason = NULL, failing_since = NULL WHERE id = $1";
    Ok(tx.execute(sql, &[id.value()]).await? > 0)
}

static SET_EXPIRY: Sql = Sql::new(|| ENDPOINTS.update_one(columns!(EndpointRow: expires_at)));

/// Extends the life of an endpoint to `until`.
pub async fn extend(tx: &mut Conn, id: EndpointId, until: Timestamp) -> StoreResult<bool> {
    Ok(tx.execute(&SET_EXPIRY, &[id.value(), until.value()]).await? > 0)
}

static DELETE: Sql = Sql::new(|| ENDPOINTS.delete_one());

/// Deletes an endpoint. The caller deletes its deliveries.
pub async fn delete(tx: &mut Conn, id: EndpointId) -> StoreResult<bool> {
    Ok(tx.execute(&DELETE, &[id.value()]).await? > 0)
}

/// Returns the endpoints that have expired.
pub async fn expired(conn: &mut Conn, now: Timestamp) -> StoreResult<Vec<EndpointId>> {
    let sql = "SELECT id FROM endpoints WHERE expires_at <= $1";
    conn.query(sql, &[now.value()], row::get).await
}
