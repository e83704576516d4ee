//! Accounts and the ledger: money moves as a whole or not at all, and never below zero.

use crate::rows::{account, at, balance, credit, look};
use crate::support::{BEGIN, TestDb, on_both_engines};
use heliograph_domain::id::{AccountId, Ids, UserId};
use heliograph_domain::money::Amount;
use heliograph_store::accounts::Dues;
use heliograph_store::ledger::{self, Entry, Kind};
use heliograph_store::{Db, Error, accounts, check};
use tokio::task::JoinSet;

on_both_engines!(accounts:
    an_account_is_opened_once_for_an_address,
    all_accounts_are_listed_the_oldest_first,
    money_is_reserved_all_or_nothing,
    money_moves_for_many_accounts_at_once,
    what_is_due_can_be_set_aside_at_once,
    no_balance_falls_below_zero,
    reservations_at_the_same_time_never_spend_twice,
    the_ledger_changes_the_balance_with_its_row,
    a_balance_never_wraps_around,
);

async fn reserve(db: &Db, wanted: &[(AccountId, i64)]) -> Vec<AccountId> {
    let wanted: Vec<_> = wanted.iter().map(|(id, n)| (*id, Amount(*n))).collect();
    let mut tx = db.write().await.unwrap();
    let mut enough = accounts::reserve(&mut tx, &wanted).await.unwrap();
    tx.commit().await.unwrap();
    enough.sort();
    enough
}

async fn move_money(db: &Db, moves: &[(AccountId, i64, i64)]) -> heliograph_store::Result<()> {
    let moves: Vec<_> = moves.iter().map(|(id, a, r)| (*id, Amount(*a), Amount(*r))).collect();
    let mut tx = db.write().await?;
    accounts::move_money(&mut tx, &moves).await?;
    tx.commit().await
}

async fn an_account_is_opened_once_for_an_address(db: TestDb) {
    let ann = account(&db, "ann@example.com", 0).await;
    let mut tx = db.db.write().await.unwrap();
    let other = (UserId(db.ids.next(BEGIN)), "ann@example.com");
    let again = accounts::create(&mut tx, other, "USD", true, at(5)).await.unwrap();
    assert_eq!(again, None);
    tx.commit().await.unwrap();
    let mut conn = db.db.read().await.unwrap();
    let found = accounts::by_email(&mut conn, "ann@example.com").await.unwrap().unwrap();
    assert_eq!((found.id, found.name.as_str()), (ann, "ann@example.com"));
    assert_eq!((found.currency.as_str(), found.created_at), ("EUR", BEGIN));
    assert_eq!((found.available, found.reserved), (Amount::ZERO, Amount::ZERO));
    assert_eq!(accounts::by_email(&mut conn, "Ann@example.com").await.unwrap(), None);
    assert_eq!(accounts::all(&mut conn).await.unwrap(), [found]);
}

async fn all_accounts_are_listed_the_oldest_first(db: TestDb) {
    let mut made = Vec::new();
    for name in ["zoe@example.com", "ann@example.com", "bob@example.com"] {
        made.push(account(&db, name, 1).await);
    }
    let all = accounts::all(&mut db.db.read().await.unwrap()).await.unwrap();
    assert_eq!(all.iter().map(|a| a.id).collect::<Vec<_>>(), made);
    assert_eq!(all[0].name, "zoe@example.com");
}

async fn money_is_reserved_all_or_nothing(db: TestDb) {
    let ann = account(&db, "ann@example.com", 100).await;
    let bob = account(&db, "bob@example.com", 50).await;
    let nobody = AccountId(i64::MAX);
    assert_eq!(reserve(&db.db, &[(ann, 100), (bob, 51), (nobody, 1)]).await, [ann]);
    assert_eq!(balance(&db.db, ann).await, (0, 100));
    assert_eq!(balance(&db.db, bob).await, (50, 0));
    assert_eq!(reserve(&db.db, &[(ann, 1), (bob, 50)]).await, [bob]);
    assert_eq!(balance(&db.db, bob).await, (0, 50));
    assert_eq!(reserve(&db.db, &[]).await, []);
}

