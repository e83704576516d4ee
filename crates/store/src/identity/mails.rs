//! The outbox of email. The content is sealed, because it may contain a magic link.

use crate::db::Conn;
use crate::db::field::Field;
use crate::db::record::{Record, columns, record};
use crate::db::sealing::Place;
use crate::db::table::{Sql, Table, names};
use crate::error::StoreResult;
use heliograph_domain::time::Timestamp;
use uuid::Uuid;

record! {
    /// An email that has not been sent yet.
    #[derive(Clone, PartialEq, Eq)]
    pub struct OutgoingMail {
        /// The id, which begins with the time at which the email was queued.
        pub id: Uuid,
        /// The recipient's email address.
        pub recipient: String,
        /// The content.
        pub content: String,
        /// The number of tries so far.
        pub tries: i16,
    }
}

record! {
    /// The columns of `mails` that are set when an email is queued. The content is sealed.
    struct MailRow {
        id: Uuid,
        recipient: String,
        content: String,
        due_at: Timestamp,
    }
}

const MAILS: Table = Table { name: "mails", key: columns!(MailRow: id) };

static INSERT: Sql = Sql::new(|| MAILS.insert_one(MailRow::COLUMNS, &[("tries", "0")], ""));

/// Queues an email.
pub async fn insert(
    tx: &mut Conn,
    id: Uuid,
    (recipient, content): (&str, &str),
    due_at: Timestamp,
) -> StoreResult<()> {
    let sealed = tx.sealer()?.seal(Place("mails", &id), content)?;
    let row = MailRow { id, recipient: recipient.to_owned(), content: sealed, due_at };
    tx.execute(&INSERT, &row.values()).await.map(drop)
}

/// Returns whether an email is due.
pub async fn any_due(conn: &mut Conn, now: Timestamp) -> StoreResult<bool> {
    let sql = "SELECT 1 FROM mails WHERE due_at <= $1 LIMIT 1";
    Ok(conn.query_one(sql, &[now.value()], |_| Ok(())).await?.is_some())
}

static CLAIM: Sql = Sql::new(|| {
    format!(
        "UPDATE mails SET due_at = $2, tries = tries + 1
         WHERE id IN (SELECT id FROM mails WHERE due_at <= $1 ORDER BY id LIMIT $3) RETURNING {}",
        names(OutgoingMail::COLUMNS)
    )
});

static CLAIM_POSTGRES: Sql = Sql::new(|| {
    format!(
        "UPDATE mails SET due_at = $2, tries = tries + 1
         WHERE id = ANY (ARRAY(SELECT id FROM mails WHERE due_at <= $1 ORDER BY id LIMIT $3 FOR UPDATE SKIP LOCKED))
         RETURNING {}",
        names(OutgoingMail::COLUMNS)
    )
});

/// Claims up to `limit` emails that are due. No other node claims them before `again`.
pub async fn claim(
    tx: &mut Conn,
    (now, again): (Timestamp, Timestamp),
    limit: i64,
) -> StoreResult<Vec<OutgoingMail>> {
    let sql = tx.pick(&CLAIM, &CLAIM_POSTGRES);
    let sealer = tx.sealer()?;
    tx.query(sql, &[now.value(), again.value(), limit.into()], |r| {
        let mail: OutgoingMail = r.record()?;
        let content = sealer.open(Place("mails", &mail.id), &mail.content)?;
        Ok(OutgoingMail { content, ..mail })
    })
    .await
}

static SET_DUE: Sql = Sql::new(|| MAILS.update_one(columns!(MailRow: due_at)));

/// Defers an email to `due_at`.
pub async fn postpone(tx: &mut Conn, id: Uuid, due_at: Timestamp) -> StoreResult<()> {
    tx.execute(&SET_DUE, &[id.value(), due_at.value()]).await.map(drop)
}

static DELETE: Sql = Sql::new(|| MAILS.delete_one());

/// Deletes an email that was sent or never will be.
pub async fn delete(tx: &mut Conn, id: Uuid) -> StoreResult<()> {
    tx.execute(&DELETE, &[id.value()]).await.map(drop)
}
