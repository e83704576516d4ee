//! Lists of messages, the newest first, in bounded time: a page reads so many rows and no more.

use crate::db::Conn;
use crate::error::Result;
use crate::messages::state;
use crate::row;
use crate::value::Value;
use heliograph_domain::account::Mode;
use heliograph_domain::id::{AccountId, MessageId};
use heliograph_domain::message::{Message, State, Status};
use heliograph_domain::phone::Recipient;
use heliograph_domain::time::Timestamp;
use std::time::Duration;
use uuid::Uuid;

/// Which messages are wanted; what is left out is not asked for.
#[derive(Clone, Default, PartialEq, Eq, Debug)]
pub struct Filter {
    /// Where they stand.
    pub status: Option<Status>,
    /// Whom they are for.
    pub recipient: Option<Recipient>,
    /// The client's own name for them.
    pub reference: Option<String>,
    /// The campaign that they belong to.
    pub campaign: Option<Uuid>,
    /// Accepted at this instant or later.
    pub from: Option<Timestamp>,
    /// Accepted before this instant.
    pub to: Option<Timestamp>,
}

/// A page of messages.
#[derive(Debug)]
pub struct Page {
    /// The newest first.
    pub messages: Vec<(Message, State)>,
    /// There may be more below this one.
    pub next: Option<MessageId>,
}

/// Ids begin with the time of their message, or with a slightly later one: those of a process rise even when its
/// clock is set back.
const SLACK: Duration = Duration::from_secs(5);

/// What an index finds, read from the newest on, at most `$depth` of them; of these what was asked for. (No order outside:
/// it stays that of the rows inside, and SQLite would sort what it could hand on at once.)
macro_rules! page {
    ($depth:literal, $($from:literal),+) => {
        concat!(
            "SELECT id, account, mode, api_key, campaign, recipient, country, originator, text, reference, encoding,
               parts, part_price, carrier, optout_list, accepted_at, scheduled_for, expires_at, status, parts,
               parts_accepted, parts_delivered, part_price, reserved, captured, failure, carrier_code, sent_at,
               done_at, flags
             FROM (SELECT * FROM messages ",
            $($from,)+
            " AND id < $2 AND id >= $3 ORDER BY id DESC LIMIT ", $depth, ") AS newest
             WHERE mode = $4 AND (status = $5 OR $5 IS NULL) AND (recipient = $6 OR $6 IS NULL)
               AND (reference = $7 OR $7 IS NULL) AND (campaign = $8 OR $8 IS NULL)
               AND accepted_at >= $9 AND accepted_at < $10
             LIMIT $11"
        )
    };
}

/// The last row that such a page reads.
macro_rules! end {
    ($depth:literal, $($from:literal),+) => {
        concat!(
            "SELECT id FROM messages ",
            $($from,)+
            " AND id < $2 AND id >= $3 ORDER BY id DESC LIMIT 1 OFFSET ", $depth, " - 1"
        )
    };
}

/// Both, by the rows that an index has for a condition; `$12` or `$4` follows it where it is on a value. They lie apart,
/// each on a page of its own, so that 2,000 of them take as long as 10,000 in a row. SQLite is told
/// which index: it would rather read the whole table from the newest message on, where everything is at hand and in order.
macro_rules! by {
    ($conn:expr, $index:literal, $condition:literal $(, $twelve:literal, $four:literal)?) => {
        (
            $conn.pick(
                page!(2000, "INDEXED BY ", $index, " WHERE account = $1 AND ", $condition $(, $twelve)?),
                page!(2000, "WHERE account = $1 AND ", $condition $(, $twelve)?),
            ),
            $conn.pick(
                end!(2000, "INDEXED BY ", $index, " WHERE account = $1 AND ", $condition $(, $four)?),
                end!(2000, "WHERE account = $1 AND ", $condition $(, $four)?),
            ),
        )
    };
}

/// An index that leads to what was asked for: its two statements, and what it looks for besides the account.
struct Way<'a> {
    page: &'static str,
    end: &'static str,
    value: Option<Value<'a>>,
}

/// The narrowest index: a reference has fewer messages than a person, and a person fewer than a campaign.
fn way<'a>(conn: &Conn, mode: Mode, filter: &'a Filter) -> Way<'a> {
    let ((page, end), value) = if let Some(reference) = &filter.reference {
        (
            by!(conn, "messages_reference", "reference = ", "$12", "$4"),
            Some(reference.as_str().into()),
        )
    } else if let Some(recipient) = filter.recipient {
        (by!(conn, "messages_recipient", "recipient = ", "$12", "$4"), Some(recipient.into()))
    } else if let Some(campaign) = filter.campaign {
        (by!(conn, "messages_campaign", "campaign = ", "$12", "$4"), Some(campaign.into()))
    } else if filter.status == Some(Status::Failed) {
        (
            by!(conn, "messages_failed", "failure IS NOT NULL AND mode = ", "$12", "$4"),
            Some(mode.code().into()),
        )
    } else if mode == Mode::Test {
        (by!(conn, "messages_test", "mode = 1"), None)
    } else {
        ((page!(10000, "WHERE account = $1"), end!(10000, "WHERE account = $1")), None)
    };
    Way { page, end, value }
}

/// An account's messages below `before` that were asked for, the newest first, at most `limit` of them. A page may
/// hold fewer, even none, and still not be the last.
///
/// # Errors
/// As any read.
pub async fn list(
    conn: &mut Conn,
    (account, mode): (AccountId, Mode),
    filter: &Filter,
    before: MessageId,
    limit: usize,
) -> Result<Page> {
    let way = way(conn, mode, filter);
    let floor = filter.from.map_or(MessageId(Uuid::nil()), MessageId::first_at);
    let ceiling = filter.to.map(|to| MessageId::first_at(to.after(SLACK)));
    let before = ceiling.map_or(before, |c| c.min(before));
    let bounds = [account.0.into(), before.0.into(), floor.0.into()];
    let wanted = [
        mode.code().into(),
        filter.status.map(Status::code).into(),
        filter.recipient.map(Value::from).unwrap_or(Value::Null),
        filter.reference.as_deref().into(),
        filter.campaign.into(),
        filter.from.unwrap_or(Timestamp(i64::MIN)).into(),
        filter.to.unwrap_or(Timestamp(i64::MAX)).into(),
        // One more tells whether there are more.
        i64::try_from(limit + 1).unwrap_or(i64::MAX).into(),
    ];
    let params: Vec<_> = bounds.iter().chain(&wanted).chain(&way.value).copied().collect();
    let read = |r: &row::Row<'_>| Ok((row::message(r, 0)?, state(r, 18)?));
    let mut messages = conn.query(way.page, &params, read).await?;
    messages.sort_unstable_by_key(|(m, _)| std::cmp::Reverse(m.id));
    let next = if messages.len() > limit {
        messages.truncate(limit);
        messages.last().map(|(m, _)| m.id)
    } else {
        let params: Vec<_> = bounds.iter().chain(&way.value).copied().collect();
        let end = conn.query_one(way.end, &params, |r| Ok(MessageId(r.uuid(0)?))).await?;
        // A row that was committed between the two looks moves the end up; nothing is shown twice.
        end.map(|end| messages.last().map_or(end, |(m, _)| end.min(m.id)))
    };
    Ok(Page { messages, next })
}
