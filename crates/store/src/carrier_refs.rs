//! Where a submit response and a receipt meet, whichever comes first.

use crate::bulk::Bulk;
use crate::db::Conn;
use crate::error::{Error, Result};
use crate::row::Row;
use heliograph_domain::id::{AccountId, CarrierId, MessageId, PartKey};
use heliograph_domain::phone::Recipient;
use heliograph_domain::receipt::{Receipt, Verdict};
use heliograph_domain::time::Timestamp;
use std::collections::BTreeMap;

/// A part that a carrier took, under the carrier's name for it.
#[derive(Clone, Debug)]
pub struct Taken {
    /// Who took it.
    pub carrier: CarrierId,
    /// What they call it.
    pub smsc_id: String,
    /// What we call it.
    pub part: PartKey,
    /// Whom it is for: a receipt must speak of the same.
    pub recipient: Recipient,
}

/// A receipt, under the carrier's name for the part.
#[derive(Clone, Debug)]
pub struct Told {
    /// Who says so.
    pub carrier: CarrierId,
    /// Of what.
    pub smsc_id: String,
    /// Of whom.
    pub recipient: Recipient,
    /// What became of it.
    pub verdict: Verdict,
}

const TAKE: Bulk = Bulk {
    each: "INSERT INTO carrier_refs (carrier, smsc_id, account, message, part, recipient, at)
           VALUES ($1, $2, $3, $4, $5, $6, $7)
           ON CONFLICT (carrier, smsc_id) DO UPDATE SET account = excluded.account, message = excluded.message,
             part = excluded.part, recipient = excluded.recipient, at = excluded.at,
             receipt = CASE WHEN carrier_refs.recipient = excluded.recipient THEN carrier_refs.receipt END
           RETURNING carrier, smsc_id, receipt, receipt_code, account, message, part",
    all: "INSERT INTO carrier_refs (carrier, smsc_id, account, message, part, recipient, at)
          SELECT * FROM unnest($1::smallint[], $2::text[], $3::bigint[], $4::uuid[], $5::smallint[], $6::bigint[],
            $7::bigint[])
          ON CONFLICT (carrier, smsc_id) DO UPDATE SET account = excluded.account, message = excluded.message,
            part = excluded.part, recipient = excluded.recipient, at = excluded.at,
            receipt = CASE WHEN carrier_refs.recipient = excluded.recipient THEN carrier_refs.receipt END
          RETURNING carrier, smsc_id, receipt, receipt_code, account, message, part",
};

/// A part whose both halves are known.
#[derive(Clone, Debug)]
pub struct Met {
    /// The carrier's name for it.
    pub smsc_id: String,
    /// Which carrier.
    pub carrier: CarrierId,
    /// Which part.
    pub part: PartKey,
    /// What became of it.
    pub verdict: Verdict,
}

/// Notes parts that were taken; gives back those whose receipt was there already. An id that a
/// carrier uses again names the newer part.
///
/// # Errors
/// As any write.
pub async fn take(tx: &mut Conn, taken: &[Taken], at: Timestamp) -> Result<Vec<Met>> {
    // PostgreSQL takes each id once in a statement, and all nodes in one order never wait in a circle.
    let newest: BTreeMap<_, _> =
        taken.iter().map(|t| ((t.carrier, t.smsc_id.as_str()), t)).collect();
    let rows = newest.values().map(|t| {
        [
            t.carrier.0.into(),
            t.smsc_id.as_str().into(),
            t.part.0.0.into(),
            t.part.1.0.into(),
            i16::from(t.part.2).into(),
            t.recipient.into(),
            at.into(),
        ]
    });
    let rows = rows.collect();
    let found = tx.bulk_query(&TAKE, &rows, |r| {
        let Some(code) = r.opt_small(2)? else { return Ok(None) };
        let verdict = Verdict::from_parts(code, r.opt_text(3)?);
        Ok(Some(Met {
            carrier: CarrierId(r.small(0)?),
            smsc_id: r.text(1)?,
            part: part(r, 4)?,
            verdict: verdict.ok_or_else(|| Error::corrupt("unknown receipt"))?,
        }))
    });
    let met: Vec<Met> = found.await?.into_iter().flatten().collect();
    forget(tx, &met).await?;
    Ok(met)
}

const FORGET: Bulk = Bulk {
    each: "DELETE FROM carrier_refs WHERE carrier = $1 AND smsc_id = $2",
    all:
        "DELETE FROM carrier_refs r USING unnest($1::smallint[], $2::text[]) AS v (carrier, smsc_id)
          WHERE r.carrier = v.carrier AND r.smsc_id = v.smsc_id",
};

async fn forget(tx: &mut Conn, met: &[Met]) -> Result<()> {
    let rows = met.iter().map(|m| [m.carrier.0.into(), m.smsc_id.as_str().into()]);
    tx.bulk_execute(&FORGET, &rows.collect()).await.map(drop)
}

const MATCH: Bulk = Bulk {
    each: "DELETE FROM carrier_refs
           WHERE carrier = $1 AND smsc_id = $2 AND recipient = $3 AND message IS NOT NULL
           RETURNING carrier, smsc_id, account, message, part",
    all: "DELETE FROM carrier_refs r
          USING unnest($1::smallint[], $2::text[], $3::bigint[]) AS v (carrier, smsc_id, recipient)
          WHERE r.carrier = v.carrier AND r.smsc_id = v.smsc_id AND r.recipient = v.recipient
            AND r.message IS NOT NULL
          RETURNING r.carrier, r.smsc_id, r.account, r.message, r.part",
};

