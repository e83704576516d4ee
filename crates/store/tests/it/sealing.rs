//! Tests of secrets at rest: the database holds none in plain text and opens with its own key only.

use crate::fixtures::{account, at};
use crate::webhook_fixtures::{endpoint, register, secret};
use heliograph_domain::id::{Ids, UserId};
use heliograph_domain::totp::{SECRET_BYTES, TotpSecret};
use heliograph_store::identity::accounts;
use heliograph_store::identity::mails;
use heliograph_store::identity::users::{self, NewUser};
use heliograph_store::webhooks::endpoints;
use heliograph_store::{Db, KEY_BYTES, Options, SealingKey, StoreError, rotate_sealing_key};
use heliograph_testing::{START, TestDb, sealing_key};

const SECRETS: &str = "SELECT secret, coalesce(old_secret, '') FROM endpoints ORDER BY id";

async fn open(db: &TestDb, key: SealingKey) -> heliograph_store::StoreResult<Db> {
    let (url, clock) = (db.url.clone(), db.clock.clone());
    Db::open(Options { url, connections: 2, key, clock }).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_secrets_of_endpoints_are_sealed() {
    let db = TestDb::new().await;
    let ann = account(&db, "ann@example.com", 0).await;
    let id = register(&db, &endpoint(ann)).await;
    let mut tx = db.db.write().await.unwrap();
    endpoints::rotate_secret(&mut tx, id, &secret(2), at(10)).await.unwrap();
    tx.commit().await.unwrap();
    for sealed in db.query_raw(SECRETS).await.concat() {
        assert!(sealed.starts_with("v1.") && !sealed.contains("whsec_"), "{sealed}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_first_key_seals_plain_secrets() {
    let db = TestDb::new().await;
    let ann = account(&db, "ann@example.com", 0).await;
    let wanted = endpoint(ann);
    let id = register(&db, &wanted).await;
    let plain = format!("UPDATE endpoints SET secret = '{}'", wanted.secret.reveal());
    db.execute_raw(&format!("DELETE FROM installation; {plain}")).await;
    let again = open(&db, sealing_key()).await.unwrap();
    assert!(db.query_raw(SECRETS).await[0][0].starts_with("v1."));
    let found = endpoints::by_id(&mut again.read().await.unwrap(), id).await.unwrap().unwrap();
    assert_eq!(found.secret, wanted.secret);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_node_with_another_key_is_rejected() {
    let db = TestDb::new().await;
    account(&db, "ann@example.com", 0).await;
    let refused = open(&db, SealingKey::from_random([8; KEY_BYTES])).await.err().unwrap();
    assert!(matches!(refused, StoreError::WrongKey), "{refused}");
    assert!(refused.to_string().contains("database.sealing_key"), "{refused}");
    open(&db, sealing_key()).await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_database_without_users_accepts_any_key() {
    let db = TestDb::new().await;
    let other = SealingKey::from_random([8; KEY_BYTES]);
    open(&db, other.clone()).await.unwrap();
    open(&db, other).await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_sealed_secret_opens_only_in_its_own_row() {
    let db = TestDb::new().await;
    let ann = account(&db, "ann@example.com", 0).await;
    let (one, two) = (register(&db, &endpoint(ann)).await, register(&db, &endpoint(ann)).await);
    let other = format!("(SELECT secret FROM endpoints WHERE id = {})", two.0);
    db.execute_raw(&format!("UPDATE endpoints SET secret = {other} WHERE id = {}", one.0)).await;
    let mut conn = db.db.read().await.unwrap();
    let found = endpoints::by_id(&mut conn, one).await;
    assert!(matches!(found, Err(StoreError::Corrupt(_))), "{found:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn totp_secrets_and_emails_are_sealed() {
    let db = TestDb::new().await;
    let (user, mail) = (UserId(db.ids.next(START)), db.ids.next(START));
    let secret = TotpSecret::from_random([9; SECRET_BYTES]);
    let mut tx = db.db.write().await.unwrap();
    let (email, operator, created_at) = ("ann@example.com".to_owned(), false, START);
    let new = NewUser { id: user, email, operator, created_at };
    assert!(users::insert(&mut tx, &new).await.unwrap());
    assert!(!users::insert(&mut tx, &new).await.unwrap());
    assert!(users::set_totp_secret(&mut tx, user, &secret).await.unwrap());
    let content = "Subject\nhttp://localhost/reset/secret";
    mails::insert(&mut tx, mail, ("ann@example.com", content), START).await.unwrap();
    tx.commit().await.unwrap();
    let stored = db.query_raw("SELECT totp_secret, content FROM users, mails").await.concat();
    assert!(stored.iter().all(|s| s.starts_with("v1.") && !s.contains("secret")), "{stored:?}");
    // Secrets read back as stored, a time step is used once, and an email is claimed by one node.
    let mut tx = db.db.write().await.unwrap();
    let ann = users::by_id(&mut tx, user).await.unwrap().unwrap();
    assert!(ann.two_factor().is_none(), "the secret is not confirmed yet");
    assert_eq!(ann.totp.unwrap().secret.reveal(), secret.reveal());
    for (step, fresh) in [(7, true), (7, false), (6, false), (8, true)] {
        assert_eq!(users::use_totp_step(&mut tx, user, step).await.unwrap(), fresh, "{step}");
    }
    assert!(
        !users::set_totp_secret(&mut tx, user, &secret).await.unwrap(),
        "two-factor authentication is enabled already"
    );
    let claimed = mails::claim(&mut tx, (at(1), at(60)), 10).await.unwrap();
    assert_eq!((claimed.len(), claimed[0].content.as_str(), claimed[0].tries), (1, content, 1));
    assert_eq!(mails::claim(&mut tx, (at(59), at(120)), 10).await.unwrap().len(), 0);
    assert_eq!(mails::claim(&mut tx, (at(60), at(120)), 10).await.unwrap()[0].tries, 2);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_rotation_seals_everything_with_the_new_key() {
    let db = TestDb::new().await;
    let ann = account(&db, "ann@example.com", 0).await;
    let wanted = endpoint(ann);
    let id = register(&db, &wanted).await;
    let mut tx = db.db.write().await.unwrap();
    endpoints::rotate_secret(&mut tx, id, &secret(2), at(10)).await.unwrap();
    let user = accounts::user_by_email(&mut tx, "ann@example.com").await.unwrap().unwrap();
    let totp = TotpSecret::from_random([9; SECRET_BYTES]);
    users::set_totp_secret(&mut tx, user, &totp).await.unwrap();
    let mail = db.ids.next(START);
    mails::insert(&mut tx, mail, ("ann@example.com", "Subject\nBody"), START).await.unwrap();
    tx.commit().await.unwrap();
    let new = SealingKey::from_random([8; KEY_BYTES]);
    let mut tx = db.db.write().await.unwrap();
    assert_eq!(rotate_sealing_key(&mut tx, &new).await.unwrap(), 4);
    tx.commit().await.unwrap();
    let refused = open(&db, sealing_key()).await.err().unwrap();
    assert!(matches!(refused, StoreError::WrongKey), "{refused}");
    let opened = open(&db, new).await.unwrap();
    let mut tx = opened.write().await.unwrap();
    let found = endpoints::by_id(&mut tx, id).await.unwrap().unwrap();
    assert_eq!(found.secret, secret(2));
    assert_eq!(found.old_secret.map(|(old, _)| old), Some(wanted.secret));
    let found = users::by_id(&mut tx, user).await.unwrap().unwrap();
    assert_eq!(found.totp.unwrap().secret.reveal(), totp.reveal());
    let claimed = mails::claim(&mut tx, (at(1), at(60)), 10).await.unwrap();
    assert_eq!(claimed[0].content, "Subject\nBody");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_database_knows_whether_it_holds_users() {
    let db = TestDb::new().await;
    assert!(!Db::has_users(&db.url).await.unwrap());
    account(&db, "ann@example.com", 0).await;
    assert!(Db::has_users(&db.url).await.unwrap());
}
