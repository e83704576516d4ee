//! Broken connections, deadlocks and an unreachable server.

use crate::fixtures::{account, balance, message};
use heliograph_domain::id::AccountId;
use heliograph_domain::money::Amount;
use heliograph_store::billing::balances;
use heliograph_store::messaging::messages;
use heliograph_store::{Db, Options, StoreError, Tx};
use heliograph_testing::{TestDb, sealing_key};

/// Closes all other connections of the test's database.
const KILL: &str = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity
    WHERE datname = current_database() AND pid <> pg_backend_pid()";

async fn credit_one(tx: &mut Tx, account: AccountId) -> heliograph_store::StoreResult<()> {
    balances::adjust(tx, &[(account, Amount(1), Amount(0))]).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_broken_connection_is_unavailable_and_the_next_one_works() {
    let db = TestDb::postgres().await;
    let ann = account(&db, "ann@example.com", 100).await;
    let mut tx = db.db.write().await.unwrap();
    credit_one(&mut tx, ann).await.unwrap();
    db.execute_raw(KILL).await;
    let broken = credit_one(&mut tx, ann).await;
    assert!(matches!(broken, Err(StoreError::Unavailable(_))), "{broken:?}");
    drop(tx);
    let mut tx = db.db.write().await.unwrap();
    credit_one(&mut tx, ann).await.unwrap();
    tx.commit().await.unwrap();
    assert_eq!(balance(&db.db, ann).await, (101, 0));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_connection_that_breaks_before_the_commit_is_commit_lost() {
    let db = TestDb::postgres().await;
    let ann = account(&db, "ann@example.com", 100).await;
    let mut tx = db.db.write().await.unwrap();
    credit_one(&mut tx, ann).await.unwrap();
    db.execute_raw(KILL).await;
    let lost = tx.commit().await;
    assert!(matches!(lost, Err(StoreError::CommitLost(_))), "{lost:?}");
    assert_eq!(balance(&db.db, ann).await, (100, 0));
}

/// A statement that is pipelined with the commit can fail; the server then reports success for the
/// rollback.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_failed_pipelined_statement_fails_the_commit() {
    let db = TestDb::postgres().await;
    let (old, new) = (message(&db, AccountId(1)), message(&db, AccountId(1)));
    for (all, done) in [(vec![&old], true), (vec![&new, &old], false), (vec![&new], true)] {
        let mut tx = db.db.write().await.unwrap();
        for m in &all {
            messages::insert(&mut tx, &[*m]).await.unwrap();
        }
        let end = tx.commit().await;
        assert!(
            matches!((&end, done), (Ok(()), true) | (Err(StoreError::Db(_)), false)),
            "{end:?}"
        );
        let mut conn = db.db.read().await.unwrap();
        assert_eq!(
            messages::exists(&mut conn, new.account, new.id).await.unwrap(),
            done && all == [&new]
        );
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_deadlock_is_a_conflict_for_one_transaction_only() {
    let db = TestDb::postgres().await;
    let ann = account(&db, "ann@example.com", 0).await;
    let bob = account(&db, "bob@example.com", 0).await;
    let mut one = db.db.write().await.unwrap();
    let mut two = db.db.write().await.unwrap();
    credit_one(&mut one, ann).await.unwrap();
    credit_one(&mut two, bob).await.unwrap();
    let (a, b) =
        tokio::join!(async { (credit_one(&mut one, bob).await, one.commit().await) }, async {
            (credit_one(&mut two, ann).await, two.commit().await)
        },);
    let conflicts = [&a.0, &b.0].map(|r| matches!(r, Err(StoreError::Conflict(_))));
    assert_eq!(conflicts.iter().filter(|c| **c).count(), 1, "{a:?} {b:?}");
    assert!([a.0, b.0].iter().any(Result::is_ok));
    assert_eq!((balance(&db.db, ann).await, balance(&db.db, bob).await), ((1, 0), (1, 0)));
}

/// The pool never reuses a connection with an open transaction.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_abandoned_transaction_holds_no_lock() {
    let db = TestDb::postgres().await;
    let ann = account(&db, "ann@example.com", 100).await;
    for _ in 0..20 {
        let mut tx = db.db.write().await.unwrap();
        credit_one(&mut tx, ann).await.unwrap();
        drop(tx);
    }
    assert_eq!(balance(&db.db, ann).await, (100, 0));
    let mut tx = db.db.write().await.unwrap();
    credit_one(&mut tx, ann).await.unwrap();
    tx.commit().await.unwrap();
    assert_eq!(balance(&db.db, ann).await, (101, 0));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_unreachable_server_is_unavailable() {
    let db = TestDb::postgres().await;
    for url in ["postgres://nobody@127.0.0.1:1/none", "postgresql://nobody@127.0.0.1:1/none"] {
        let options = Options {
            url: url.into(),
            connections: 1,
            key: sealing_key(),
            clock: db.clock.clone(),
        };
        let refused = Db::open(options).await.map(drop);
        assert!(matches!(refused, Err(StoreError::Unavailable(_))), "{refused:?}");
    }
}
