//! Accounts and keys: opening, paying in, recognising who calls, and revoking.

use crate::node::Node;
use crate::support::{TestDb, on_both_engines};
use heliograph_domain::account::{Mode, Scope, Scopes};
use heliograph_domain::id::{AccountId, ApiKeyId, Ids};
use heliograph_domain::money::Amount;
use heliograph_domain::secret::ApiKey;
use heliograph_service::api_keys::{self, Keyring};
use heliograph_service::audit::Actor;
use heliograph_service::error::{Error, Result};
use heliograph_service::{accounts, nodes};

on_both_engines!(keys:
    a_caller_is_recognised_by_the_key,
    a_revoked_key_is_remembered_only_for_what_is_checked_again,
    what_is_no_key_is_not_looked_up,
    an_account_is_opened_once_and_never_overdrawn,
    a_node_keeps_its_number_and_its_carriers,
);

fn refused<T>(done: &Result<T>) -> bool {
    matches!(done, Err(Error::Unauthenticated))
}

async fn make(node: &Node, account: AccountId, what: (Mode, Scopes)) -> (ApiKeyId, ApiKey) {
    api_keys::create(&node.cx, &Actor::operator(account), what, "till 1", &[42; 64]).await.unwrap()
}

async fn a_caller_is_recognised_by_the_key(db: TestDb) {
    let node = Node::start(&db).await;
    let account = accounts::create(&node.cx, "ann@x.org", "GBP", false).await.unwrap().unwrap();
    let scopes = [Scope::Send].into_iter().collect();
    let (id, key) = make(&node, account, (Mode::Test, scopes)).await;
    let keyring = Keyring::default();
    for caller in [
        keyring.verify(&node.cx, key.reveal()).await.unwrap(),
        keyring.recall(&node.cx, key.reveal()).await.unwrap(),
        Keyring::default().recall(&node.cx, key.reveal()).await.unwrap(),
    ] {
        assert_eq!((caller.key, caller.account, caller.mode), (Some(id), account, Mode::Test));
        assert_eq!((caller.scopes, caller.currency.as_str()), (scopes, "GBP"));
        assert!(caller.needs(Scope::Send).is_ok());
        assert!(matches!(caller.needs(Scope::Read), Err(Error::Scope("read"))));
    }
    let listed = api_keys::list(&node.cx, account).await.unwrap();
    assert_eq!((listed.len(), listed[0].name.as_str()), (1, "till 1"));
}

async fn a_revoked_key_is_remembered_only_for_what_is_checked_again(db: TestDb) {
    let node = Node::start(&db).await;
    let account = accounts::create(&node.cx, "ann@x.org", "EUR", false).await.unwrap().unwrap();
    let (id, key) = make(&node, account, (Mode::Live, Scopes::ALL)).await;
    let (here, there) = (Keyring::default(), Keyring::default());
    for keyring in [&here, &there] {
        keyring.recall(&node.cx, key.reveal()).await.unwrap();
    }
    let stranger = accounts::create(&node.cx, "bob@x.org", "EUR", false).await.unwrap().unwrap();
    let theirs = api_keys::revoke(&node.cx, &Actor::operator(stranger), id).await;
    assert!(matches!(theirs, Err(Error::NotFound)));
    let by = Actor::operator(account);
    api_keys::revoke(&node.cx, &by, id).await.unwrap();
    assert!(here.recall(&node.cx, key.reveal()).await.is_ok(), "the writer will notice");
    assert!(refused(&here.verify(&node.cx, key.reveal()).await));
    assert!(refused(&here.recall(&node.cx, key.reveal()).await), "now it knows");
    there.forget(id);
    assert!(refused(&there.recall(&node.cx, key.reveal()).await));
    for id in [id, ApiKeyId(db.ids.next(node.cx.db.now()))] {
        assert!(matches!(api_keys::revoke(&node.cx, &by, id).await, Err(Error::NotFound)));
    }
}

async fn what_is_no_key_is_not_looked_up(db: TestDb) {
    let node = Node::start(&db).await;
    let account = accounts::create(&node.cx, "ann@x.org", "EUR", false).await.unwrap().unwrap();
    let (_, key) = make(&node, account, (Mode::Live, Scopes::ALL)).await;
    let mut mistyped = key.reveal().to_owned();
    mistyped.pop();
    let stranger = ApiKey::from_random(Mode::Live, &[7; 64]).unwrap();
    for text in ["", "hg_live_", mistyped.as_str(), stranger.reveal()] {
        assert!(refused(&Keyring::default().recall(&node.cx, text).await), "{text}");
        assert!(refused(&Keyring::default().verify(&node.cx, text).await), "{text}");
    }
    let by = Actor::operator(account);
    let short = api_keys::create(&node.cx, &by, (Mode::Live, Scopes::ALL), "", &[1; 29]).await;
    assert!(matches!(short, Err(Error::Internal(_))));
}

async fn an_account_is_opened_once_and_never_overdrawn(db: TestDb) {
    let node = Node::start(&db).await;
    let account = accounts::create(&node.cx, "ann@x.org", "EUR", false).await.unwrap().unwrap();
    assert_eq!(accounts::create(&node.cx, "ann@x.org", "EUR", true).await.unwrap(), None);
    assert!(matches!(accounts::by_email(&node.cx, "bob@x.org").await, Err(Error::NotFound)));
    accounts::credit(&node.cx, account, Amount(500), "cash").await.unwrap();
    accounts::credit(&node.cx, account, Amount(-500), "cash").await.unwrap();
    let overdrawn = accounts::credit(&node.cx, account, Amount(-1), "cash").await;
    assert!(matches!(overdrawn, Err(Error::InsufficientBalance)));
    let found = accounts::by_email(&node.cx, "ann@x.org").await.unwrap();
    assert_eq!((found.id, found.available), (account, Amount::ZERO));
    node.check().await;
}

async fn a_node_keeps_its_number_and_its_carriers(db: TestDb) {
    let first = Node::start(&db).await;
    let other = Node::with(&db, db.again().await, (2, 1)).await;
    let again = Node::start(&db).await;
    assert_eq!((first.cx.node, first.carrier), (again.cx.node, again.carrier));
    assert_ne!(first.cx.node, other.cx.node);
    assert_eq!(first.carrier, other.carrier);
    // The clock of the test stands still, that of PostgreSQL does not.
    let offset = nodes::clock_offset(&first.cx).await.unwrap();
    assert_eq!(offset == 0, !db.db.is_shared());
}
