//! What people sent.

use crate::bulk::Bulk;
use crate::db::Conn;
use crate::error::{Error, Result};
use crate::row::Row;
use heliograph_domain::account::Mode;
use heliograph_domain::id::{AccountId, CarrierId, InboundId, MessageId};
use heliograph_domain::inbound::Keyword;
use heliograph_domain::inbound_message::InboundMessage;

/// Whose a message is that was written to a number which nobody has.
pub const NOBODY: AccountId = AccountId(0);

const INSERT: Bulk = Bulk {
    each: "INSERT INTO inbound_messages (account, id, mode, carrier, sender, recipient, text, received_at, in_reply_to,
             keyword, complete) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)",
    all: "INSERT INTO inbound_messages (account, id, mode, carrier, sender, recipient, text, received_at, in_reply_to,
             keyword, complete)
          SELECT * FROM unnest($1::bigint[], $2::uuid[], $3::smallint[], $4::smallint[], $5::text[], $6::text[],
            $7::text[], $8::bigint[], $9::uuid[], $10::smallint[], $11::smallint[])",
};

/// Stores messages.
///
/// # Errors
/// As any write.
pub async fn insert(tx: &mut Conn, all: &[&InboundMessage]) -> Result<()> {
    let rows = all.iter().map(|m| {
        [
            m.account.0.into(),
            m.id.0.into(),
            m.mode.code().into(),
            m.carrier.0.into(),
            m.from.as_str().into(),
            m.to.as_str().into(),
            m.text.as_str().into(),
            m.received_at.into(),
            m.in_reply_to.map(|m| m.0).into(),
            m.keyword.map(Keyword::code).into(),
            i16::from(m.complete).into(),
        ]
    });
    tx.bulk_ahead(&INSERT, &rows.collect()).await
}

const WHOLE: Bulk = Bulk {
    each: "SELECT account, id, mode, carrier, sender, recipient, text, received_at, in_reply_to, keyword, complete
           FROM inbound_messages WHERE account = $1 AND id = $2",
    all: "SELECT m.account, m.id, m.mode, m.carrier, m.sender, m.recipient, m.text, m.received_at, m.in_reply_to,
            m.keyword, m.complete
          FROM unnest($1::bigint[], $2::uuid[]) AS v (account, id)
          JOIN inbound_messages m ON m.account = v.account AND m.id = v.id",
};

/// These messages; in any order, without those that do not exist.
///
/// # Errors
/// As any read.
pub async fn whole(
    conn: &mut Conn,
    keys: &[(AccountId, InboundId)],
) -> Result<Vec<InboundMessage>> {
    let rows = keys.iter().map(|(account, id)| [account.0.into(), id.0.into()]);
    conn.bulk_query(&WHOLE, &rows.collect(), inbound).await
}

/// An account's messages in one mode that came before `before`, the newest first; at most `limit`.
///
/// # Errors
/// As any read.
pub async fn of(
    conn: &mut Conn,
    (account, mode): (AccountId, Mode),
    before: InboundId,
    limit: i64,
) -> Result<Vec<InboundMessage>> {
    let sql = "SELECT account, id, mode, carrier, sender, recipient, text, received_at, in_reply_to, keyword, complete
        FROM inbound_messages WHERE account = $1 AND mode = $2 AND id < $3 ORDER BY id DESC LIMIT $4";
    let params = [account.0.into(), mode.code().into(), before.0.into(), limit.into()];
    conn.query(sql, &params, inbound).await
}

