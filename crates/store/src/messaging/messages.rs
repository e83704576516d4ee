//! Messages and their state.

mod list;

use crate::db::Conn;
use crate::db::bulk::{Bulk, Rows};
use crate::db::field::Field;
use crate::db::record::{Record, columns, record};
use crate::db::row::{self, Row};
use crate::db::table::{Sql, Table, equals, joined, names, qualified, unnest};
use crate::error::StoreResult;
use heliograph_domain::account::Mode;
use heliograph_domain::id::{AccountId, MessageId, OptoutListId};
use heliograph_domain::message::{Failure, FailureCode, Message, MessageState, MessageStatus};
use heliograph_domain::money::Amount;
use heliograph_domain::phone::Recipient;
use heliograph_domain::time::Timestamp;
pub use list::{MessageFilter, MessagePage, list};
use std::sync::LazyLock;

record! {
    for Message {
        id, account, mode, api_key, sent_by, campaign, recipient, originator, text, reference, encoding, parts,
        part_price, carrier, optout_list, accepted_at, scheduled_for, expires_at,
    }
}

record! {
    /// The columns of `messages` that change: the state, without `parts` and `part_price`, which
    /// are the message's.
    struct StateColumns {
        status: MessageStatus,
        parts_accepted: u16,
        parts_delivered: u16,
        reserved: Amount,
        captured: Amount,
        failure: Option<FailureCode>,
        carrier_code: Option<String>,
        sent_at: Option<Timestamp>,
        done_at: Option<Timestamp>,
        flags: i16,
    }
}

const MESSAGES: Table = Table { name: "messages", key: columns!(Message: account, id) };

const IN_DOUBT: i16 = 1;
const POSSIBLE_DUPLICATE: i16 = 2;
const LATE_RECEIPT: i16 = 4;

impl StateColumns {
    fn new(state: &MessageState) -> Self {
        let failure = state.failure.as_ref();
        let bit = |on, bit| if on { bit } else { 0 };
        Self {
            status: state.status,
            parts_accepted: state.parts_accepted,
            parts_delivered: state.parts_delivered,
            reserved: state.reserved,
            captured: state.captured,
            failure: failure.map(|f| f.code),
            carrier_code: failure.and_then(|f| f.carrier_code.clone()),
            sent_at: state.sent_at,
            done_at: state.done_at,
            flags: bit(state.in_doubt, IN_DOUBT)
                | bit(state.possible_duplicate, POSSIBLE_DUPLICATE)
                | bit(state.late_receipt, LATE_RECEIPT),
        }
    }

    fn into_state(self, parts: u16, part_price: Amount) -> MessageState {
        let carrier_code = self.carrier_code;
        MessageState {
            status: self.status,
            parts,
            parts_accepted: self.parts_accepted,
            parts_delivered: self.parts_delivered,
            part_price,
            reserved: self.reserved,
            captured: self.captured,
            failure: self.failure.map(|code| Failure { code, carrier_code }),
            sent_at: self.sent_at,
            done_at: self.done_at,
            in_doubt: self.flags & IN_DOUBT != 0,
            possible_duplicate: self.flags & POSSIBLE_DUPLICATE != 0,
            late_receipt: self.flags & LATE_RECEIPT != 0,
        }
    }
}

/// The column list of a message with its state, as [`message_and_state`] reads it.
fn all_columns() -> String {
    names(&[Message::COLUMNS, StateColumns::COLUMNS].concat())
}

fn message_and_state(r: &mut Row<'_>) -> StoreResult<(Message, MessageState)> {
    let message: Message = r.record()?;
    let state: StateColumns = r.record()?;
    let state = state.into_state(message.parts, message.part_price);
    Ok((message, state))
}

static INSERT: LazyLock<Bulk> = LazyLock::new(|| {
    let columns = [Message::COLUMNS, columns!(StateColumns: reserved)].concat();
    let zero =
        ["status", "parts_accepted", "parts_delivered", "captured", "flags"].map(|c| (c, "0"));
    MESSAGES.insert(&columns, &zero, "")
});

/// Stores accepted messages: QUEUED, with their price reserved.
pub async fn insert(tx: &mut Conn, messages: &[&Message]) -> StoreResult<()> {
    let rows = Rows::with(Message::COLUMNS.len() + 1, messages.iter(), |values, m| {
        m.push(values);
        values.push(m.price().0.into());
    });
    tx.pipeline(&INSERT, &rows).await
}

