//! Numbers: carriers and nodes keep theirs for good.

use crate::rows::{at, look};
use crate::support::{BEGIN, TestDb, on_both_engines};
use heliograph_domain::id::{CarrierId, Ids, NodeId};
use heliograph_store::{Db, carriers, nodes};
use tokio::task::JoinSet;
use uuid::Uuid;

on_both_engines!(numbers:
    a_carrier_keeps_its_number,
    asking_uses_up_no_numbers,
    nodes_that_ask_at_once_get_the_same,
    a_node_keeps_its_number,
);

async fn carrier(db: &Db, name: &str) -> CarrierId {
    let mut tx = db.write().await.unwrap();
    let number = carriers::number(&mut tx, name).await.unwrap();
    tx.commit().await.unwrap();
    number
}

async fn node(db: &Db, identity: Uuid, seconds: u64) -> NodeId {
    let mut tx = db.write().await.unwrap();
    let number = nodes::number(&mut tx, identity, at(seconds)).await.unwrap();
    tx.commit().await.unwrap();
    number
}

async fn a_carrier_keeps_its_number(db: TestDb) {
    let acme = carrier(&db.db, "acme").await;
    let other = carrier(&db.db, "Acme ñ").await;
    assert_ne!(acme, other);
    let again = db.again().await;
    assert_eq!((carrier(&again, "Acme ñ").await, carrier(&again, "acme").await), (other, acme));
    let all = carriers::all(&mut db.db.read().await.unwrap()).await.unwrap();
    assert_eq!(all, [(acme, "acme".to_owned()), (other, "Acme ñ".to_owned())]);
}

/// The numbers are small, and every start of every node asks for all of them.
async fn asking_uses_up_no_numbers(db: TestDb) {
    let first = carrier(&db.db, "first").await;
    for _ in 0..20 {
        assert_eq!(carrier(&db.db, "first").await, first);
    }
    assert_eq!(carrier(&db.db, "second").await.0, first.0 + 1);
    let identity = db.ids.next(BEGIN);
    let here = node(&db.db, identity, 0).await;
    for _ in 0..20 {
        assert_eq!(node(&db.db, identity, 0).await, here);
    }
}

async fn nodes_that_ask_at_once_get_the_same(db: TestDb) {
    let mut asking = JoinSet::new();
    for own in [db.db.clone(), db.again().await, db.again().await] {
        asking.spawn(async move { carrier(&own, "acme").await });
    }
    let numbers = asking.join_all().await;
    assert!(numbers.iter().all(|n| *n == numbers[0]), "{numbers:?}");
}

async fn a_node_keeps_its_number(db: TestDb) {
    let [a, b] = [db.ids.next(BEGIN), db.ids.next(BEGIN)];
    let here = node(&db.db, a, 1).await;
    let there = node(&db.db, b, 2).await;
    assert_ne!(here, there);
    assert_eq!(node(&db.db, a, 9).await, here);
    let started = look(&db, "SELECT CAST(started_at AS text) FROM nodes ORDER BY id").await;
    assert_eq!(started, [[at(9).0.to_string()], [at(2).0.to_string()]]);
}
