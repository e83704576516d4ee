//! Tests of API keys: they are found by hash and valid until they are revoked.

use crate::fixtures::{account, at};
use heliograph_domain::account::{Mode, Scope, Scopes};
use heliograph_domain::id::{AccountId, ApiKeyId, Ids};
use heliograph_store::audience::optouts;
use heliograph_store::identity::api_keys::{self, ApiKeyRecord};
use heliograph_store::{StoreError, StoreResult};
use heliograph_testing::{START, TestDb};

fn key(db: &TestDb, account: AccountId) -> ApiKeyRecord {
    ApiKeyRecord {
        id: ApiKeyId(db.ids.next(START)),
        account,
        mode: Mode::Test,
        scopes: [Scope::Send, Scope::Manage].into_iter().collect(),
        name: "Kasse № 1 'ñ'".to_owned(),
        prefix: "hg_live_abcd".to_owned(),
        created_at: at(3),
        revoked_at: None,
        last_used_at: None,
    }
}

async fn insert(db: &TestDb, key: &ApiKeyRecord, hash: u8) -> StoreResult<()> {
    let mut tx = db.db.write().await?;
    api_keys::insert(&mut tx, key, &[hash; 32]).await?;
    tx.commit().await
}

async fn revoke(db: &TestDb, account: AccountId, id: ApiKeyId, seconds: u64) -> bool {
    let mut tx = db.db.write().await.unwrap();
    let done = api_keys::revoke(&mut tx, (account, id), at(seconds)).await.unwrap();
    tx.commit().await.unwrap();
    done.is_some()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_key_is_found_by_its_hash() {
    let db = TestDb::new().await;
    let ann = account(&db, "ann@example.com", 0).await;
    let stored = key(&db, ann);
    insert(&db, &stored, 7).await.unwrap();
    let mut conn = db.db.read().await.unwrap();
    let found = api_keys::by_hash(&mut conn, &[7; 32]).await.unwrap().unwrap();
    let list = optouts::default_list(&mut conn, (ann, stored.mode)).await.unwrap().unwrap();
    assert_eq!(found, (stored, "EUR".to_owned(), list.id));
    assert_eq!(api_keys::by_hash(&mut conn, &[8; 32]).await.unwrap(), None);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_key_needs_an_account_and_a_unique_hash() {
    let db = TestDb::new().await;
    let ann = account(&db, "ann@example.com", 0).await;
    insert(&db, &key(&db, ann), 7).await.unwrap();
    let same_hash = insert(&db, &key(&db, ann), 7).await;
    assert!(matches!(same_hash, Err(StoreError::Db(_))), "{same_hash:?}");
    let unknown_account = insert(&db, &key(&db, AccountId(i64::MAX)), 8).await;
    assert!(matches!(unknown_account, Err(StoreError::Db(_))), "{unknown_account:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn keys_are_listed_for_their_account() {
    let db = TestDb::new().await;
    let ann = account(&db, "ann@example.com", 0).await;
    let bob = account(&db, "bob@example.com", 0).await;
    let of_ann = [key(&db, ann), key(&db, ann)];
    for (key, hash) in [(&of_ann[1], 1), (&key(&db, bob), 2), (&of_ann[0], 3)] {
        insert(&db, key, hash).await.unwrap();
    }
    let mut conn = db.db.read().await.unwrap();
    assert_eq!(api_keys::list(&mut conn, ann).await.unwrap(), of_ann);
    assert_eq!(api_keys::list(&mut conn, bob).await.unwrap().len(), 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_key_is_revoked_once() {
    let db = TestDb::new().await;
    let ann = account(&db, "ann@example.com", 0).await;
    let stored = key(&db, ann);
    insert(&db, &stored, 7).await.unwrap();
    let bob = account(&db, "bob@example.com", 0).await;
    assert!(!revoke(&db, bob, stored.id, 9).await);
    assert!(revoke(&db, ann, stored.id, 9).await);
    assert!(!revoke(&db, ann, stored.id, 10).await);
    assert!(!revoke(&db, ann, ApiKeyId(db.ids.next(START)), 9).await);
    let mut conn = db.db.read().await.unwrap();
    let (found, ..) = api_keys::by_hash(&mut conn, &[7; 32]).await.unwrap().unwrap();
    assert_eq!(found, ApiKeyRecord { revoked_at: Some(at(9)), ..stored });
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn revoked_and_unknown_keys_are_not_valid() {
    let db = TestDb::new().await;
    let ann = account(&db, "ann@example.com", 0).await;
    let (good, revoked) = (key(&db, ann), key(&db, ann));
    let all = ApiKeyRecord { scopes: Scopes::ALL, ..key(&db, ann) };
    for (key, hash) in [(&good, 1), (&revoked, 2), (&all, 3)] {
        insert(&db, key, hash).await.unwrap();
    }
    assert!(revoke(&db, ann, revoked.id, 9).await);
    let unknown = ApiKeyId(db.ids.next(START));
    let mut conn = db.db.read().await.unwrap();
    let asked = [good.id, revoked.id, unknown, all.id];
    let mut valid = conn.query_many(api_keys::valid(&asked)).await.unwrap();
    valid.sort_by_key(|(id, _)| *id);
    assert_eq!(valid, [(good.id, good.scopes), (all.id, Scopes::ALL)]);
    assert_eq!(conn.query_many(api_keys::valid(&[])).await.unwrap(), []);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_last_use_never_moves_back() {
    let db = TestDb::new().await;
    let ann = account(&db, "ann@example.com", 0).await;
    let (used, unused, revoked) = (key(&db, ann), key(&db, ann), key(&db, ann));
    for (key, hash) in [(&used, 1), (&unused, 2), (&revoked, 3)] {
        insert(&db, key, hash).await.unwrap();
    }
    assert!(revoke(&db, ann, revoked.id, 9).await);
    for seconds in [7, 8, 6] {
        let mut tx = db.db.write().await.unwrap();
        let all = [(used.id, at(seconds)), (revoked.id, at(seconds + 3))];
        api_keys::record_use(&mut tx, &all).await.unwrap();
        tx.commit().await.unwrap();
    }
    let mut conn = db.db.read().await.unwrap();
    let valid = api_keys::newest(&mut conn, ann, false, 9).await.unwrap();
    let last: Vec<_> = valid.iter().map(|k| (k.id, k.last_used_at)).collect();
    assert_eq!(last, [(unused.id, None), (used.id, Some(at(8)))]);
    assert_eq!(api_keys::newest(&mut conn, ann, false, 1).await.unwrap().len(), 1);
    let gone = api_keys::newest(&mut conn, ann, true, 9).await.unwrap();
    // Requests after the revocation were rejected.
    assert_eq!((gone.len(), gone[0].last_used_at), (1, None));
    assert_eq!(api_keys::owner(&mut conn, used.id).await.unwrap(), Some(ann));
}