record! {
    /// The columns that do not change and are needed with a locked state.
    struct LockedColumns {
        account: AccountId,
        id: MessageId,
        mode: Mode,
        parts: u16,
        part_price: Amount,
        accepted_at: Timestamp,
    }
}

static LOCK: LazyLock<Bulk> = LazyLock::new(|| {
    let columns = [LockedColumns::COLUMNS, StateColumns::COLUMNS].concat();
    Bulk::new(
        format!(
            "SELECT {}, COALESCE(scheduled_for, accepted_at), 1 FROM messages WHERE {}",
            names(&columns),
            equals(MESSAGES.key)
        ),
        // Rows are locked in the order of their ids, so that two nodes never deadlock.
        format!(
            "SELECT {}, COALESCE(m.scheduled_for, m.accepted_at),
               CASE WHEN EXISTS (SELECT 1 FROM endpoints e WHERE e.account = m.account) THEN 1 ELSE 0 END
             FROM {} JOIN messages m ON {}
             ORDER BY m.id FOR UPDATE OF m",
            qualified("m", &columns),
            unnest("v", MESSAGES.key),
            joined("m", "v", MESSAGES.key)
        ),
    )
});

/// The locked state of a message, with the columns that callers need to apply a change.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct LockedMessage {
    /// The account that sent the message.
    pub account: AccountId,
    /// The message's id.
    pub id: MessageId,
    /// Live or test mode.
    pub mode: Mode,
    /// The time at which the message was accepted.
    pub accepted_at: Timestamp,
    /// The time at which the message was first due.
    pub due_at: Timestamp,
    /// The state.
    pub state: MessageState,
    /// False when the account has no webhook endpoint. SQLite always says true: only on PostgreSQL
    /// does this save a round trip.
    pub has_endpoints: bool,
}

/// Locks the states of these messages until the transaction ends and returns them in any order.
/// Messages that do not exist are left out.
pub async fn lock_states(
    tx: &mut Conn,
    keys: &[(AccountId, MessageId)],
) -> StoreResult<Vec<LockedMessage>> {
    let rows = keys.iter().map(|(account, id)| [account.value(), id.value()]);
    tx.bulk_query(&LOCK, &rows.collect(), |r| {
        let LockedColumns { account, id, mode, parts, part_price, accepted_at } = r.record()?;
        let state = r.record::<StateColumns>()?.into_state(parts, part_price);
        let (due_at, has_endpoints) = (r.get()?, r.get()?);
        Ok(LockedMessage { account, id, mode, accepted_at, due_at, state, has_endpoints })
    })
    .await
}

static GET_MANY: LazyLock<Bulk> =
    LazyLock::new(|| MESSAGES.select(&[Message::COLUMNS, StateColumns::COLUMNS].concat()));

/// Returns these messages with their states, in any order. Messages that do not exist are left out.
pub async fn get_many(
    conn: &mut Conn,
    keys: &[(AccountId, MessageId)],
) -> StoreResult<Vec<(Message, MessageState)>> {
    let rows = keys.iter().map(|(account, id)| [account.value(), id.value()]);
    conn.bulk_query(&GET_MANY, &rows.collect(), message_and_state).await
}

static SAVE: LazyLock<Bulk> = LazyLock::new(|| MESSAGES.update(StateColumns::COLUMNS));

/// Saves states that [`lock_states`] returned and the state machine changed.
pub async fn save_states(
    tx: &mut Conn,
    states: &[(AccountId, MessageId, &MessageState)],
) -> StoreResult<()> {
    let columns: Vec<_> = states.iter().map(|(_, _, state)| StateColumns::new(state)).collect();
    let width = MESSAGES.key.len() + StateColumns::COLUMNS.len();
    let rows =
        Rows::with(width, states.iter().zip(&columns), |values, ((account, id, _), state)| {
            values.extend([account.value(), id.value()]);
            state.push(values);
        });
    tx.pipeline(&SAVE, &rows).await
}

static GET: Sql = Sql::new(|| {
    format!("SELECT {} FROM messages WHERE account = $1 AND id = $2 AND mode = $3", all_columns())
});

