//! Inbound messages.

use crate::db::Conn;
use crate::db::bulk::{Bulk, Rows};
use crate::db::field::Field;
use crate::db::record::{Record, columns, record};
use crate::db::row;
use crate::db::table::{Sql, Table, names};
use crate::error::StoreResult;
use heliograph_domain::account::Mode;
use heliograph_domain::id::{AccountId, InboundId};
use heliograph_domain::inbound_message::InboundMessage;
use std::sync::LazyLock;

/// The account of messages to numbers that no account owns.
pub const UNASSIGNED: AccountId = AccountId(0);

record! {
    for InboundMessage {
        account, id, mode, carrier, from => sender, to => recipient, text, received_at, in_reply_to, keyword, complete,
    }
}

const INBOUND: Table =
    Table { name: "inbound_messages", key: columns!(InboundMessage: account, id) };

static INSERT: LazyLock<Bulk> = LazyLock::new(|| INBOUND.insert(InboundMessage::COLUMNS, &[], ""));

/// Stores messages.
pub async fn insert(tx: &mut Conn, all: &[&InboundMessage]) -> StoreResult<()> {
    tx.pipeline(&INSERT, &Rows::of(all.iter().copied())).await
}

static GET_MANY: LazyLock<Bulk> = LazyLock::new(|| INBOUND.select(InboundMessage::COLUMNS));

/// Returns these messages, in any order. Messages that do not exist are left out.
pub async fn get_many(
    conn: &mut Conn,
    keys: &[(AccountId, InboundId)],
) -> StoreResult<Vec<InboundMessage>> {
    let rows = keys.iter().map(|(account, id)| [account.value(), id.value()]);
    conn.bulk_query(&GET_MANY, &rows.collect(), row::record).await
}

static LIST: Sql = Sql::new(|| {
    format!(
        "SELECT {} FROM inbound_messages WHERE account = $1 AND mode = $2 AND id < $3 ORDER BY id DESC LIMIT $4",
        names(InboundMessage::COLUMNS)
    )
});

/// Returns up to `limit` messages of an account in one mode before `before`, newest first.
pub async fn list(
    conn: &mut Conn,
    (account, mode): (AccountId, Mode),
    before: InboundId,
    limit: i64,
) -> StoreResult<Vec<InboundMessage>> {
    let params = [account.value(), mode.value(), before.value(), limit.into()];
    conn.query(&LIST, &params, row::record).await
}

/// Reads the newest 10,000 messages of a source and returns those of one mode.
fn newest_of(source: &str) -> String {
    format!(
        "SELECT {} FROM (SELECT * FROM inbound_messages {source} ORDER BY id DESC LIMIT 10000) AS newest
         WHERE mode = $2 LIMIT $3",
        names(InboundMessage::COLUMNS)
    )
}

static NEWEST: Sql = Sql::new(|| newest_of("WHERE account = $1"));
static NEWEST_TEST: Sql = Sql::new(|| newest_of("WHERE account = $1 AND mode = 1"));
static NEWEST_TEST_SQLITE: Sql =
    Sql::new(|| newest_of("INDEXED BY inbound_messages_test WHERE account = $1 AND mode = 1"));

/// Returns the newest `limit` messages of an account in one mode, newest first, among the newest
/// 10,000 of both modes. Test messages have an index of their own, because they may be few among
/// many live ones.
pub async fn newest(
    conn: &mut Conn,
    (account, mode): (AccountId, Mode),
    limit: i64,
) -> StoreResult<Vec<InboundMessage>> {
    let test = conn.pick(&NEWEST_TEST_SQLITE, &NEWEST_TEST);
    let sql = if mode == Mode::Test { test } else { &NEWEST };
    let params = [account.value(), mode.value(), limit.into()];
    let mut all: Vec<InboundMessage> = conn.query(sql, &params, row::record).await?;
    all.sort_unstable_by_key(|m| std::cmp::Reverse(m.id));
    Ok(all)
}

/// Returns the messages of one sender. `hint` names the index for SQLite.
fn of_sender(hint: &str) -> String {
    format!(
        "SELECT {} FROM inbound_messages {hint}
         WHERE account = $1 AND sender = $2 AND id < $3 AND mode = $4 ORDER BY id DESC LIMIT $5",
        names(InboundMessage::COLUMNS)
    )
}

static LIST_FOR_SENDER: Sql = Sql::new(|| of_sender(""));
/// Without the hint SQLite reads all messages of the account, because those are ordered by id too.
static LIST_FOR_SENDER_SQLITE: Sql = Sql::new(|| of_sender("INDEXED BY inbound_messages_sender"));

/// Returns up to `limit` messages of one sender to an account in one mode before `before`, newest
/// first.
pub async fn list_for_sender(
    conn: &mut Conn,
    (account, mode): (AccountId, Mode),
    sender: &str,
    (before, limit): (InboundId, i64),
) -> StoreResult<Vec<InboundMessage>> {
    let sql = conn.pick(&LIST_FOR_SENDER_SQLITE, &LIST_FOR_SENDER);
    let params = [account.value(), sender.into(), before.value(), mode.value(), limit.into()];
    conn.query(sql, &params, row::record).await
}

static UNASSIGNED_WITH_KEYWORD: Sql = Sql::new(|| {
    format!(
        "SELECT {} FROM inbound_messages
         WHERE account = $1 AND recipient = $2 AND id > $3 AND keyword IS NOT NULL ORDER BY id LIMIT $4",
        names(InboundMessage::COLUMNS)
    )
});

/// Returns up to `limit` messages with a keyword that were sent to a number before any account
/// owned it, after `after`, oldest first.
pub async fn unassigned_with_keyword(
    conn: &mut Conn,
    number: &str,
    after: InboundId,
    limit: i64,
) -> StoreResult<Vec<InboundMessage>> {
    let params = [UNASSIGNED.0.into(), number.into(), after.value(), limit.into()];
    conn.query(&UNASSIGNED_WITH_KEYWORD, &params, row::record).await
}

/// The messages to a number after which their sender sent no other one to it.
static LAST_OF_SENDERS: Sql = Sql::new(|| {
    format!(
        "SELECT {} FROM inbound_messages m WHERE account = $1 AND recipient = $2
         AND NOT EXISTS (SELECT 1 FROM inbound_messages n WHERE n.account = m.account
           AND n.sender = m.sender AND n.recipient = m.recipient AND n.id > m.id)",
        names(InboundMessage::COLUMNS)
    )
});

/// Returns the last message of each sender to a number that no account owned.
pub async fn last_unassigned(conn: &mut Conn, number: &str) -> StoreResult<Vec<InboundMessage>> {
    conn.query(&LAST_OF_SENDERS, &[UNASSIGNED.0.into(), number.into()], row::record).await
}

/// Gives an account the messages that were sent to its number before it owned it. Returns how many
/// there were.
pub async fn assign_account(tx: &mut Conn, number: &str, account: AccountId) -> StoreResult<u64> {
    let sql = "UPDATE inbound_messages SET account = $1 WHERE account = $2 AND recipient = $3";
    tx.execute(sql, &[account.value(), UNASSIGNED.0.into(), number.into()]).await
}