/// Takes out the parts that these (carrier, id, recipient) name; those without a part are left out.
///
/// # Errors
/// As any write.
pub async fn matching(
    tx: &mut Conn,
    names: &[(CarrierId, &str, Recipient)],
) -> Result<Vec<(CarrierId, String, PartKey)>> {
    let rows = names.iter().map(|(c, id, to)| [c.0.into(), (*id).into(), (*to).into()]);
    tx.bulk_query(&MATCH, &rows.collect(), |r| {
        Ok((CarrierId(r.small(0)?), r.text(1)?, part(r, 2)?))
    })
    .await
}

const TELL: Bulk = Bulk {
    each: "INSERT INTO carrier_refs (carrier, smsc_id, recipient, receipt, receipt_code, at)
           VALUES ($1, $2, $3, $4, $5, $6)
           ON CONFLICT (carrier, smsc_id) DO UPDATE SET receipt = excluded.receipt,
             receipt_code = excluded.receipt_code
           WHERE carrier_refs.recipient = excluded.recipient
           RETURNING carrier, smsc_id, receipt, receipt_code, account, message, part",
    all: "INSERT INTO carrier_refs (carrier, smsc_id, recipient, receipt, receipt_code, at)
          SELECT DISTINCT ON (carrier, smsc_id) * FROM unnest($1::smallint[], $2::text[], $3::bigint[], $4::smallint[],
            $5::text[], $6::bigint[]) AS v (carrier, smsc_id, recipient, receipt, receipt_code, at)
          ON CONFLICT (carrier, smsc_id) DO UPDATE SET receipt = excluded.receipt,
            receipt_code = excluded.receipt_code
          WHERE carrier_refs.recipient = excluded.recipient
          RETURNING carrier, smsc_id, receipt, receipt_code, account, message, part",
};

/// Keeps receipts whose part is not known yet; gives back those whose part another node has noted
/// since it was looked for.
///
/// # Errors
/// As any write.
pub async fn tell(tx: &mut Conn, told: &[Told], at: Timestamp) -> Result<Vec<Met>> {
    let rows = told.iter().map(|t| {
        let (code, carrier_code) = t.verdict.to_parts();
        [
            t.carrier.0.into(),
            t.smsc_id.as_str().into(),
            t.recipient.into(),
            code.into(),
            carrier_code.into(),
            at.into(),
        ]
    });
    let rows = rows.collect();
    let found = tx.bulk_query(&TELL, &rows, |r| {
        if r.opt_uuid(5)?.is_none() {
            return Ok(None);
        }
        let verdict = Verdict::from_parts(r.small(2)?, r.opt_text(3)?);
        Ok(Some(Met {
            carrier: CarrierId(r.small(0)?),
            smsc_id: r.text(1)?,
            part: part(r, 4)?,
            verdict: verdict.ok_or_else(|| Error::corrupt("unknown receipt"))?,
        }))
    });
    let met: Vec<Met> = found.await?.into_iter().flatten().collect();
    forget(tx, &met).await?;
    Ok(met)
}

/// Names parts that were taken before `before` and whose message expired before it too: their receipt
/// will not come any more. At most `limit`.
///
/// # Errors
/// As any read.
pub async fn overdue(
    conn: &mut Conn,
    before: Timestamp,
    limit: i64,
) -> Result<Vec<(CarrierId, String, Recipient)>> {
    let sql = "SELECT r.carrier, r.smsc_id, r.recipient FROM carrier_refs r CROSS JOIN messages m
        WHERE r.at < $1 AND m.account = r.account AND m.id = r.message AND m.expires_at < $1 LIMIT $2";
    conn.query(sql, &[before.into(), limit.into()], |r| {
        Ok((CarrierId(r.small(0)?), r.text(1)?, Recipient(r.small(2)?)))
    })
    .await
}

/// Receipts that came from `since` on and still look for their part, the oldest first; at most `limit`.
///
/// # Errors
/// As any read.
pub async fn early(
    conn: &mut Conn,
    since: Timestamp,
    limit: i64,
) -> Result<Vec<(CarrierId, Receipt)>> {
    let sql = "SELECT carrier, smsc_id, recipient, receipt, receipt_code FROM carrier_refs
        WHERE message IS NULL AND at >= $1 ORDER BY at LIMIT $2";
    conn.query(sql, &[since.into(), limit.into()], |r| {
        let verdict = Verdict::from_parts(r.small(3)?, r.opt_text(4)?);
        let verdict = verdict.ok_or_else(|| Error::corrupt("unknown receipt"))?;
        let receipt = Receipt { smsc_id: r.text(1)?, recipient: Recipient(r.small(2)?), verdict };
        Ok((CarrierId(r.small(0)?), receipt))
    })
    .await
}

/// Drops receipts that came before `before` and never found their part; how many.
///
/// # Errors
/// As any write.
pub async fn drop_early(tx: &mut Conn, before: Timestamp) -> Result<u64> {
    tx.execute("DELETE FROM carrier_refs WHERE message IS NULL AND at < $1", &[before.into()]).await
}

fn part(r: &Row<'_>, at: usize) -> Result<PartKey> {
    Ok((AccountId(r.int(at)?), MessageId(r.uuid(at + 1)?), r.small(at + 2)?))
}