async fn what_is_due_can_be_set_aside_at_once(db: TestDb) {
    let ann = account(&db, "ann@example.com", 100).await;
    let bob = account(&db, "bob@example.com", 100).await;
    assert_eq!(reserve(&db.db, &[(ann, 60), (bob, 60)]).await, [ann, bob]);
    // Of the 60, 20 come back and 40 are spent; of 60 free ones 61 are too many.
    let dues = |account, wanted| Dues {
        account,
        available: Amount(20),
        reserved: Amount(-60),
        wanted: Amount(wanted),
    };
    let mut tx = db.db.write().await.unwrap();
    let enough = accounts::settle(&mut tx, &[dues(ann, 60), dues(bob, 61)]).await.unwrap();
    tx.commit().await.unwrap();
    assert_eq!(enough, [ann]);
    assert_eq!(balance(&db.db, ann).await, (0, 60));
    assert_eq!(balance(&db.db, bob).await, (40, 60));
}

async fn money_moves_for_many_accounts_at_once(db: TestDb) {
    let ann = account(&db, "ann@example.com", 100).await;
    let bob = account(&db, "bob@example.com", 50).await;
    assert_eq!(reserve(&db.db, &[(ann, 60), (bob, 20)]).await, [ann, bob]);
    move_money(&db.db, &[(ann, 10, -40), (bob, 0, -20)]).await.unwrap();
    assert_eq!(balance(&db.db, ann).await, (50, 20));
    assert_eq!(balance(&db.db, bob).await, (30, 0));
    move_money(&db.db, &[]).await.unwrap();
}

async fn no_balance_falls_below_zero(db: TestDb) {
    let ann = account(&db, "ann@example.com", 100).await;
    let bob = account(&db, "bob@example.com", 100).await;
    for wrong in [[(ann, 5, 0), (bob, -101, 0)], [(ann, 5, 0), (bob, 0, -1)]] {
        let refused = move_money(&db.db, &wrong).await;
        assert!(matches!(refused, Err(Error::Db(_))), "{refused:?}");
    }
    assert_eq!(balance(&db.db, ann).await, (100, 0));
    assert_eq!(balance(&db.db, bob).await, (100, 0));
}

async fn reservations_at_the_same_time_never_spend_twice(db: TestDb) {
    let ann = account(&db, "ann@example.com", 100).await;
    let mut spending = JoinSet::new();
    for node in [db.db.clone(), db.again().await] {
        for _ in 0..8 {
            let node = node.clone();
            spending.spawn(async move { reserve(&node, &[(ann, 30)]).await.len() });
        }
    }
    assert_eq!(spending.join_all().await.into_iter().sum::<usize>(), 3);
    assert_eq!(balance(&db.db, ann).await, (10, 90));
}

async fn the_ledger_changes_the_balance_with_its_row(db: TestDb) {
    let ann = account(&db, "ann@example.com", 0).await;
    for (amount, done, balanced) in
        [(500, true, 500), (-200, true, 300), (-301, false, 300), (-300, true, 0), (-1, false, 0)]
    {
        assert_eq!(credit(&db, ann, amount).await, done, "{amount}");
        assert_eq!(balance(&db.db, ann).await, (balanced, 0));
    }
    let nobody = Entry {
        id: db.ids.next(BEGIN),
        account: AccountId(i64::MAX),
        kind: Kind::Credit,
        amount: Amount(1),
        note: "",
        at: BEGIN,
    };
    assert!(ledger::add(&mut db.db.write().await.unwrap(), &nobody).await.is_err());
    let sql = "SELECT CAST(account AS text), CAST(amount AS text), note, CAST(created_at AS text)
        FROM ledger ORDER BY id";
    let row = |n: &str| [ann.to_string(), n.into(), "thanks".into(), BEGIN.0.to_string()].to_vec();
    assert_eq!(look(&db, sql).await, ["500", "-200", "-300"].map(row));
    let mut snapshot = db.db.snapshot().await.unwrap();
    assert_eq!(check::violations(&mut snapshot).await.unwrap(), [""; 0]);
}

async fn a_balance_never_wraps_around(db: TestDb) {
    let ann = account(&db, "ann@example.com", i64::MAX).await;
    let mut tx = db.db.write().await.unwrap();
    let one_more = Entry {
        id: db.ids.next(BEGIN),
        account: ann,
        kind: Kind::Credit,
        amount: Amount(1),
        note: "",
        at: BEGIN,
    };
    let refused = ledger::add(&mut tx, &one_more).await;
    assert!(matches!(refused, Err(Error::Db(_))), "{refused:?}");
    drop(tx);
    assert_eq!(balance(&db.db, ann).await, (i64::MAX, 0));
}
