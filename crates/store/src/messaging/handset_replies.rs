//! Replies that were typed on virtual handsets and wait for the simulated SMSC.

use crate::db::Conn;
use crate::db::bulk::{Bulk, Rows};
use crate::db::field::Field;
use crate::db::record::{Record, columns, record};
use crate::db::row;
use crate::db::table::{Sql, Table, names};
use crate::error::StoreResult;
use heliograph_domain::id::AccountId;
use heliograph_domain::phone::Recipient;
use heliograph_domain::time::Timestamp;
use std::sync::LazyLock;
use uuid::Uuid;

record! {
    /// A reply from a virtual handset.
    #[derive(Clone, PartialEq, Eq, Debug)]
    pub struct HandsetReply {
        /// The id.
        pub id: Uuid,
        /// The account whose handset it is.
        pub account: AccountId,
        /// The handset's number.
        pub handset: Recipient,
        /// The originator that the reply goes to.
        pub originator: String,
        /// The text.
        pub text: String,
        /// The time at which the reply was typed.
        pub at: Timestamp,
    }
}

const REPLIES: Table = Table { name: "handset_replies", key: columns!(HandsetReply: id) };

static INSERT: LazyLock<Bulk> =
    LazyLock::new(|| REPLIES.insert(HandsetReply::COLUMNS, &[], "ON CONFLICT DO NOTHING"));

/// Stores a reply. False when it was stored before.
pub async fn insert(tx: &mut Conn, reply: &HandsetReply) -> StoreResult<bool> {
    Ok(tx.bulk_execute(&INSERT, &Rows::of(std::iter::once(reply))).await? > 0)
}

/// Returns whether no reply waits.
pub async fn is_empty(conn: &mut Conn) -> StoreResult<bool> {
    let sql = "SELECT 1 FROM handset_replies LIMIT 1";
    Ok(conn.query_one(sql, &[], |_| Ok(())).await?.is_none())
}

static OLDEST: Sql = Sql::new(|| {
    format!("SELECT {} FROM handset_replies ORDER BY id LIMIT $1", names(HandsetReply::COLUMNS))
});

static OLDEST_POSTGRES: Sql = Sql::new(|| format!("{} FOR UPDATE SKIP LOCKED", *OLDEST));

/// Returns the oldest replies, which stay until [`delete`]. On PostgreSQL no other node gets the
/// same ones during this transaction.
pub async fn oldest(tx: &mut Conn, limit: i64) -> StoreResult<Vec<HandsetReply>> {
    let sql = tx.pick(&OLDEST, &OLDEST_POSTGRES);
    tx.query(sql, &[limit.into()], row::record).await
}

/// Deletes replies that were handed over.
pub async fn delete(tx: &mut Conn, ids: &[Uuid]) -> StoreResult<()> {
    for id in ids {
        tx.execute("DELETE FROM handset_replies WHERE id = $1", &[id.value()]).await?;
    }
    Ok(())
}
