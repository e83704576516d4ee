//! The ledger: every balance change that is not caused by a message. Rows are immutable.

use crate::db::Conn;
use crate::db::field::{Field, codes};
use crate::db::record::{Record, columns, record};
use crate::db::row;
use crate::db::table::{Sql, Table};
use crate::error::StoreResult;
use heliograph_domain::id::AccountId;
use heliograph_domain::money::Amount;
use heliograph_domain::time::Timestamp;
use uuid::Uuid;

/// The reason for a balance change.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum LedgerKind {
    /// A manual top-up or correction.
    Credit,
    /// The captured amounts of messages that retention has deleted. The balance does not change.
    DeletedMessages,
}

codes! { "ledger kind": LedgerKind; }

impl LedgerKind {
    const fn code(self) -> i16 {
        match self {
            Self::Credit => 0,
            Self::DeletedMessages => 1,
        }
    }

    const fn from_code(code: i16) -> Option<Self> {
        match code {
            0 => Some(Self::Credit),
            1 => Some(Self::DeletedMessages),
            _ => None,
        }
    }
}

record! {
    /// A ledger entry.
    #[derive(Clone, Debug)]
    pub struct LedgerEntry {
        /// The account.
        pub account: AccountId,
        /// The entry's id.
        pub id: Uuid,
        /// The reason.
        pub kind: LedgerKind,
        /// The change; negative amounts reduce the balance.
        pub amount: Amount,
        /// The operator's note.
        pub note: String,
        /// The time of the change.
        pub at: Timestamp => created_at,
    }
}

const LEDGER: Table = Table { name: "ledger", key: columns!(LedgerEntry: account, id) };

/// The result of [`add`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum AddOutcome {
    /// The entry was added and the balance has changed.
    Added,
    /// The entry existed already.
    AlreadyAdded,
    /// Another entry has this id.
    IdConflict,
    /// The balance would fall below zero: the caller must roll back the transaction.
    InsufficientBalance,
}

static INSERT: Sql = Sql::new(|| {
    LEDGER.insert_one(LedgerEntry::COLUMNS, &[], "ON CONFLICT (account, id) DO NOTHING")
});

static AMOUNT: Sql = Sql::new(|| LEDGER.select_one(columns!(LedgerEntry: amount)));

/// Adds an entry, once, and changes the balance.
///
/// # Errors
/// [`crate::StoreError::Db`] when the account does not exist.
pub async fn add(tx: &mut Conn, entry: &LedgerEntry) -> StoreResult<AddOutcome> {
    if tx.execute(&INSERT, &entry.values()).await? == 0 {
        let key = [entry.account.value(), entry.id.value()];
        let there: Option<Amount> = tx.query_one(&AMOUNT, &key, row::get).await?;
        let same = there == Some(entry.amount);
        return Ok(if same { AddOutcome::AlreadyAdded } else { AddOutcome::IdConflict });
    }
    let update =
        "UPDATE accounts SET available = available + $2 WHERE id = $1 AND available + $2 >= 0";
    let changed = tx.execute(update, &[entry.account.value(), entry.amount.value()]).await?;
    Ok(if changed == 0 { AddOutcome::InsufficientBalance } else { AddOutcome::Added })
}

static RECORD: Sql = Sql::new(|| LEDGER.insert_one(LedgerEntry::COLUMNS, &[], ""));

/// Adds an entry that does not change the balance.
pub async fn record(tx: &mut Conn, entry: &LedgerEntry) -> StoreResult<()> {
    tx.execute(&RECORD, &entry.values()).await.map(drop)
}
