//! The ledger: every balance change that is not caused by a message. Rows are immutable.

use crate::db::Conn;
use crate::db::field::Field;
use crate::db::row;
use crate::error::StoreResult;
use heliograph_domain::id::AccountId;
use heliograph_domain::money::Amount;
use heliograph_domain::time::Timestamp;
use uuid::Uuid;

/// The reason for a balance change.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum LedgerKind {
    /// A manual top-up or correction.
    Credit = 0,
}

/// A ledger entry.
#[derive(Clone, Debug)]
pub struct LedgerEntry<'a> {
    /// The entry's id.
    pub id: Uuid,
    /// The account.
    pub account: AccountId,
    /// The reason.
    pub kind: LedgerKind,
    /// The change; negative amounts reduce the balance.
    pub amount: Amount,
    /// The operator's note.
    pub note: &'a str,
    /// The time of the change.
    pub at: Timestamp,
}

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

/// Adds an entry, once, and changes the balance.
///
/// # Errors
/// [`crate::StoreError::Db`] when the account does not exist.
pub async fn add(tx: &mut Conn, entry: &LedgerEntry<'_>) -> StoreResult<AddOutcome> {
    let insert = "INSERT INTO ledger (account, id, kind, amount, note, created_at)
        VALUES ($1, $2, $3, $4, $5, $6) ON CONFLICT (account, id) DO NOTHING";
    let params = [
        entry.account.value(),
        entry.id.value(),
        (entry.kind as i16).into(),
        entry.amount.value(),
        entry.note.into(),
        entry.at.value(),
    ];
    if tx.execute(insert, &params).await? == 0 {
        let same = "SELECT amount FROM ledger WHERE account = $1 AND id = $2 AND amount = $3";
        let params = [entry.account.value(), entry.id.value(), entry.amount.value()];
        let same: Option<Amount> = tx.query_one(same, &params, row::get).await?;
        let outcome = same.map(|_| AddOutcome::AlreadyAdded);
        return Ok(outcome.unwrap_or(AddOutcome::IdConflict));
    }
    let update =
        "UPDATE accounts SET available = available + $2 WHERE id = $1 AND available + $2 >= 0";
    let changed = tx.execute(update, &[entry.account.value(), entry.amount.value()]).await?;
    Ok(if changed == 0 { AddOutcome::InsufficientBalance } else { AddOutcome::Added })
}
