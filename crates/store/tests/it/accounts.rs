//! Tests of accounts.

use crate::fixtures::{account, at};
use heliograph_domain::id::{AccountId, Ids, UserId};
use heliograph_domain::money::Amount;
use heliograph_store::identity::accounts;
use heliograph_store::identity::users::{self, NewUser};
use heliograph_testing::{START, TestDb};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_email_address_has_one_account() {
    let db = TestDb::new().await;
    let ann = account(&db, "ann@example.com", 0).await;
    let mut tx = db.db.write().await.unwrap();
    let (id, email) = (UserId(db.ids.next(START)), "ann@example.com".to_owned());
    let other = NewUser { id, email, operator: true, created_at: at(5) };
    assert!(!users::insert(&mut tx, &other).await.unwrap());
    tx.commit().await.unwrap();
    let mut conn = db.db.read().await.unwrap();
    let found = accounts::by_id(&mut conn, ann).await.unwrap().unwrap();
    assert_eq!((found.id, found.name.as_str()), (ann, "ann@example.com"));
    assert_eq!((found.currency.as_str(), found.created_at), ("EUR", START));
    assert_eq!((found.available, found.reserved), (Amount::ZERO, Amount::ZERO));
    assert_eq!(accounts::by_id(&mut conn, AccountId(ann.0 + 1)).await.unwrap(), None);
    assert_eq!(accounts::all(&mut conn).await.unwrap(), [found]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn accounts_are_listed_oldest_first() {
    let db = TestDb::new().await;
    let mut made = Vec::new();
    for name in ["zoe@example.com", "ann@example.com", "bob@example.com"] {
        made.push(account(&db, name, 1).await);
    }
    let all = accounts::all(&mut db.db.read().await.unwrap()).await.unwrap();
    assert_eq!(all.iter().map(|a| a.id).collect::<Vec<_>>(), made);
    assert_eq!(all[0].name, "zoe@example.com");
}
