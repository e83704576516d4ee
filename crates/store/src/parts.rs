//! Parts of messages that have several: which the carrier took, and which arrived.

use crate::bulk::Bulk;
use crate::db::Conn;
use crate::error::Result;
use crate::row::Row;
use heliograph_domain::id::{AccountId, MessageId, PartKey};

const TAKEN: Bulk = Bulk {
    each: "INSERT INTO parts (account, message, part, delivered) VALUES ($1, $2, $3, 0)
           ON CONFLICT DO NOTHING RETURNING account, message, part",
    all: "INSERT INTO parts (account, message, part, delivered)
          SELECT *, 0 FROM unnest($1::bigint[], $2::uuid[], $3::smallint[])
          ON CONFLICT DO NOTHING RETURNING account, message, part",
};

/// Notes parts that a carrier took; gives back those that were not noted before.
///
/// # Errors
/// As any write.
pub async fn taken(tx: &mut Conn, parts: &[PartKey]) -> Result<Vec<PartKey>> {
    let rows = parts.iter().map(|(a, m, p)| [a.0.into(), m.0.into(), i16::from(*p).into()]);
    tx.bulk_query(&TAKEN, &rows.collect(), key).await
}

const DELIVERED: Bulk = Bulk {
    each: "UPDATE parts SET delivered = 1 WHERE account = $1 AND message = $2 AND part = $3 AND delivered = 0
           RETURNING account, message, part",
    all: "UPDATE parts p SET delivered = 1
          FROM unnest($1::bigint[], $2::uuid[], $3::smallint[]) AS v (account, message, part)
          WHERE p.account = v.account AND p.message = v.message AND p.part = v.part AND p.delivered = 0
          RETURNING p.account, p.message, p.part",
};

/// Notes parts that arrived; gives back those that were not noted before.
///
/// # Errors
/// As any write.
pub async fn delivered(tx: &mut Conn, parts: &[PartKey]) -> Result<Vec<PartKey>> {
    let rows = parts.iter().map(|(a, m, p)| [a.0.into(), m.0.into(), i16::from(*p).into()]);
    tx.bulk_query(&DELIVERED, &rows.collect(), key).await
}

const OF: Bulk = Bulk {
    each: "SELECT account, message, part FROM parts WHERE account = $1 AND message = $2",
    all: "SELECT p.account, p.message, p.part FROM unnest($1::bigint[], $2::uuid[]) AS v (account, message)
          JOIN parts p ON p.account = v.account AND p.message = v.message",
};

/// The parts of these messages that the carrier has taken.
///
/// # Errors
/// As any read.
pub async fn of(conn: &mut Conn, messages: &[(AccountId, MessageId)]) -> Result<Vec<PartKey>> {
    let rows = messages.iter().map(|(a, m)| [a.0.into(), m.0.into()]);
    conn.bulk_query(&OF, &rows.collect(), key).await
}

/// The parts of a message that the carrier has taken, counted from 1, each with whether it arrived.
///
/// # Errors
/// As any read.
pub async fn standing(
    conn: &mut Conn,
    account: AccountId,
    message: MessageId,
) -> Result<Vec<(i16, bool)>> {
    let sql = "SELECT part, delivered FROM parts WHERE account = $1 AND message = $2 ORDER BY part";
    let read = |r: &Row<'_>| Ok((r.small(0)?, r.int(1)? != 0));
    conn.query(sql, &[account.0.into(), message.0.into()], read).await
}

fn key(r: &Row<'_>) -> Result<PartKey> {
    Ok((AccountId(r.int(0)?), MessageId(r.uuid(1)?), r.small(2)?))
}
