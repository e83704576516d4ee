//! Webhook endpoints: whom to tell.

use crate::bulk::Bulk;
use crate::db::Conn;
use crate::error::{Error, Result};
use crate::row::Row;
use crate::sealing::{Place, Sealer};
use heliograph_domain::account::Mode;
use heliograph_domain::id::{AccountId, EndpointId};
use heliograph_domain::time::Timestamp;
use heliograph_domain::webhook::{Endpoint, Kinds, OffReason, Secret};

/// The columns of an endpoint, in the order in which [`endpoint`] reads them.
macro_rules! select {
    ($rest:literal) => {
        concat!(
            "SELECT id, account, mode, url, kinds, secret, old_secret, old_secret_until, local, created_at, expires_at,
               failing_since, off_since, off_reason FROM endpoints ",
            $rest
        )
    };
}

/// Registers an endpoint; the number that it has from now on. `endpoint.id` is not looked at.
///
/// # Errors
/// As any write.
pub async fn insert(tx: &mut Conn, endpoint: &Endpoint) -> Result<EndpointId> {
    let sql =
        "INSERT INTO endpoints (account, mode, url, kinds, secret, local, created_at, expires_at)
        VALUES ($1, $2, $3, $4, $5, $6, $7, $8) RETURNING id";
    let params = [
        endpoint.account.0.into(),
        endpoint.mode.code().into(),
        endpoint.url.as_str().into(),
        endpoint.kinds.bits().into(),
        "".into(),
        i16::from(endpoint.local).into(),
        endpoint.created_at.into(),
        endpoint.expires_at.into(),
    ];
    let made = tx.query_one(sql, &params, |r| Ok(EndpointId(r.small(0)?))).await?;
    let id = made.ok_or_else(|| Error::corrupt("an endpoint just made is gone"))?;
    // What is sealed is bound to its row, whose number is known only now.
    let secret = tx.sealer()?.seal(place(&id.0), endpoint.secret.reveal())?;
    let sql = "UPDATE endpoints SET secret = $2 WHERE id = $1";
    tx.execute(sql, &[id.0.into(), secret.as_str().into()]).await?;
    Ok(id)
}

/// Both secrets of an endpoint have one place, so that a rotation moves them as they are.
fn place(id: &i32) -> Place<'_> {
    Place("endpoints", id)
}

/// The endpoints of an account, the oldest first.
///
/// # Errors
/// As any read.
pub async fn of(conn: &mut Conn, account: AccountId) -> Result<Vec<Endpoint>> {
    let sql = select!("WHERE account = $1 ORDER BY id");
    let sealer = conn.sealer()?;
    conn.query(sql, &[account.0.into()], |r| endpoint(r, &sealer)).await
}

/// An account's endpoint with this number.
///
/// # Errors
/// As any read.
pub async fn get(conn: &mut Conn, account: AccountId, id: EndpointId) -> Result<Option<Endpoint>> {
    let sql = select!("WHERE id = $2 AND account = $1");
    let sealer = conn.sealer()?;
    conn.query_one(sql, &[account.0.into(), id.0.into()], |r| endpoint(r, &sealer)).await
}

/// An endpoint by its number, for the operator and for whoever delivers.
///
/// # Errors
/// As any read.
pub async fn by_number(conn: &mut Conn, id: EndpointId) -> Result<Option<Endpoint>> {
    let sealer = conn.sealer()?;
    conn.query_one(select!("WHERE id = $1"), &[id.0.into()], |r| endpoint(r, &sealer)).await
}

/// What a transaction that causes events has to know of an endpoint.
#[derive(Clone, Debug)]
pub struct Listener {
    /// Its number.
    pub id: EndpointId,
    /// Whose.
    pub account: AccountId,
    /// Of which world.
    pub mode: Mode,
    /// What it wants.
    pub kinds: Kinds,
    /// Whether it gets nothing for now: what happens is kept, and can be replayed.
    pub off: bool,
    /// The account's currency, ISO 4217.
    pub currency: String,
}

const LISTENING: Bulk = Bulk {
    each: "SELECT e.id, e.account, e.mode, e.kinds, e.off_since, a.currency
           FROM endpoints e CROSS JOIN accounts a
           WHERE e.account = $1 AND a.id = e.account AND (e.expires_at IS NULL OR e.expires_at > $2) ORDER BY e.id",
    all: "SELECT e.id, e.account, e.mode, e.kinds, e.off_since, a.currency
          FROM unnest($1::bigint[], $2::bigint[]) AS v (account, now)
          JOIN endpoints e ON e.account = v.account JOIN accounts a ON a.id = e.account
          WHERE e.expires_at IS NULL OR e.expires_at > v.now ORDER BY e.id",
};

/// Who listens to what happens to these accounts, by number.
///
/// # Errors
/// As any read.
pub async fn listening(
    conn: &mut Conn,
    accounts: &[AccountId],
    now: Timestamp,
) -> Result<Vec<Listener>> {
    let rows = accounts.iter().map(|a| [a.0.into(), now.into()]);
    conn.bulk_query(&LISTENING, &rows.collect(), |r| {
        Ok(Listener {
            id: EndpointId(r.small(0)?),
            account: AccountId(r.int(1)?),
            mode: mode(r, 2)?,
            kinds: Kinds::from_bits(r.small(3)?),
            off: r.opt_int(4)?.is_some(),
            currency: r.text(5)?,
        })
    })
    .await
}

/// Changes the secret; the one before it signs too until `until`.
///
/// # Errors
/// As any write.
pub async fn rotate(
    tx: &mut Conn,
    id: EndpointId,
    secret: &Secret,
    until: Timestamp,
) -> Result<bool> {
    let sql = "UPDATE endpoints SET old_secret = secret, old_secret_until = $3, secret = $2 WHERE id = $1";
    let secret = tx.sealer()?.seal(place(&id.0), secret.reveal())?;
    let params = [id.0.into(), secret.as_str().into(), until.into()];
    Ok(tx.execute(sql, &params).await? > 0)
}

