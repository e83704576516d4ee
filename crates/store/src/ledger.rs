//! The ledger: every change of a balance that is not a message. Rows are never changed.

use crate::db::Conn;
use crate::error::Result;
use heliograph_domain::id::AccountId;
use heliograph_domain::money::Amount;
use heliograph_domain::time::Timestamp;
use uuid::Uuid;

/// Why a balance changed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// Money was put in by hand.
    Credit = 0,
}

/// One row.
#[derive(Clone, Debug)]
pub struct Entry<'a> {
    /// Its id.
    pub id: Uuid,
    /// Whose balance.
    pub account: AccountId,
    /// Why.
    pub kind: Kind,
    /// By how much; negative takes away.
    pub amount: Amount,
    /// In the operator's words.
    pub note: &'a str,
    /// When.
    pub at: Timestamp,
}

/// What came of an entry.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Added {
    /// It is written, and the balance has changed.
    Now,
    /// It was there before.
    Before,
    /// Another one has its id.
    Other,
    /// The balance would fall below zero: nothing of the transaction may stay.
    Not,
}

/// Writes a row, once, and changes the balance with it.
///
/// # Errors
/// As any write; [`crate::Error::Db`] when there is no such account.
pub async fn add(tx: &mut Conn, entry: &Entry<'_>) -> Result<Added> {
    let sql = "INSERT INTO ledger (account, id, kind, amount, note, created_at)
        VALUES ($1, $2, $3, $4, $5, $6) ON CONFLICT (account, id) DO NOTHING";
    let params = [
        entry.account.0.into(),
        entry.id.into(),
        (entry.kind as i16).into(),
        entry.amount.0.into(),
        entry.note.into(),
        entry.at.into(),
    ];
    let fresh = tx.execute(sql, &params).await?;
    let sql =
        "UPDATE accounts SET available = available + $2 WHERE id = $1 AND available + $2 >= 0";
    if fresh == 0 {
        let same = "SELECT amount FROM ledger WHERE account = $1 AND id = $2 AND amount = $3";
        let params = [entry.account.0.into(), entry.id.into(), entry.amount.0.into()];
        let same = tx.query_one(same, &params, |r| r.int(0)).await?;
        return Ok(if same.is_some() { Added::Before } else { Added::Other });
    }
    let changed = tx.execute(sql, &[entry.account.0.into(), entry.amount.0.into()]).await?;
    Ok(if changed == 0 { Added::Not } else { Added::Now })
}
