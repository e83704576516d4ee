//! Lists of messages, newest first, in bounded time: a page reads a limited number of rows.

use crate::db::Conn;
use crate::db::field::Field;
use crate::db::row;
use crate::db::value::Value;
use crate::error::StoreResult;
use crate::messaging::messages::{all_columns, message_and_state};
use heliograph_domain::account::Mode;
use heliograph_domain::id::{AccountId, MessageId};
use heliograph_domain::message::{Message, MessageState, MessageStatus};
use heliograph_domain::originator::Originator;
use heliograph_domain::phone::Recipient;
use heliograph_domain::time::Timestamp;
use std::sync::LazyLock;
use std::time::Duration;
use uuid::Uuid;

/// A filter on messages. A field that is `None` does not filter.
#[derive(Clone, Default, PartialEq, Eq, Debug)]
pub struct MessageFilter {
    /// One of these statuses; any, if there are none.
    pub statuses: Vec<MessageStatus>,
    /// The recipient.
    pub recipient: Option<Recipient>,
    /// The originator, compared exactly.
    pub originator: Option<Originator>,
    /// The client's reference, compared exactly.
    pub reference: Option<String>,
    /// The campaign.
    pub campaign: Option<Uuid>,
    /// Text that the recipient's number, the originator, the text or the reference contains. ASCII
    /// letters match in both cases.
    pub search: Option<String>,
    /// Accepted at this time or later.
    pub from: Option<Timestamp>,
    /// Accepted before this time.
    pub to: Option<Timestamp>,
}

/// A page of messages.
#[derive(Debug)]
pub struct MessagePage {
    /// The messages, newest first.
    pub messages: Vec<(Message, MessageState)>,
    /// The cursor for the next page; `None` on the last one.
    pub next: Option<MessageId>,
}

/// The maximum by which the time in a message's id may be later than `accepted_at`: the ids of a
/// process increase even when its clock is set back.
const SLACK: Duration = Duration::from_secs(5);

/// The two statements of a list by one index: `page` returns the messages, `end` the last row that
/// `page` has read. Both have a text for SQLite and one for PostgreSQL.
struct Statements {
    page: [String; 2],
    end: [String; 2],
}

impl Statements {
    /// A list by the primary key. Its rows lie side by side.
    fn by_account() -> Self {
        let source = "messages WHERE account = $1";
        Self {
            page: [page(SQLITE, 10_000, source), page(POSTGRES, 10_000, source)],
            end: [end(10_000, source), end(10_000, source)],
        }
    }

    /// A list by a secondary index and its condition, in which `$value` is the parameter. The rows
    /// lie apart, each on a page of its own, so reading 2,000 of them takes as long as 10,000 in
    /// sequence. SQLite gets the name of the index, because it prefers to read the whole table from
    /// the newest message on.
    fn by_index(index: &str, condition: &str) -> Self {
        let sources = [
            format!("messages INDEXED BY {index} WHERE account = $1 AND {condition}"),
            format!("messages WHERE account = $1 AND {condition}"),
        ];
        Self {
            page: [
                page(SQLITE, 2_000, &sources[0].replace("$value", "$15")),
                page(POSTGRES, 2_000, &sources[1].replace("$value", "$15")),
            ],
            end: sources.map(|source| end(2_000, &source.replace("$value", "$4"))),
        }
    }
}

/// The condition of a search in each dialect. `$13` is the text in lower case, `$14` its digits. The
/// collation "C" makes PostgreSQL convert only ASCII letters, as SQLite does.
const SQLITE: &str = "INSTR(LOWER(text), $13) > 0 OR INSTR(LOWER(reference), $13) > 0
    OR INSTR(LOWER(originator), $13) > 0 OR INSTR(CAST(recipient AS TEXT), $14) > 0";
