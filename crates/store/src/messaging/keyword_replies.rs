//! The times at which keywords were answered, for each person and number.

use crate::db::Conn;
use crate::db::field::Field;
use crate::db::record::{Record, columns, record};
use crate::db::row;
use crate::db::table::{Sql, Table};
use crate::error::StoreResult;
use heliograph_domain::account::Mode;
use heliograph_domain::id::AccountId;
use heliograph_domain::inbound::Keyword;
use heliograph_domain::phone::Recipient;
use heliograph_domain::time::Timestamp;

record! {
    /// The answer to a keyword.
    #[derive(Clone, PartialEq, Eq, Debug)]
    pub struct KeywordAnswer {
        /// The account that answers.
        pub account: AccountId,
        /// The mode of the keyword.
        pub mode: Mode,
        /// The number that received the keyword.
        pub number: String,
        /// The person who sent it.
        pub person: Recipient,
        /// The keyword.
        pub keyword: Keyword,
        /// The time of the answer.
        pub at: Timestamp,
    }
}

const ANSWERS: Table = Table {
    name: "keyword_replies",
    key: columns!(KeywordAnswer: account, mode, number, person, keyword),
};

static RECORD: Sql = Sql::new(|| {
    let tail = "ON CONFLICT (account, mode, number, person, keyword) DO UPDATE SET at = excluded.at
        WHERE keyword_replies.at <= $7 RETURNING at";
    ANSWERS.insert_one(KeywordAnswer::COLUMNS, &[], tail)
});

/// Records an answer unless the keyword was answered after `since`. Returns whether it was
/// recorded.
pub async fn record(tx: &mut Conn, answer: &KeywordAnswer, since: Timestamp) -> StoreResult<bool> {
    let mut values = answer.values();
    values.push(since.value());
    let recorded: Option<Timestamp> = tx.query_one(&RECORD, &values, row::get).await?;
    Ok(recorded.is_some())
}

/// Deletes the answers until `until`. Returns how many there were.
pub async fn delete_until(tx: &mut Conn, until: Timestamp) -> StoreResult<u64> {
    tx.execute("DELETE FROM keyword_replies WHERE at <= $1", &[until.value()]).await
}
