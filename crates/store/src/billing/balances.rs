//! Balances of accounts: changes by messages. Other changes are in the [`ledger`](super::ledger).

use crate::db::Conn;
use crate::db::bulk::Bulk;
use crate::db::field::Field;
use crate::db::row;
use crate::error::StoreResult;
use heliograph_domain::id::AccountId;
use heliograph_domain::money::Amount;
use std::collections::BTreeSet;
use std::sync::LazyLock;

static LOCK: LazyLock<Bulk> = LazyLock::new(|| {
    Bulk::new(
        "SELECT id FROM accounts WHERE id = $1",
        "SELECT a.id FROM unnest($1::bigint[]) AS v (id) JOIN accounts a ON a.id = v.id
         ORDER BY a.id FOR NO KEY UPDATE OF a",
    )
});

/// Locks accounts in the order of their ids, so that two nodes never deadlock whatever they do
/// next. SQLite needs no lock: one transaction writes at a time.
pub async fn lock(tx: &mut Conn, ids: &BTreeSet<AccountId>) -> StoreResult<()> {
    if ids.len() < 2 || matches!(tx, Conn::Sqlite(_)) {
        return Ok(());
    }
    let rows = ids.iter().map(|id| [id.value()]);
    tx.bulk_query(&LOCK, &rows.collect(), |_| Ok(())).await.map(drop)
}

static ADJUST: LazyLock<Bulk> = LazyLock::new(|| {
    Bulk::new(
        "UPDATE accounts SET available = available + $2, reserved = reserved + $3 WHERE id = $1",
        "UPDATE accounts a SET available = a.available + v.available, reserved = a.reserved + v.reserved
         FROM (SELECT * FROM unnest($1::bigint[], $2::bigint[], $3::bigint[]) AS u (id, available, reserved)
           ORDER BY id) v
         WHERE a.id = v.id",
    )
});

/// Adds to `available` and `reserved` what the state machine returned. The accounts are in the
/// order of their ids.
///
/// # Errors
/// [`crate::StoreError::Db`] when a balance would fall below zero.
pub async fn adjust(tx: &mut Conn, changes: &[(AccountId, Amount, Amount)]) -> StoreResult<()> {
    let rows = changes
        .iter()
        .map(|(id, available, reserved)| [id.value(), available.value(), reserved.value()]);
    tx.bulk_execute(&ADJUST, &rows.collect()).await.map(drop)
}

static ADJUST_AND_RESERVE: LazyLock<Bulk> = LazyLock::new(|| {
    Bulk::new(
        "UPDATE accounts SET available = available + $2 - $4, reserved = reserved + $3 + $4
         WHERE id = $1 AND available + $2 >= $4 RETURNING id",
        "UPDATE accounts a SET available = a.available + v.available - v.to_reserve,
             reserved = a.reserved + v.reserved + v.to_reserve
         FROM (SELECT * FROM unnest($1::bigint[], $2::bigint[], $3::bigint[], $4::bigint[])
                 AS u (id, available, reserved, to_reserve) ORDER BY id) v
         WHERE a.id = v.id AND a.available + v.available >= v.to_reserve RETURNING a.id",
    )
});

/// The changes of one transaction to the balance of an account.
#[derive(Clone, Copy, Debug)]
pub struct BalanceChange {
    /// The account.
    pub account: AccountId,
    /// The amount that the state machine adds to `available`.
    pub available: Amount,
    /// The amount that the state machine adds to `reserved`.
    pub reserved: Amount,
    /// The amount to move from `available` to `reserved` after that.
    pub to_reserve: Amount,
}

impl BalanceChange {
    /// No change.
    pub const fn none(account: AccountId) -> Self {
        let zero = Amount::ZERO;
        Self { account, available: zero, reserved: zero, to_reserve: zero }
    }
}

/// Applies [`adjust`] and [`reserve`] in one statement, all or nothing for each account,
/// and returns the accounts whose balance was sufficient. The accounts are in the order of their
/// ids.
pub async fn adjust_and_reserve(
    tx: &mut Conn,
    changes: &[BalanceChange],
) -> StoreResult<Vec<AccountId>> {
    let rows = changes.iter().map(|c| {
        [c.account.value(), c.available.value(), c.reserved.value(), c.to_reserve.value()]
    });
    tx.bulk_query(&ADJUST_AND_RESERVE, &rows.collect(), row::get).await
}

/// Reserves amounts, all or nothing for each account, and returns the accounts whose balance was
/// sufficient. The accounts are in the order of their ids.
pub async fn reserve(
    tx: &mut Conn,
    amounts: &[(AccountId, Amount)],
) -> StoreResult<Vec<AccountId>> {
    let change = |&(account, to_reserve): &(AccountId, Amount)| BalanceChange {
        to_reserve,
        ..BalanceChange::none(account)
    };
    let changes: Vec<_> = amounts.iter().map(change).collect();
    adjust_and_reserve(tx, &changes).await
}
