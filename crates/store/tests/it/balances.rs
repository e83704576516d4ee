//! Tests of balances and the ledger: balance changes are atomic and never go below zero.

use crate::fixtures::{account, balance, credit};
use heliograph_domain::id::{AccountId, Ids};
use heliograph_domain::money::Amount;
use heliograph_store::billing::balances::{self, BalanceChange};
use heliograph_store::billing::ledger::{self, LedgerEntry, LedgerKind};
use heliograph_store::operations::check;
use heliograph_store::{Db, StoreError};
use heliograph_testing::{START, TestDb};
use tokio::task::JoinSet;

async fn reserve(db: &Db, wanted: &[(AccountId, i64)]) -> Vec<AccountId> {
    let wanted: Vec<_> = wanted.iter().map(|(id, n)| (*id, Amount(*n))).collect();
    let mut tx = db.write().await.unwrap();
    let mut enough = balances::reserve(&mut tx, &wanted).await.unwrap();
    tx.commit().await.unwrap();
    enough.sort();
    enough
}

async fn move_money(db: &Db, moves: &[(AccountId, i64, i64)]) -> heliograph_store::StoreResult<()> {
    let moves: Vec<_> = moves.iter().map(|(id, a, r)| (*id, Amount(*a), Amount(*r))).collect();
    let mut tx = db.write().await?;
    balances::adjust(&mut tx, &moves).await?;
    tx.commit().await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn money_is_reserved_all_or_nothing() {
    let db = TestDb::new().await;
    let ann = account(&db, "ann@example.com", 100).await;
    let bob = account(&db, "bob@example.com", 50).await;
    let unknown = AccountId(i64::MAX);
    assert_eq!(reserve(&db.db, &[(ann, 100), (bob, 51), (unknown, 1)]).await, [ann]);
    assert_eq!(balance(&db.db, ann).await, (0, 100));
    assert_eq!(balance(&db.db, bob).await, (50, 0));
    assert_eq!(reserve(&db.db, &[(ann, 1), (bob, 50)]).await, [bob]);
    assert_eq!(balance(&db.db, bob).await, (0, 50));
    assert_eq!(reserve(&db.db, &[]).await, []);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn released_money_can_be_reserved_in_the_same_statement() {
    let db = TestDb::new().await;
    let ann = account(&db, "ann@example.com", 100).await;
    let bob = account(&db, "bob@example.com", 100).await;
    assert_eq!(reserve(&db.db, &[(ann, 60), (bob, 60)]).await, [ann, bob]);
    // Of the 60 reserved, 20 are released and 40 captured; then 60 are available, and 61 too many.
    let change = |account, wanted| BalanceChange {
        account,
        available: Amount(20),
        reserved: Amount(-60),
        to_reserve: Amount(wanted),
    };
    let mut tx = db.db.write().await.unwrap();
    let enough =
        balances::adjust_and_reserve(&mut tx, &[change(ann, 60), change(bob, 61)]).await.unwrap();
    tx.commit().await.unwrap();
    assert_eq!(enough, [ann]);
    assert_eq!(balance(&db.db, ann).await, (0, 60));
    assert_eq!(balance(&db.db, bob).await, (40, 60));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn many_balances_are_adjusted_at_once() {
    let db = TestDb::new().await;
    let ann = account(&db, "ann@example.com", 100).await;
    let bob = account(&db, "bob@example.com", 50).await;
    assert_eq!(reserve(&db.db, &[(ann, 60), (bob, 20)]).await, [ann, bob]);
    move_money(&db.db, &[(ann, 10, -40), (bob, 0, -20)]).await.unwrap();
    assert_eq!(balance(&db.db, ann).await, (50, 20));
    assert_eq!(balance(&db.db, bob).await, (30, 0));
    move_money(&db.db, &[]).await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_balance_falls_below_zero() {
    let db = TestDb::new().await;
    let ann = account(&db, "ann@example.com", 100).await;
    let bob = account(&db, "bob@example.com", 100).await;
    for wrong in [[(ann, 5, 0), (bob, -101, 0)], [(ann, 5, 0), (bob, 0, -1)]] {
        let refused = move_money(&db.db, &wrong).await;
        assert!(matches!(refused, Err(StoreError::Db(_))), "{refused:?}");
    }
    assert_eq!(balance(&db.db, ann).await, (100, 0));
    assert_eq!(balance(&db.db, bob).await, (100, 0));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn concurrent_reservations_never_overspend() {
    let db = TestDb::new().await;
    let ann = account(&db, "ann@example.com", 100).await;
    let mut spending = JoinSet::new();
    for node in [db.db.clone(), db.reopen().await] {
        for _ in 0..8 {
            let node = node.clone();
            spending.spawn(async move { reserve(&node, &[(ann, 30)]).await.len() });
        }
    }
    assert_eq!(spending.join_all().await.into_iter().sum::<usize>(), 3);
    assert_eq!(balance(&db.db, ann).await, (10, 90));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_ledger_entry_changes_the_balance() {
    let db = TestDb::new().await;
    let ann = account(&db, "ann@example.com", 0).await;
    for (amount, done, balanced) in
        [(500, true, 500), (-200, true, 300), (-301, false, 300), (-300, true, 0), (-1, false, 0)]
    {
        assert_eq!(credit(&db, ann, amount).await, done, "{amount}");
        assert_eq!(balance(&db.db, ann).await, (balanced, 0));
    }
    let unknown = LedgerEntry {
        id: db.ids.next(START),
        account: AccountId(i64::MAX),
        kind: LedgerKind::Credit,
        amount: Amount(1),
        note: String::new(),
        at: START,
    };
    assert!(ledger::add(&mut db.db.write().await.unwrap(), &unknown).await.is_err());
    let sql = "SELECT CAST(account AS text), CAST(amount AS text), note, CAST(created_at AS text)
        FROM ledger ORDER BY id";
    let row = |n: &str| [ann.to_string(), n.into(), "thanks".into(), START.0.to_string()].to_vec();
    assert_eq!(db.query_raw(sql).await, ["500", "-200", "-300"].map(row));
    let mut snapshot = db.db.snapshot().await.unwrap();
    assert_eq!(check::violations(&mut snapshot).await.unwrap(), [""; 0]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_balance_never_wraps_around() {
    let db = TestDb::new().await;
    let ann = account(&db, "ann@example.com", i64::MAX).await;
    let mut tx = db.db.write().await.unwrap();
    let one_more = LedgerEntry {
        id: db.ids.next(START),
        account: ann,
        kind: LedgerKind::Credit,
        amount: Amount(1),
        note: String::new(),
        at: START,
    };
    let refused = ledger::add(&mut tx, &one_more).await;
    assert!(matches!(refused, Err(StoreError::Db(_))), "{refused:?}");
    drop(tx);
    assert_eq!(balance(&db.db, ann).await, (i64::MAX, 0));
}
