//! PostgreSQL alone: broken connections, deadlocks, and a server that is not there.

use crate::rows::{account, balance, message};
use crate::support::{TestDb, key, on_postgres};
use heliograph_domain::id::AccountId;
use heliograph_domain::money::Amount;
use heliograph_store::{Db, Error, Options, Tx, accounts, messages};

/// Ends all connections of this test's database but the one that does it.
const KILL: &str = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity
    WHERE datname = current_database() AND pid <> pg_backend_pid()";

async fn give(tx: &mut Tx, account: AccountId) -> heliograph_store::Result<()> {
    accounts::move_money(tx, &[(account, Amount(1), Amount(0))]).await
}

#[test]
fn a_connection_that_breaks_is_unavailable_and_the_next_one_works() {
    on_postgres(async |db: TestDb| {
        let ann = account(&db, "ann@example.com", 100).await;
        let mut tx = db.db.write().await.unwrap();
        give(&mut tx, ann).await.unwrap();
        db.behind(KILL).await;
        let broken = give(&mut tx, ann).await;
        assert!(matches!(broken, Err(Error::Unavailable(_))), "{broken:?}");
        drop(tx);
        let mut tx = db.db.write().await.unwrap();
        give(&mut tx, ann).await.unwrap();
        tx.commit().await.unwrap();
        assert_eq!(balance(&db.db, ann).await, (101, 0));
    });
}

#[test]
fn a_connection_that_breaks_before_the_commit_loses_the_commit() {
    on_postgres(async |db: TestDb| {
        let ann = account(&db, "ann@example.com", 100).await;
        let mut tx = db.db.write().await.unwrap();
        give(&mut tx, ann).await.unwrap();
        db.behind(KILL).await;
        let lost = tx.commit().await;
        assert!(matches!(lost, Err(Error::CommitLost(_))), "{lost:?}");
        assert_eq!(balance(&db.db, ann).await, (100, 0));
    });
}

/// What travels with the commit can fail there, and the server then calls its rollback a success.
#[test]
fn what_went_ahead_and_failed_fails_the_commit() {
    on_postgres(async |db: TestDb| {
        let (old, new) = (message(&db, AccountId(1)), message(&db, AccountId(1)));
        for (all, done) in [(vec![&old], true), (vec![&new, &old], false), (vec![&new], true)] {
            let mut tx = db.db.write().await.unwrap();
            for m in &all {
                messages::insert(&mut tx, &[*m]).await.unwrap();
            }
            let end = tx.commit().await;
            assert!(matches!((&end, done), (Ok(()), true) | (Err(Error::Db(_)), false)), "{end:?}");
            let mut conn = db.db.read().await.unwrap();
            assert_eq!(
                messages::exists(&mut conn, new.account, new.id).await.unwrap(),
                done && all == [&new]
            );
        }
    });
}

#[test]
fn a_deadlock_is_a_conflict_for_one_and_nothing_to_the_other() {
    on_postgres(async |db: TestDb| {
        let ann = account(&db, "ann@example.com", 0).await;
        let bob = account(&db, "bob@example.com", 0).await;
        let mut one = db.db.write().await.unwrap();
        let mut two = db.db.write().await.unwrap();
        give(&mut one, ann).await.unwrap();
        give(&mut two, bob).await.unwrap();
        let (a, b) =
            tokio::join!(async { (give(&mut one, bob).await, one.commit().await) }, async {
                (give(&mut two, ann).await, two.commit().await)
            },);
        let conflicts = [&a.0, &b.0].map(|r| matches!(r, Err(Error::Conflict(_))));
        assert_eq!(conflicts.iter().filter(|c| **c).count(), 1, "{a:?} {b:?}");
        assert!([a.0, b.0].iter().any(Result::is_ok));
        assert_eq!((balance(&db.db, ann).await, balance(&db.db, bob).await), ((1, 0), (1, 0)));
    });
}

/// The pool never hands on a connection with half a transaction on it.
#[test]
fn a_transaction_that_nobody_ended_holds_no_lock() {
    on_postgres(async |db: TestDb| {
        let ann = account(&db, "ann@example.com", 100).await;
        for _ in 0..20 {
            let mut tx = db.db.write().await.unwrap();
            give(&mut tx, ann).await.unwrap();
            drop(tx);
        }
        assert_eq!(balance(&db.db, ann).await, (100, 0));
        let mut tx = db.db.write().await.unwrap();
        give(&mut tx, ann).await.unwrap();
        tx.commit().await.unwrap();
        assert_eq!(balance(&db.db, ann).await, (101, 0));
    });
}

#[test]
fn a_server_out_of_reach_is_unavailable() {
    on_postgres(async |db: TestDb| {
        for url in ["postgres://nobody@127.0.0.1:1/none", "postgresql://nobody@127.0.0.1:1/none"] {
            let options =
                Options { url: url.into(), connections: 1, key: key(), clock: db.clock.clone() };
            let refused = Db::open(options).await.map(drop);
            assert!(matches!(refused, Err(Error::Unavailable(_))), "{refused:?}");
        }
    });
}