/// Returns a message of an account in one mode.
pub async fn get(
    conn: &mut Conn,
    account: AccountId,
    mode: Mode,
    id: MessageId,
) -> StoreResult<Option<(Message, MessageState)>> {
    let params = [account.value(), id.value(), mode.value()];
    conn.query_one(&GET, &params, message_and_state).await
}

/// Returns whether a message exists. Decides the outcome of a commit whose answer was lost.
pub async fn exists(conn: &mut Conn, account: AccountId, id: MessageId) -> StoreResult<bool> {
    let sql = "SELECT 1 FROM messages WHERE account = $1 AND id = $2";
    Ok(conn.query_one(sql, &[account.value(), id.value()], |_| Ok(())).await?.is_some())
}

/// Returns the newest message from this originator to this recipient.
pub async fn latest_between(
    conn: &mut Conn,
    (account, mode): (AccountId, Mode),
    recipient: Recipient,
    originator: &str,
) -> StoreResult<Option<MessageId>> {
    // Without the hint SQLite reads all messages of the account, because those are ordered by id
    // too.
    let sql = conn.pick(
        "SELECT id FROM messages INDEXED BY messages_recipient
            WHERE recipient = $1 AND account = $2 AND mode = $3 AND originator = $4 ORDER BY id DESC LIMIT 1",
        "SELECT id FROM messages
            WHERE recipient = $1 AND account = $2 AND mode = $3 AND originator = $4 ORDER BY id DESC LIMIT 1",
    );
    let params = [recipient.value(), account.value(), mode.value(), originator.into()];
    conn.query_one(sql, &params, row::get).await
}

/// Returns the newest live message from this originator to this recipient, of whichever account.
pub async fn latest_live(
    conn: &mut Conn,
    recipient: Recipient,
    originator: &str,
) -> StoreResult<Option<(AccountId, MessageId)>> {
    let sql = "SELECT account, id FROM messages
        WHERE recipient = $1 AND mode = $2 AND originator = $3 ORDER BY id DESC LIMIT 1";
    let params = [recipient.value(), Mode::Live.value(), originator.into()];
    conn.query_one(sql, &params, |r| Ok((r.get()?, r.get()?))).await
}

static OPTOUT_LIST: Sql = Sql::new(|| MESSAGES.select_one(columns!(Message: optout_list)));

/// Returns the opt-out list that a message enforces.
pub async fn optout_list(
    conn: &mut Conn,
    account: AccountId,
    id: MessageId,
) -> StoreResult<Option<OptoutListId>> {
    let params = [account.value(), id.value()];
    let found = conn.query_one(&OPTOUT_LIST, &params, |r| r.get::<Option<OptoutListId>>()).await?;
    Ok(found.flatten())
}

/// Returns the number of test messages of an account, counted up to `limit`.
pub async fn count_test(conn: &mut Conn, account: AccountId, limit: i64) -> StoreResult<i64> {
    let sql = "SELECT count(*) FROM
        (SELECT 1 FROM messages WHERE account = $1 AND mode = 1 LIMIT $2) counted";
    Ok(conn.query_one(sql, &[account.value(), limit.into()], row::get).await?.unwrap_or(0))
}

/// Deletes up to `limit` messages of an account in one mode that have ended and are older than
/// `before`, the oldest first. Returns their ids and captured amounts.
pub async fn delete_old(
    tx: &mut Conn,
    (account, mode): (AccountId, Mode),
    before: MessageId,
    limit: i64,
) -> StoreResult<Vec<(MessageId, Amount)>> {
    // The modes are literals, because only then the index of test messages can be used.
    let sql = match mode {
        Mode::Live => {
            "DELETE FROM messages WHERE account = $1 AND id IN
                (SELECT id FROM messages WHERE account = $1 AND mode = 0 AND id < $2
                 AND status IN (2, 3, 4) ORDER BY id LIMIT $3)
             RETURNING id, captured"
        }
        Mode::Test => {
            "DELETE FROM messages WHERE account = $1 AND id IN
                (SELECT id FROM messages WHERE account = $1 AND mode = 1 AND id < $2
                 AND status IN (2, 3, 4) ORDER BY id LIMIT $3)
             RETURNING id, captured"
        }
    };
    let params = [account.value(), before.value(), limit.into()];
    tx.query(sql, &params, |r| Ok((r.get()?, r.get()?))).await
}