const POSTGRES: &str = "STRPOS(LOWER(text COLLATE \"C\"), $13) > 0
    OR STRPOS(LOWER(reference COLLATE \"C\"), $13) > 0
    OR STRPOS(LOWER(originator COLLATE \"C\"), $13) > 0 OR STRPOS(CAST(recipient AS TEXT), $14) > 0";

/// Reads the newest `depth` rows of a source and returns those that match the filter. The outer
/// query has no ORDER BY: the rows keep the order of the inner one, and SQLite would sort what it
/// can return at once.
fn page(search: &str, depth: u32, source: &str) -> String {
    format!(
        "SELECT {}
         FROM (SELECT * FROM {source} AND id < $2 AND id >= $3 ORDER BY id DESC LIMIT {depth}) AS newest
         WHERE mode = $4 AND (CAST($5 AS bigint) >> CAST(status AS integer)) & 1 = 1
           AND (recipient = $6 OR $6 IS NULL) AND (originator = $7 OR $7 IS NULL)
           AND (reference = $8 OR $8 IS NULL) AND (campaign = $9 OR $9 IS NULL)
           AND accepted_at >= $10 AND accepted_at < $11 AND (CAST($13 AS text) IS NULL OR {search})
         LIMIT $12",
        all_columns()
    )
}

/// Returns the last row that [`page`] reads.
fn end(depth: u32, source: &str) -> String {
    format!(
        "SELECT id FROM {source} AND id < $2 AND id >= $3 ORDER BY id DESC LIMIT 1 OFFSET {depth} - 1"
    )
}

static BY_REFERENCE: LazyLock<Statements> =
    LazyLock::new(|| Statements::by_index("messages_reference", "reference = $value"));
static BY_RECIPIENT: LazyLock<Statements> =
    LazyLock::new(|| Statements::by_index("messages_recipient", "recipient = $value"));
static BY_CAMPAIGN: LazyLock<Statements> =
    LazyLock::new(|| Statements::by_index("messages_campaign", "campaign = $value"));
static FAILED: LazyLock<Statements> = LazyLock::new(|| {
    Statements::by_index("messages_failed", "failure IS NOT NULL AND mode = $value")
});
static TEST: LazyLock<Statements> =
    LazyLock::new(|| Statements::by_index("messages_test", "mode = 1"));
static BY_ACCOUNT: LazyLock<Statements> = LazyLock::new(Statements::by_account);

/// Picks the most selective index: a reference has fewer messages than a recipient, and a recipient
/// fewer than a campaign. The value is the parameter of its condition.
fn index(mode: Mode, filter: &MessageFilter) -> (&'static Statements, Option<Value<'_>>) {
    if let Some(reference) = &filter.reference {
        (&BY_REFERENCE, Some(reference.value()))
    } else if let Some(recipient) = &filter.recipient {
        (&BY_RECIPIENT, Some(recipient.value()))
    } else if let Some(campaign) = &filter.campaign {
        (&BY_CAMPAIGN, Some(campaign.value()))
    } else if filter.statuses == [MessageStatus::Failed] {
        (&FAILED, Some(mode.code().into()))
    } else if mode == Mode::Test {
        (&TEST, None)
    } else {
        (&BY_ACCOUNT, None)
    }
}

/// Returns the digits of a text that looks like part of a phone number.
fn digits(text: &str) -> Option<String> {
    let is_punctuation = |c: char| " +-().".contains(c);
    let digits: String = text.chars().filter(char::is_ascii_digit).collect();
    let is_number = text.chars().all(|c| c.is_ascii_digit() || is_punctuation(c));
    (is_number && !digits.is_empty()).then_some(digits)
}

/// Returns a set of statuses as a number in which the bit of each status is set.
fn status_bits(statuses: &[MessageStatus]) -> i64 {
    let all = if statuses.is_empty() { &MessageStatus::ALL } else { statuses };
    all.iter().fold(0, |bits, status| bits | 1 << status.code())
}

/// Returns up to `limit` messages of an account below `before` that match the filter, newest first.
/// A page may hold fewer, even none, without being the last.
pub async fn list(
    conn: &mut Conn,
    (account, mode): (AccountId, Mode),
    filter: &MessageFilter,
    before: MessageId,
    limit: usize,
) -> StoreResult<MessagePage> {
    let (Statements { page, end }, value) = index(mode, filter);
    let ([sqlite_page, postgres_page], [sqlite_end, postgres_end]) = (page, end);
    let floor = filter.from.map_or(MessageId(Uuid::nil()), MessageId::first_at);
    let ceiling = filter.to.map(|to| MessageId::first_at(to.after(SLACK)));
    let before = ceiling.map_or(before, |c| c.min(before));
    let search = filter.search.as_ref().map(|text| text.to_ascii_lowercase());
    let digits = search.as_deref().and_then(digits);
    let bounds = [account.value(), before.value(), floor.value()];
    let wanted = [
        mode.value(),
        status_bits(&filter.statuses).into(),
        filter.recipient.value(),
        filter.originator.as_ref().map(Originator::as_str).into(),
        filter.reference.value(),
        filter.campaign.value(),
        filter.from.unwrap_or(Timestamp(i64::MIN)).into(),
        filter.to.unwrap_or(Timestamp(i64::MAX)).into(),
        // One more than wanted shows whether there are more.
        i64::try_from(limit + 1).unwrap_or(i64::MAX).into(),
        search.value(),
        digits.value(),
    ];
    let params: Vec<_> = bounds.iter().chain(&wanted).chain(&value).copied().collect();
    let sql = conn.pick(sqlite_page, postgres_page);
    let mut messages = conn.query(sql, &params, message_and_state).await?;
    messages.sort_unstable_by_key(|(m, _)| std::cmp::Reverse(m.id));
    let next = if messages.len() > limit {
        messages.truncate(limit);
        messages.last().map(|(m, _)| m.id)
    } else {
        let params: Vec<_> = bounds.iter().chain(&value).copied().collect();
        let sql = conn.pick(sqlite_end, postgres_end);
        let end: Option<MessageId> = conn.query_one(sql, &params, row::get).await?;
        // A row that was committed between the two queries moves the end up; nothing is listed
        // twice.
        end.map(|end| messages.last().map_or(end, |(m, _)| end.min(m.id)))
    };
    Ok(MessagePage { messages, next })
}