/// The newest messages of an account in one mode, the newest first; at most `limit`, among the newest 10,000 of both
/// modes. Test messages have an index of their own, since they may be few among many.
///
/// # Errors
/// As any read.
pub async fn newest(
    conn: &mut Conn,
    (account, mode): (AccountId, Mode),
    limit: i64,
) -> Result<Vec<InboundMessage>> {
    macro_rules! newest {
        ($from:literal) => {
            concat!(
                "SELECT account, id, mode, carrier, sender, recipient, text, received_at, in_reply_to, keyword, complete
                 FROM (SELECT * FROM inbound_messages ",
                $from,
                " ORDER BY id DESC LIMIT 10000) AS newest
                 WHERE mode = $2 LIMIT $3"
            )
        };
    }
    let test = conn.pick(
        newest!("INDEXED BY inbound_messages_test WHERE account = $1 AND mode = 1"),
        newest!("WHERE account = $1 AND mode = 1"),
    );
    let sql = if mode == Mode::Test { test } else { newest!("WHERE account = $1") };
    let params = [account.0.into(), mode.code().into(), limit.into()];
    let mut all = conn.query(sql, &params, inbound).await?;
    all.sort_unstable_by_key(|m| std::cmp::Reverse(m.id));
    Ok(all)
}

/// What one person wrote to an account in one mode before `before`, the newest first; at most `limit`.
///
/// # Errors
/// As any read.
pub async fn of_sender(
    conn: &mut Conn,
    (account, mode): (AccountId, Mode),
    sender: &str,
    (before, limit): (InboundId, i64),
) -> Result<Vec<InboundMessage>> {
    // SQLite would rather read all that an account has received, since that is in order too.
    let sql = conn.pick(
        "SELECT account, id, mode, carrier, sender, recipient, text, received_at, in_reply_to, keyword, complete
         FROM inbound_messages INDEXED BY inbound_messages_sender
         WHERE account = $1 AND sender = $2 AND id < $3 AND mode = $4 ORDER BY id DESC LIMIT $5",
        "SELECT account, id, mode, carrier, sender, recipient, text, received_at, in_reply_to, keyword, complete
         FROM inbound_messages
         WHERE account = $1 AND sender = $2 AND id < $3 AND mode = $4 ORDER BY id DESC LIMIT $5",
    );
    let params =
        [account.0.into(), sender.into(), before.0.into(), mode.code().into(), limit.into()];
    conn.query(sql, &params, inbound).await
}

/// What was written to a number before anybody had it, as far as it asks for something, after `after`, the oldest
/// first; at most `limit`.
///
/// # Errors
/// As any read.
pub async fn unclaimed_wishes(
    conn: &mut Conn,
    number: &str,
    after: InboundId,
    limit: i64,
) -> Result<Vec<InboundMessage>> {
    let sql = "SELECT account, id, mode, carrier, sender, recipient, text, received_at, in_reply_to, keyword, complete
        FROM inbound_messages WHERE account = $1 AND recipient = $2 AND id > $3 AND keyword IS NOT NULL
        ORDER BY id LIMIT $4";
    let params = [NOBODY.0.into(), number.into(), after.0.into(), limit.into()];
    conn.query(sql, &params, inbound).await
}

/// Gives an account what was written to its number before it had it; how many messages.
///
/// # Errors
/// As any write.
pub async fn adopt(tx: &mut Conn, number: &str, account: AccountId) -> Result<u64> {
    let sql = "UPDATE inbound_messages SET account = $1 WHERE account = $2 AND recipient = $3";
    tx.execute(sql, &[account.0.into(), NOBODY.0.into(), number.into()]).await
}

fn inbound(r: &Row<'_>) -> Result<InboundMessage> {
    let keyword = r
        .opt_small(9)?
        .map(|code| Keyword::from_code(code).ok_or_else(|| Error::corrupt("unknown keyword")));
    Ok(InboundMessage {
        account: AccountId(r.int(0)?),
        id: InboundId(r.uuid(1)?),
        mode: Mode::from_code(r.small(2)?).ok_or_else(|| Error::corrupt("unknown mode"))?,
        carrier: CarrierId(r.small(3)?),
        from: r.text(4)?,
        to: r.text(5)?,
        text: r.text(6)?,
        received_at: r.time(7)?,
        in_reply_to: r.opt_uuid(8)?.map(MessageId),
        keyword: keyword.transpose()?,
        complete: r.int(10)? != 0,
    })
}
