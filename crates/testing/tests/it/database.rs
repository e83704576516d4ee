//! Tests of `TestDb`: a database is empty, separate from others, and removed when its test ends.

use heliograph_store::identity::accounts;
use heliograph_store::operations::carriers;
use heliograph_store::{Db, Options, StoreError};
use heliograph_testing::{TestDb, TestEngine, engine, sealing_key};
use tokio::task::JoinSet;

async fn carrier_count(db: &Db) -> usize {
    carriers::list(&mut db.read().await.unwrap()).await.unwrap().len()
}

/// Asserts that the database of this URL does not exist.
async fn assert_removed(url: &str, db: &TestDb) {
    if let Some(path) = url.strip_prefix("sqlite:") {
        assert!(!std::path::Path::new(path).parent().unwrap().exists());
        return;
    }
    let (url, clock) = (url.to_owned(), db.clock.clone());
    let options = Options { url, connections: 1, key: sealing_key(), clock };
    let error = Db::open(options).await.err().unwrap();
    let StoreError::Unavailable(reason) = &error else { panic!("{error:?}") };
    assert!(reason.contains("does not exist"), "{reason}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_test_has_an_empty_database_of_its_own() {
    let (one, two) = (TestDb::new().await, TestDb::new().await);
    let mut tx = one.db.write().await.unwrap();
    carriers::get_or_create(&mut tx, "acme").await.unwrap();
    tx.commit().await.unwrap();
    assert_eq!((carrier_count(&one.db).await, carrier_count(&two.db).await), (1, 0));
    assert_eq!(accounts::all(&mut two.db.read().await.unwrap()).await.unwrap(), []);
    assert_eq!(carrier_count(&one.reopen().await).await, 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_engine_comes_from_the_environment() {
    let db = TestDb::new().await;
    assert_eq!(db.db.is_shared(), engine() == TestEngine::Postgres);
    assert!(!TestDb::sqlite().await.db.is_shared());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_dropped_database_is_removed() {
    let (db, other) = (TestDb::new().await, TestDb::new().await);
    let url = db.url.clone();
    let another_node = db.reopen().await;
    drop(db);
    assert_removed(&url, &other).await;
    drop(another_node);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_database_of_a_test_that_panics_is_removed() {
    let (db, other) = (TestDb::new().await, TestDb::new().await);
    let url = db.url.clone();
    let mut test = JoinSet::new();
    test.spawn(async move {
        let db = db; // all of it, not only the field
        let _tx = db.db.write().await.unwrap();
        panic!("expected: this test panics on purpose");
    });
    assert!(test.join_next().await.unwrap().unwrap_err().is_panic());
    assert_removed(&url, &other).await;
}
