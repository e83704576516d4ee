//! Secrets at rest: the database holds none in the clear, and opens for its own key alone.

use crate::rows::{account, at, look};
use crate::support::{BEGIN, TestDb, key, on_both_engines};
use crate::webhook_rows::{endpoint, registered, secret};
use heliograph_domain::id::{Ids, UserId};
use heliograph_domain::totp::{RANDOM, TotpSecret};
use heliograph_store::{Db, Error, KEY_BYTES, Options, SealingKey};
use heliograph_store::{endpoints, mails, users};

on_both_engines!(sealing:
    the_secrets_of_endpoints_are_sealed,
    what_was_not_sealed_yet_is_sealed_when_a_key_comes,
    a_node_with_another_key_is_refused,
    where_nobody_lives_any_key_is_taken,
    a_sealed_secret_opens_in_its_own_row_alone,
    second_factors_and_mails_are_sealed,
);

const SECRETS: &str = "SELECT secret, coalesce(old_secret, '') FROM endpoints ORDER BY id";

async fn open(db: &TestDb, key: SealingKey) -> heliograph_store::Result<Db> {
    let (url, clock) = (db.url.clone(), db.clock.clone());
    Db::open(Options { url, connections: 2, key, clock }).await
}

async fn the_secrets_of_endpoints_are_sealed(db: TestDb) {
    let ann = account(&db, "ann@example.com", 0).await;
    let id = registered(&db, &endpoint(ann)).await;
    let mut tx = db.db.write().await.unwrap();
    endpoints::rotate(&mut tx, id, &secret(2), at(10)).await.unwrap();
    tx.commit().await.unwrap();
    for sealed in look(&db, SECRETS).await.concat() {
        assert!(sealed.starts_with("v1.") && !sealed.contains("whsec_"), "{sealed}");
    }
}

async fn what_was_not_sealed_yet_is_sealed_when_a_key_comes(db: TestDb) {
    let ann = account(&db, "ann@example.com", 0).await;
    let wanted = endpoint(ann);
    let id = registered(&db, &wanted).await;
    let plain = format!("UPDATE endpoints SET secret = '{}'", wanted.secret.reveal());
    db.behind(&format!("DELETE FROM installation; {plain}")).await;
    let again = open(&db, key()).await.unwrap();
    assert!(look(&db, SECRETS).await[0][0].starts_with("v1."));
    let found = endpoints::by_number(&mut again.read().await.unwrap(), id).await.unwrap().unwrap();
    assert_eq!(found.secret, wanted.secret);
}

async fn a_node_with_another_key_is_refused(db: TestDb) {
    account(&db, "ann@example.com", 0).await;
    let refused = open(&db, SealingKey::from_random([8; KEY_BYTES])).await.err().unwrap();
    assert!(matches!(refused, Error::WrongKey), "{refused}");
    assert!(refused.to_string().contains("database.sealing_key"), "{refused}");
    open(&db, key()).await.unwrap();
}

async fn where_nobody_lives_any_key_is_taken(db: TestDb) {
    let other = SealingKey::from_random([8; KEY_BYTES]);
    open(&db, other.clone()).await.unwrap();
    open(&db, other).await.unwrap();
}

async fn a_sealed_secret_opens_in_its_own_row_alone(db: TestDb) {
    let ann = account(&db, "ann@example.com", 0).await;
    let (one, two) = (registered(&db, &endpoint(ann)).await, registered(&db, &endpoint(ann)).await);
    let other = format!("(SELECT secret FROM endpoints WHERE id = {})", two.0);
    db.behind(&format!("UPDATE endpoints SET secret = {other} WHERE id = {}", one.0)).await;
    let mut conn = db.db.read().await.unwrap();
    let found = endpoints::by_number(&mut conn, one).await;
    assert!(matches!(found, Err(Error::Corrupt(_))), "{found:?}");
}

async fn second_factors_and_mails_are_sealed(db: TestDb) {
    let (user, mail) = (UserId(db.ids.next(BEGIN)), db.ids.next(BEGIN));
    let secret = TotpSecret::from_random([9; RANDOM]);
    let mut tx = db.db.write().await.unwrap();
    assert!(users::insert(&mut tx, user, "ann@example.com", BEGIN).await.unwrap());
    assert!(!users::insert(&mut tx, user, "ann@example.com", BEGIN).await.unwrap());
    assert!(users::begin_totp(&mut tx, user, &secret).await.unwrap());
    let content = "Subject\nhttp://localhost/reset/secret";
    mails::insert(&mut tx, mail, ("ann@example.com", content), BEGIN).await.unwrap();
    tx.commit().await.unwrap();
    let stored = look(&db, "SELECT totp_secret, content FROM users, mails").await.concat();
    assert!(stored.iter().all(|s| s.starts_with("v1.") && !s.contains("secret")), "{stored:?}");
    // They come out as they went in; a step is used once, and a mail is taken by one node.
    let mut tx = db.db.write().await.unwrap();
    let ann = users::by_id(&mut tx, user).await.unwrap().unwrap();
    assert!(ann.second_factor().is_none(), "it is not confirmed yet");
    assert_eq!(ann.totp.unwrap().secret.reveal(), secret.reveal());
    for (step, fresh) in [(7, true), (7, false), (6, false), (8, true)] {
        assert_eq!(users::use_step(&mut tx, user, step).await.unwrap(), fresh, "{step}");
    }
    assert!(!users::begin_totp(&mut tx, user, &secret).await.unwrap(), "it is on already");
    let taken = mails::claim(&mut tx, (at(1), at(60)), 10).await.unwrap();
    assert_eq!((taken.len(), taken[0].content.as_str(), taken[0].tries), (1, content, 1));
    assert_eq!(mails::claim(&mut tx, (at(59), at(120)), 10).await.unwrap().len(), 0);
    assert_eq!(mails::claim(&mut tx, (at(60), at(120)), 10).await.unwrap()[0].tries, 2);
}