/// Changes what an endpoint is told from now on.
///
/// # Errors
/// As any write.
pub async fn choose(tx: &mut Conn, id: EndpointId, kinds: Kinds) -> Result<bool> {
    let sql = "UPDATE endpoints SET kinds = $2 WHERE id = $1";
    Ok(tx.execute(sql, &[id.0.into(), kinds.bits().into()]).await? > 0)
}

/// Notes that an endpoint fails, unless that is known.
///
/// # Errors
/// As any write.
pub async fn failing(tx: &mut Conn, id: EndpointId, since: Timestamp) -> Result<()> {
    let sql = "UPDATE endpoints SET failing_since = $2 WHERE id = $1 AND failing_since IS NULL";
    tx.execute(sql, &[id.0.into(), since.into()]).await.map(drop)
}

const WORKING: Bulk = Bulk {
    each: "UPDATE endpoints SET failing_since = NULL WHERE id = $1 AND failing_since IS NOT NULL",
    all: "UPDATE endpoints SET failing_since = NULL WHERE id = ANY ($1::integer[]) AND failing_since IS NOT NULL",
};

/// Notes that an endpoint works. It is said with each report, and costs no round trip.
///
/// # Errors
/// As any write.
pub async fn working(tx: &mut Conn, id: EndpointId) -> Result<()> {
    tx.bulk_ahead(&WORKING, &std::iter::once([id.0.into()]).collect()).await
}

/// Switches an endpoint off that has only failed since before `limit`; whether it was such a one.
///
/// # Errors
/// As any write.
pub async fn give_up(
    tx: &mut Conn,
    id: EndpointId,
    limit: Timestamp,
    now: Timestamp,
) -> Result<bool> {
    let sql = "UPDATE endpoints SET off_since = $3, off_reason = $4
        WHERE id = $1 AND off_since IS NULL AND failing_since <= $2";
    let reason = OffReason::Failing.code().into();
    Ok(tx.execute(sql, &[id.0.into(), limit.into(), now.into(), reason]).await? > 0)
}

/// Switches an endpoint off; whether it was on.
///
/// # Errors
/// As any write.
pub async fn switch_off(
    tx: &mut Conn,
    id: EndpointId,
    reason: OffReason,
    now: Timestamp,
) -> Result<bool> {
    let sql =
        "UPDATE endpoints SET off_since = $3, off_reason = $2 WHERE id = $1 AND off_since IS NULL";
    Ok(tx.execute(sql, &[id.0.into(), reason.code().into(), now.into()]).await? > 0)
}

/// Switches an endpoint on again, with a clean record.
///
/// # Errors
/// As any write.
pub async fn switch_on(tx: &mut Conn, id: EndpointId) -> Result<bool> {
    let sql = "UPDATE endpoints SET off_since = NULL, off_reason = NULL, failing_since = NULL WHERE id = $1";
    Ok(tx.execute(sql, &[id.0.into()]).await? > 0)
}

/// Lets an endpoint live until `until`.
///
/// # Errors
/// As any write.
pub async fn keep(tx: &mut Conn, id: EndpointId, until: Timestamp) -> Result<bool> {
    let sql = "UPDATE endpoints SET expires_at = $2 WHERE id = $1";
    Ok(tx.execute(sql, &[id.0.into(), until.into()]).await? > 0)
}

/// Removes an endpoint. What was still to be told to it has to go as well.
///
/// # Errors
/// As any write.
pub async fn remove(tx: &mut Conn, id: EndpointId) -> Result<bool> {
    Ok(tx.execute("DELETE FROM endpoints WHERE id = $1", &[id.0.into()]).await? > 0)
}

/// Endpoints whose time is over.
///
/// # Errors
/// As any read.
pub async fn expired(conn: &mut Conn, now: Timestamp) -> Result<Vec<EndpointId>> {
    let sql = "SELECT id FROM endpoints WHERE expires_at <= $1";
    conn.query(sql, &[now.into()], |r| Ok(EndpointId(r.small(0)?))).await
}

fn mode(r: &Row<'_>, at: usize) -> Result<Mode> {
    Mode::from_code(r.small(at)?).ok_or_else(|| Error::corrupt("unknown mode"))
}

fn endpoint(r: &Row<'_>, sealer: &Sealer) -> Result<Endpoint> {
    let id = r.small(0)?;
    let secret = |sealed: String| {
        let text = sealer.open(place(&id), &sealed)?;
        Secret::parse(&text).ok_or_else(|| Error::corrupt("bad secret"))
    };
    let old_secret = match (r.opt_text(6)?, r.opt_time(7)?) {
        (Some(text), Some(until)) => Some((secret(text)?, until)),
        _ => None,
    };
    let off = match (r.opt_time(12)?, r.opt_small(13)?) {
        (Some(since), Some(code)) => {
            let reason = OffReason::from_code(code);
            Some((since, reason.ok_or_else(|| Error::corrupt("unknown reason"))?))
        }
        _ => None,
    };
    Ok(Endpoint {
        id: EndpointId(id),
        account: AccountId(r.int(1)?),
        mode: mode(r, 2)?,
        url: r.text(3)?,
        kinds: Kinds::from_bits(r.small(4)?),
        secret: secret(r.text(5)?)?,
        old_secret,
        local: r.int(8)? != 0,
        created_at: r.time(9)?,
        expires_at: r.opt_time(10)?,
        failing_since: r.opt_time(11)?,
        off,
    })
}
