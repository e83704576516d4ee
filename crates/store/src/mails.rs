//! Mail on its way out: what it says is sealed, since it may hold a link that lets somebody in.

use crate::db::Conn;
use crate::error::Result;
use crate::row::Row;
use crate::sealing::{Place, Sealer};
use heliograph_domain::time::Timestamp;
use uuid::Uuid;

/// A mail that has not gone out yet.
#[derive(Clone, PartialEq, Eq)]
pub struct Mail {
    /// Its id, which tells when it was written.
    pub id: Uuid,
    /// To whom.
    pub recipient: String,
    /// What it says.
    pub content: String,
    /// How often it was tried.
    pub tries: i16,
}

/// Puts a mail into the outbox.
///
/// # Errors
/// As any write.
pub async fn insert(
    tx: &mut Conn,
    id: Uuid,
    (recipient, content): (&str, &str),
    due_at: Timestamp,
) -> Result<()> {
    let sealed = tx.sealer()?.seal(Place("mails", &id), content)?;
    let sql =
        "INSERT INTO mails (id, recipient, content, due_at, tries) VALUES ($1, $2, $3, $4, 0)";
    let params = [id.into(), recipient.into(), sealed.as_str().into(), due_at.into()];
    tx.execute(sql, &params).await.map(drop)
}

/// Whether a mail is due.
///
/// # Errors
/// As any read.
pub async fn any_due(conn: &mut Conn, now: Timestamp) -> Result<bool> {
    let sql = "SELECT 1 FROM mails WHERE due_at <= $1 LIMIT 1";
    Ok(conn.query_one(sql, &[now.into()], |_| Ok(())).await?.is_some())
}

/// Takes mails that are due, at most `limit`: no other node does before `again`.
///
/// # Errors
/// As any write.
pub async fn claim(
    tx: &mut Conn,
    (now, again): (Timestamp, Timestamp),
    limit: i64,
) -> Result<Vec<Mail>> {
    let sql = tx.pick(
        "UPDATE mails SET due_at = $2, tries = tries + 1
         WHERE id IN (SELECT id FROM mails WHERE due_at <= $1 ORDER BY id LIMIT $3)
         RETURNING id, recipient, content, tries",
        "UPDATE mails SET due_at = $2, tries = tries + 1
         WHERE id = ANY (ARRAY(SELECT id FROM mails WHERE due_at <= $1 ORDER BY id LIMIT $3 FOR UPDATE SKIP LOCKED))
         RETURNING id, recipient, content, tries",
    );
    let sealer = tx.sealer()?;
    tx.query(sql, &[now.into(), again.into(), limit.into()], |r| mail(r, &sealer)).await
}

/// Lets a mail lie until `due_at`.
///
/// # Errors
/// As any write.
pub async fn postpone(tx: &mut Conn, id: Uuid, due_at: Timestamp) -> Result<()> {
    let sql = "UPDATE mails SET due_at = $2 WHERE id = $1";
    tx.execute(sql, &[id.into(), due_at.into()]).await.map(drop)
}

/// Takes a mail out: it has gone, or never will.
///
/// # Errors
/// As any write.
pub async fn remove(tx: &mut Conn, id: Uuid) -> Result<()> {
    tx.execute("DELETE FROM mails WHERE id = $1", &[id.into()]).await.map(drop)
}

fn mail(r: &Row<'_>, sealer: &Sealer) -> Result<Mail> {
    let id = r.uuid(0)?;
    let content = sealer.open(Place("mails", &id), &r.text(2)?)?;
    Ok(Mail { id, recipient: r.text(1)?, content, tries: r.small(3)? })
}
