//! Messages: what was accepted, and where each stands.

mod list;

use crate::bulk::Bulk;
use crate::db::Conn;
use crate::error::{Error, Result};
use crate::row::{self, Row};
use heliograph_domain::account::Mode;
use heliograph_domain::id::{AccountId, MessageId, OptoutListId};
use heliograph_domain::message::{Failure, FailureCode, Message, State, Status};
use heliograph_domain::money::Amount;
use heliograph_domain::phone::{CountryCode, Recipient};
use heliograph_domain::time::Timestamp;
pub use list::{Filter, Page, list};

const IN_DOUBT: i64 = 1;
const POSSIBLE_DUPLICATE: i64 = 2;
const LATE_RECEIPT: i64 = 4;

const INSERT: Bulk = Bulk {
    each: "INSERT INTO messages (account, id, mode, api_key, campaign, recipient, country, originator, text,
             reference, encoding, parts, part_price, carrier, optout_list, accepted_at, scheduled_for, expires_at,
             reserved, status, parts_accepted, parts_delivered, captured, flags)
           VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19, 0, 0, 0, 0, 0)",
    all: "INSERT INTO messages (account, id, mode, api_key, campaign, recipient, country, originator, text,
             reference, encoding, parts, part_price, carrier, optout_list, accepted_at, scheduled_for, expires_at,
             reserved, status, parts_accepted, parts_delivered, captured, flags)
          SELECT *, 0, 0, 0, 0, 0 FROM unnest($1::bigint[], $2::uuid[], $3::smallint[], $4::uuid[], $5::uuid[],
             $6::bigint[], $7::text[], $8::text[], $9::text[], $10::text[], $11::smallint[], $12::smallint[],
             $13::bigint[], $14::smallint[], $15::uuid[], $16::bigint[], $17::bigint[], $18::bigint[], $19::bigint[])",
};

/// Stores messages as they were accepted: QUEUED, their price reserved.
///
/// # Errors
/// As any write.
pub async fn insert(tx: &mut Conn, messages: &[&Message]) -> Result<()> {
    let rows = messages.iter().map(|m| {
        [
            m.account.0.into(),
            m.id.0.into(),
            m.mode.code().into(),
            m.api_key.map(|k| k.0).into(),
            m.campaign.into(),
            m.recipient.into(),
            m.country.as_ref().map(CountryCode::as_str).into(),
            m.originator.as_str().into(),
            m.text.as_str().into(),
            m.reference.as_deref().into(),
            m.encoding.code().into(),
            m.parts.into(),
            m.part_price.0.into(),
            m.carrier.0.into(),
            m.optout_list.into(),
            m.accepted_at.into(),
            m.scheduled_for.into(),
            m.expires_at.into(),
            m.price().0.into(),
        ]
    });
    tx.bulk_ahead(&INSERT, &rows.collect()).await
}

const STATE: Bulk = Bulk {
    each: "SELECT account, id, status, parts, parts_accepted, parts_delivered, part_price, reserved, captured,
             failure, carrier_code, sent_at, done_at, flags, mode, COALESCE(scheduled_for, accepted_at), 1
           FROM messages WHERE account = $1 AND id = $2",
    // Locked in the order of their ids, so that two nodes never wait for each other.
    all: "SELECT m.account, m.id, m.status, m.parts, m.parts_accepted, m.parts_delivered, m.part_price, m.reserved,
             m.captured, m.failure, m.carrier_code, m.sent_at, m.done_at, m.flags, m.mode,
             COALESCE(m.scheduled_for, m.accepted_at),
             CASE WHEN EXISTS (SELECT 1 FROM endpoints e WHERE e.account = m.account) THEN 1 ELSE 0 END
          FROM unnest($1::bigint[], $2::uuid[]) AS v (account, id)
          JOIN messages m ON m.account = v.account AND m.id = v.id
          ORDER BY m.id FOR UPDATE OF m",
};

/// A message's state, locked, and what is known of the message where that is written.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Locked {
    /// Whose it is.
    pub account: AccountId,
    /// Which it is.
    pub id: MessageId,
    /// In which world.
    pub mode: Mode,
    /// When it was to be sent first.
    pub due_at: Timestamp,
    /// Where it stands.
    pub state: State,
    /// False where nobody listens to what happens to the account; a round trip more is worth asking for that only on
    /// PostgreSQL.
    pub heard: bool,
}

