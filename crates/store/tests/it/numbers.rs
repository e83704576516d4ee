//! Tests of the ids of carriers and nodes, which never change.

use crate::fixtures::at;
use heliograph_domain::id::{CarrierId, Ids, NodeId};
use heliograph_store::Db;
use heliograph_store::operations::carriers;
use heliograph_store::operations::nodes;
use heliograph_testing::{START, TestDb};
use tokio::task::JoinSet;
use uuid::Uuid;

async fn carrier(db: &Db, name: &str) -> CarrierId {
    let mut tx = db.write().await.unwrap();
    let number = carriers::get_or_create(&mut tx, name).await.unwrap();
    tx.commit().await.unwrap();
    number
}

async fn node(db: &Db, identity: Uuid, seconds: u64) -> NodeId {
    let mut tx = db.write().await.unwrap();
    let number = nodes::get_or_create(&mut tx, identity, at(seconds)).await.unwrap();
    tx.commit().await.unwrap();
    number
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_carrier_keeps_its_id() {
    let db = TestDb::new().await;
    let acme = carrier(&db.db, "acme").await;
    let other = carrier(&db.db, "Acme ñ").await;
    assert_ne!(acme, other);
    let again = db.reopen().await;
    assert_eq!((carrier(&again, "Acme ñ").await, carrier(&again, "acme").await), (other, acme));
    let all = carriers::list(&mut db.db.read().await.unwrap()).await.unwrap();
    assert_eq!(all, [(acme, "acme".to_owned()), (other, "Acme ñ".to_owned())]);
}

/// Ids are small integers, and every node looks up all of them whenever it starts.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn look_ups_use_up_no_ids() {
    let db = TestDb::new().await;
    let first = carrier(&db.db, "first").await;
    for _ in 0..20 {
        assert_eq!(carrier(&db.db, "first").await, first);
    }
    assert_eq!(carrier(&db.db, "second").await.0, first.0 + 1);
    let identity = db.ids.next(START);
    let here = node(&db.db, identity, 0).await;
    for _ in 0..20 {
        assert_eq!(node(&db.db, identity, 0).await, here);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn concurrent_look_ups_return_the_same_id() {
    let db = TestDb::new().await;
    let mut look_ups = JoinSet::new();
    for own in [db.db.clone(), db.reopen().await, db.reopen().await] {
        look_ups.spawn(async move { carrier(&own, "acme").await });
    }
    let numbers = look_ups.join_all().await;
    assert!(numbers.iter().all(|n| *n == numbers[0]), "{numbers:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_node_keeps_its_id() {
    let db = TestDb::new().await;
    let [a, b] = [db.ids.next(START), db.ids.next(START)];
    let here = node(&db.db, a, 1).await;
    let there = node(&db.db, b, 2).await;
    assert_ne!(here, there);
    assert_eq!(node(&db.db, a, 9).await, here);
    let started = db.query_raw("SELECT CAST(started_at AS text) FROM nodes ORDER BY id").await;
    assert_eq!(started, [[at(9).0.to_string()], [at(2).0.to_string()]]);
}
