//! What was typed on virtual handsets and is still to be handed to the simulated SMSC.

use crate::db::Conn;
use crate::error::Result;
use crate::row::Row;
use heliograph_domain::id::AccountId;
use heliograph_domain::phone::Recipient;
use heliograph_domain::time::Timestamp;
use uuid::Uuid;

/// A text on its way from a handset.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct HandsetReply {
    /// Its id.
    pub id: Uuid,
    /// Whose handset it is.
    pub account: AccountId,
    /// The handset's number.
    pub handset: Recipient,
    /// To whom it writes.
    pub originator: String,
    /// What.
    pub text: String,
    /// When it was typed.
    pub at: Timestamp,
}

/// Keeps a reply; false when it was kept before.
///
/// # Errors
/// As any write.
pub async fn insert(tx: &mut Conn, r: &HandsetReply) -> Result<bool> {
    let sql = "INSERT INTO handset_replies (id, account, handset, originator, text, at)
        VALUES ($1, $2, $3, $4, $5, $6) ON CONFLICT DO NOTHING";
    let params = [
        r.id.into(),
        r.account.0.into(),
        r.handset.into(),
        r.originator.as_str().into(),
        r.text.as_str().into(),
        r.at.into(),
    ];
    Ok(tx.execute(sql, &params).await? > 0)
}

/// Whether nothing waits.
///
/// # Errors
/// As any read.
pub async fn none(conn: &mut Conn) -> Result<bool> {
    let sql = "SELECT at FROM handset_replies LIMIT 1";
    Ok(conn.query_one(sql, &[], |r| r.time(0)).await?.is_none())
}

/// The oldest replies, which stay until [`remove`]; on PostgreSQL no other node gets the same while this transaction
/// lasts.
///
/// # Errors
/// As any read.
pub async fn oldest(tx: &mut Conn, limit: i64) -> Result<Vec<HandsetReply>> {
    let sql = tx.pick(
        "SELECT id, account, handset, originator, text, at FROM handset_replies ORDER BY id LIMIT $1",
        "SELECT id, account, handset, originator, text, at FROM handset_replies ORDER BY id LIMIT $1
         FOR UPDATE SKIP LOCKED",
    );
    tx.query(sql, &[limit.into()], reply).await
}

/// Takes away replies that were handed over.
///
/// # Errors
/// As any write.
pub async fn remove(tx: &mut Conn, ids: &[Uuid]) -> Result<()> {
    for id in ids {
        tx.execute("DELETE FROM handset_replies WHERE id = $1", &[(*id).into()]).await?;
    }
    Ok(())
}

fn reply(r: &Row<'_>) -> Result<HandsetReply> {
    Ok(HandsetReply {
        id: r.uuid(0)?,
        account: AccountId(r.int(1)?),
        handset: Recipient(r.small(2)?),
        originator: r.text(3)?,
        text: r.text(4)?,
        at: r.time(5)?,
    })
}