/// The states of these messages, locked until the transaction ends; in any order, without those
/// that do not exist.
///
/// # Errors
/// As any read.
pub async fn lock_states(tx: &mut Conn, keys: &[(AccountId, MessageId)]) -> Result<Vec<Locked>> {
    let rows = keys.iter().map(|(account, id)| [account.0.into(), id.0.into()]);
    tx.bulk_query(&STATE, &rows.collect(), |r| {
        Ok(Locked {
            account: AccountId(r.int(0)?),
            id: MessageId(r.uuid(1)?),
            mode: row::mode(r, 14)?,
            due_at: r.time(15)?,
            state: state(r, 2)?,
            heard: r.int(16)? != 0,
        })
    })
    .await
}

const WHOLE: Bulk = Bulk {
    each: "SELECT id, account, mode, api_key, campaign, recipient, country, originator, text, reference,
             encoding, parts, part_price, carrier, optout_list, accepted_at, scheduled_for, expires_at,
             status, parts, parts_accepted, parts_delivered, part_price, reserved, captured, failure, carrier_code,
             sent_at, done_at, flags
           FROM messages WHERE account = $1 AND id = $2",
    all: "SELECT m.id, m.account, m.mode, m.api_key, m.campaign, m.recipient, m.country, m.originator, m.text,
             m.reference, m.encoding, m.parts, m.part_price, m.carrier, m.optout_list, m.accepted_at, m.scheduled_for,
             m.expires_at, m.status, m.parts, m.parts_accepted, m.parts_delivered, m.part_price, m.reserved,
             m.captured, m.failure, m.carrier_code, m.sent_at, m.done_at, m.flags
          FROM unnest($1::bigint[], $2::uuid[]) AS v (account, id)
          JOIN messages m ON m.account = v.account AND m.id = v.id
          ORDER BY m.id",
};

/// These messages as a whole; in any order, without those that do not exist.
///
/// # Errors
/// As any read.
pub async fn whole(
    conn: &mut Conn,
    keys: &[(AccountId, MessageId)],
) -> Result<Vec<(Message, State)>> {
    let rows = keys.iter().map(|(account, id)| [account.0.into(), id.0.into()]);
    conn.bulk_query(&WHOLE, &rows.collect(), |r| Ok((row::message(r, 0)?, state(r, 18)?))).await
}

/// Reads the twelve columns of a state from column `at` on.
fn state(r: &Row<'_>, at: usize) -> Result<State> {
    let flags = r.int(at + 11)?;
    let failure = match r.opt_small(at + 7)? {
        None => None,
        Some(code) => Some(Failure {
            code: FailureCode::from_code(code).ok_or_else(|| Error::corrupt("unknown failure"))?,
            carrier_code: r.opt_text(at + 8)?,
        }),
    };
    Ok(State {
        status: Status::from_code(r.small(at)?).ok_or_else(|| Error::corrupt("unknown status"))?,
        parts: r.small(at + 1)?,
        parts_accepted: r.small(at + 2)?,
        parts_delivered: r.small(at + 3)?,
        part_price: Amount(r.int(at + 4)?),
        reserved: Amount(r.int(at + 5)?),
        captured: Amount(r.int(at + 6)?),
        failure,
        sent_at: r.opt_time(at + 9)?,
        done_at: r.opt_time(at + 10)?,
        in_doubt: flags & IN_DOUBT != 0,
        possible_duplicate: flags & POSSIBLE_DUPLICATE != 0,
        late_receipt: flags & LATE_RECEIPT != 0,
    })
}

const SAVE: Bulk = Bulk {
    each: "UPDATE messages SET status = $3, parts_accepted = $4, parts_delivered = $5, reserved = $6, captured = $7,
             failure = $8, carrier_code = $9, sent_at = $10, done_at = $11, flags = $12
           WHERE account = $1 AND id = $2",
    all: "UPDATE messages m SET status = v.status, parts_accepted = v.parts_accepted,
             parts_delivered = v.parts_delivered, reserved = v.reserved, captured = v.captured, failure = v.failure,
             carrier_code = v.carrier_code, sent_at = v.sent_at, done_at = v.done_at, flags = v.flags
          FROM unnest($1::bigint[], $2::uuid[], $3::smallint[], $4::smallint[], $5::smallint[], $6::bigint[],
             $7::bigint[], $8::smallint[], $9::text[], $10::bigint[], $11::bigint[], $12::smallint[])
             AS v (account, id, status, parts_accepted, parts_delivered, reserved, captured, failure, carrier_code,
                   sent_at, done_at, flags)
          WHERE m.account = v.account AND m.id = v.id",
};

