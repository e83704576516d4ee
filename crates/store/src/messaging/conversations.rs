//! Conversations: the people who wrote to an account.

use crate::db::Conn;
use crate::db::bulk::{Bulk, Rows};
use crate::db::field::Field;
use crate::db::record::{Record, columns, record};
use crate::db::row;
use crate::db::table::{Sql, Table, names};
use crate::error::StoreResult;
use heliograph_domain::account::Mode;
use heliograph_domain::id::{AccountId, InboundId};
use heliograph_domain::phone::Recipient;
use std::sync::LazyLock;

record! {
    /// A person who wrote to an account.
    #[derive(Clone, Copy, PartialEq, Eq, Debug)]
    pub struct ConversationHead {
        /// The account.
        pub account: AccountId,
        /// Live or test mode.
        pub mode: Mode,
        /// The person's number.
        pub person: Recipient,
        /// The person's newest message.
        pub last_inbound: InboundId,
        /// The newest message that a member has read; the nil id if none.
        pub read_up_to: InboundId,
    }
}

const CONVERSATIONS: Table =
    Table { name: "conversations", key: columns!(ConversationHead: account, mode, person) };

static UPSERT: LazyLock<Bulk> = LazyLock::new(|| {
    CONVERSATIONS.insert(
        ConversationHead::COLUMNS,
        &[],
        "ON CONFLICT (account, mode, person) DO UPDATE SET last_inbound = excluded.last_inbound
         WHERE excluded.last_inbound > conversations.last_inbound",
    )
});

/// Stores the newest messages of these people, each named once. What a member has read stays.
pub async fn upsert(tx: &mut Conn, heads: &[ConversationHead]) -> StoreResult<()> {
    tx.pipeline(&UPSERT, &Rows::of(heads.iter())).await
}

/// A page of conversations: those before a message, with these digits in the number.
#[derive(Clone, Copy, Debug)]
pub struct ConversationPage<'a> {
    /// The page begins below this newest message.
    pub before: InboundId,
    /// Digits that the number contains; empty for all numbers.
    pub digits: &'a str,
    /// The largest number of conversations.
    pub limit: i64,
}

/// Reads the newest 10,000 conversations below `before`, and returns those whose number matches.
static LIST: Sql = Sql::new(|| {
    format!(
        "SELECT {} FROM (
           SELECT * FROM conversations WHERE account = $1 AND mode = $2 AND last_inbound < $3
           ORDER BY last_inbound DESC LIMIT 10000
         ) AS newest
         WHERE CAST(person AS TEXT) LIKE $4 ORDER BY last_inbound DESC LIMIT $5",
        names(ConversationHead::COLUMNS)
    )
});

/// Returns a page of the conversations of an account in one mode, the newest message first.
pub async fn list(
    conn: &mut Conn,
    (account, mode): (AccountId, Mode),
    page: ConversationPage<'_>,
) -> StoreResult<Vec<ConversationHead>> {
    let pattern = format!("%{}%", page.digits);
    let params = [
        account.value(),
        mode.value(),
        page.before.value(),
        pattern.as_str().into(),
        page.limit.into(),
    ];
    conn.query(&LIST, &params, row::record).await
}

/// Returns whether a person wrote after a member had read the conversation.
pub async fn is_unread(
    conn: &mut Conn,
    (account, mode): (AccountId, Mode),
    person: Recipient,
) -> StoreResult<bool> {
    let sql = "SELECT 1 FROM conversations
               WHERE account = $1 AND mode = $2 AND person = $3 AND read_up_to < last_inbound";
    let params = [account.value(), mode.value(), person.value()];
    Ok(conn.query_one(sql, &params, |_| Ok(())).await?.is_some())
}

/// Marks all messages of a person as read.
pub async fn mark_read(
    tx: &mut Conn,
    (account, mode): (AccountId, Mode),
    person: Recipient,
) -> StoreResult<()> {
    let sql = "UPDATE conversations SET read_up_to = last_inbound
               WHERE account = $1 AND mode = $2 AND person = $3";
    tx.execute(sql, &[account.value(), mode.value(), person.value()]).await?;
    Ok(())
}
