//! API keys: known by their hash, valid until they are revoked.

use crate::rows::{account, at};
use crate::support::{BEGIN, TestDb, on_both_engines};
use heliograph_domain::account::{Mode, Scope, Scopes};
use heliograph_domain::id::{AccountId, ApiKeyId, Ids};
use heliograph_store::api_keys::{self, ApiKey};
use heliograph_store::{Error, Result, optouts};

on_both_engines!(api_keys:
    a_key_is_known_by_its_hash,
    a_key_needs_an_account_and_a_hash_of_its_own,
    keys_are_listed_for_their_account,
    a_key_is_revoked_once,
    only_valid_keys_are_valid,
    the_last_use_is_kept_and_never_goes_back,
);

fn key(db: &TestDb, account: AccountId) -> ApiKey {
    ApiKey {
        id: ApiKeyId(db.ids.next(BEGIN)),
        account,
        mode: Mode::Test,
        scopes: [Scope::Send, Scope::Manage].into_iter().collect(),
        name: "Kasse № 1 'ñ'".to_owned(),
        created_at: at(3),
        revoked_at: None,
        last_used_at: None,
    }
}

async fn insert(db: &TestDb, key: &ApiKey, hash: u8) -> Result<()> {
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

async fn a_key_is_known_by_its_hash(db: TestDb) {
    let ann = account(&db, "ann@example.com", 0).await;
    let stored = key(&db, ann);
    insert(&db, &stored, 7).await.unwrap();
    let mut conn = db.db.read().await.unwrap();
    let found = api_keys::by_hash(&mut conn, &[7; 32]).await.unwrap().unwrap();
    let list = optouts::standard(&mut conn, (ann, stored.mode)).await.unwrap().unwrap();
    assert_eq!(found, (stored, "EUR".to_owned(), list.id));
    assert_eq!(api_keys::by_hash(&mut conn, &[8; 32]).await.unwrap(), None);
}

async fn a_key_needs_an_account_and_a_hash_of_its_own(db: TestDb) {
    let ann = account(&db, "ann@example.com", 0).await;
    insert(&db, &key(&db, ann), 7).await.unwrap();
    let same_hash = insert(&db, &key(&db, ann), 7).await;
    assert!(matches!(same_hash, Err(Error::Db(_))), "{same_hash:?}");
    let nobody = insert(&db, &key(&db, AccountId(i64::MAX)), 8).await;
    assert!(matches!(nobody, Err(Error::Db(_))), "{nobody:?}");
}

async fn keys_are_listed_for_their_account(db: TestDb) {
    let ann = account(&db, "ann@example.com", 0).await;
    let bob = account(&db, "bob@example.com", 0).await;
    let hers = [key(&db, ann), key(&db, ann)];
    for (key, hash) in [(&hers[1], 1), (&key(&db, bob), 2), (&hers[0], 3)] {
        insert(&db, key, hash).await.unwrap();
    }
    let mut conn = db.db.read().await.unwrap();
    assert_eq!(api_keys::of(&mut conn, ann).await.unwrap(), hers);
    assert_eq!(api_keys::of(&mut conn, bob).await.unwrap().len(), 1);
}

async fn a_key_is_revoked_once(db: TestDb) {
    let ann = account(&db, "ann@example.com", 0).await;
    let stored = key(&db, ann);
    insert(&db, &stored, 7).await.unwrap();
    let bob = account(&db, "bob@example.com", 0).await;
    assert!(!revoke(&db, bob, stored.id, 9).await);
    assert!(revoke(&db, ann, stored.id, 9).await);
    assert!(!revoke(&db, ann, stored.id, 10).await);
    assert!(!revoke(&db, ann, ApiKeyId(db.ids.next(BEGIN)), 9).await);
    let mut conn = db.db.read().await.unwrap();
    let (found, ..) = api_keys::by_hash(&mut conn, &[7; 32]).await.unwrap().unwrap();
    assert_eq!(found, ApiKey { revoked_at: Some(at(9)), ..stored });
}

async fn only_valid_keys_are_valid(db: TestDb) {
    let ann = account(&db, "ann@example.com", 0).await;
    let (good, revoked) = (key(&db, ann), key(&db, ann));
    let all = ApiKey { scopes: Scopes::ALL, ..key(&db, ann) };
    for (key, hash) in [(&good, 1), (&revoked, 2), (&all, 3)] {
        insert(&db, key, hash).await.unwrap();
    }
    assert!(revoke(&db, ann, revoked.id, 9).await);
    let unknown = ApiKeyId(db.ids.next(BEGIN));
    let mut conn = db.db.read().await.unwrap();
    let asked = [good.id, revoked.id, unknown, all.id];
    let mut valid = conn.ask(api_keys::valid(&asked)).await.unwrap();
    valid.sort_by_key(|(id, _)| *id);
    assert_eq!(valid, [(good.id, good.scopes), (all.id, Scopes::ALL)]);
    assert_eq!(conn.ask(api_keys::valid(&[])).await.unwrap(), []);
}

async fn the_last_use_is_kept_and_never_goes_back(db: TestDb) {
    let ann = account(&db, "ann@example.com", 0).await;
    let (used, unused, revoked) = (key(&db, ann), key(&db, ann), key(&db, ann));
    for (key, hash) in [(&used, 1), (&unused, 2), (&revoked, 3)] {
        insert(&db, key, hash).await.unwrap();
    }
    assert!(revoke(&db, ann, revoked.id, 9).await);
    for seconds in [7, 8, 6] {
        let mut tx = db.db.write().await.unwrap();
        let all = [(used.id, at(seconds)), (revoked.id, at(seconds + 3))];
        api_keys::used(&mut tx, &all).await.unwrap();
        tx.commit().await.unwrap();
    }
    let mut conn = db.db.read().await.unwrap();
    let valid = api_keys::newest(&mut conn, ann, false, 9).await.unwrap();
    let last: Vec<_> = valid.iter().map(|k| (k.id, k.last_used_at)).collect();
    assert_eq!(last, [(unused.id, None), (used.id, Some(at(8)))]);
    assert_eq!(api_keys::newest(&mut conn, ann, false, 1).await.unwrap().len(), 1);
    let gone = api_keys::newest(&mut conn, ann, true, 9).await.unwrap();
    // What came after it was revoked was refused.
    assert_eq!((gone.len(), gone[0].last_used_at), (1, None));
    assert_eq!(api_keys::owner(&mut conn, used.id).await.unwrap(), Some(ann));
}