/// Writes states that [`lock_states`] read and the state machine changed.
///
/// # Errors
/// As any write.
pub async fn save_states(tx: &mut Conn, states: &[(AccountId, MessageId, &State)]) -> Result<()> {
    let rows = states.iter().map(|(account, id, s)| {
        [
            account.0.into(),
            id.0.into(),
            s.status.code().into(),
            s.parts_accepted.into(),
            s.parts_delivered.into(),
            s.reserved.0.into(),
            s.captured.0.into(),
            s.failure.as_ref().map(|f| f.code.code()).into(),
            s.failure.as_ref().and_then(|f| f.carrier_code.as_deref()).into(),
            s.sent_at.into(),
            s.done_at.into(),
            flags(s).into(),
        ]
    });
    tx.bulk_ahead(&SAVE, &rows.collect()).await
}

fn flags(s: &State) -> i64 {
    let bit = |on, bit| if on { bit } else { 0 };
    bit(s.in_doubt, IN_DOUBT)
        | bit(s.possible_duplicate, POSSIBLE_DUPLICATE)
        | bit(s.late_receipt, LATE_RECEIPT)
}

/// One message of an account in one mode.
///
/// # Errors
/// As any read.
pub async fn get(
    conn: &mut Conn,
    account: AccountId,
    mode: Mode,
    id: MessageId,
) -> Result<Option<(Message, State)>> {
    let sql = "SELECT id, account, mode, api_key, campaign, recipient, country, originator, text, reference,
            encoding, parts, part_price, carrier, optout_list, accepted_at, scheduled_for, expires_at,
            status, parts, parts_accepted, parts_delivered, part_price, reserved, captured, failure, carrier_code,
            sent_at, done_at, flags
        FROM messages WHERE account = $1 AND id = $2 AND mode = $3";
    let params = [account.0.into(), id.0.into(), mode.code().into()];
    conn.query_one(sql, &params, |r| Ok((row::message(r, 0)?, state(r, 18)?))).await
}

/// Whether a message exists: how a commit whose answer was lost is judged.
///
/// # Errors
/// As any read.
pub async fn exists(conn: &mut Conn, account: AccountId, id: MessageId) -> Result<bool> {
    let sql = "SELECT 1 FROM messages WHERE account = $1 AND id = $2";
    Ok(conn.query_one(sql, &[account.0.into(), id.0.into()], |_| Ok(())).await?.is_some())
}

/// The last message from this originator to this person.
///
/// # Errors
/// As any read.
pub async fn last_between(
    conn: &mut Conn,
    (account, mode): (AccountId, Mode),
    recipient: Recipient,
    originator: &str,
) -> Result<Option<MessageId>> {
    // SQLite would rather read all of an account's messages, since those are in order too.
    let sql = conn.pick(
        "SELECT id FROM messages INDEXED BY messages_recipient
            WHERE recipient = $1 AND account = $2 AND mode = $3 AND originator = $4 ORDER BY id DESC LIMIT 1",
        "SELECT id FROM messages
            WHERE recipient = $1 AND account = $2 AND mode = $3 AND originator = $4 ORDER BY id DESC LIMIT 1",
    );
    let params = [recipient.into(), account.0.into(), mode.code().into(), originator.into()];
    conn.query_one(sql, &params, |r| Ok(MessageId(r.uuid(0)?))).await
}

/// The opt-out list that a message enforces.
///
/// # Errors
/// As any read.
pub async fn optout_list(
    conn: &mut Conn,
    account: AccountId,
    id: MessageId,
) -> Result<Option<OptoutListId>> {
    let sql = "SELECT optout_list FROM messages WHERE account = $1 AND id = $2";
    let params = [account.0.into(), id.0.into()];
    let found = conn.query_one(sql, &params, |r| r.opt_uuid(0)).await?;
    Ok(found.flatten().map(OptoutListId))
}
