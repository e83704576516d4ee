//! Accounts and API keys: creation, credit, authentication and revocation.

use crate::node::Node;
use heliograph_domain::account::{Mode, Scope, Scopes};
use heliograph_domain::account_ref::AccountRef;
use heliograph_domain::id::{AccountId, ApiKeyId, Ids};
use heliograph_domain::money::Amount;
use heliograph_domain::secret::ApiKey;
use heliograph_service::identity::accounts;
use heliograph_service::identity::api_keys::{self, KeySpec, Keyring};
use heliograph_service::kernel::audit::Actor;
use heliograph_service::kernel::error::{Error, Result};
use heliograph_service::operations::nodes;
use heliograph_testing::TestDb;

fn is_unauthenticated<T>(done: &Result<T>) -> bool {
    matches!(done, Err(Error::Unauthenticated))
}

async fn create_key(
    node: &Node,
    account: AccountId,
    mode: Mode,
    scopes: Scopes,
) -> (ApiKeyId, ApiKey) {
    let name = "till 1".parse().unwrap();
    let spec = KeySpec { mode, scopes, name: &name };
    api_keys::create(&node.cx, &Actor::operator(account), spec, &[42; 64]).await.unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn caller_is_authenticated_by_the_key() {
    let db = TestDb::new().await;
    let node = Node::start(&db).await;
    let account = accounts::create(&node.cx, "ann@x.org", "GBP", false).await.unwrap().unwrap();
    let scopes = [Scope::Send].into_iter().collect();
    let (id, key) = create_key(&node, account, Mode::Test, scopes).await;
    let keyring = Keyring::default();
    for caller in [
        keyring.authenticate(&node.cx, key.reveal()).await.unwrap(),
        keyring.authenticate_cached(&node.cx, key.reveal()).await.unwrap(),
        Keyring::default().authenticate_cached(&node.cx, key.reveal()).await.unwrap(),
    ] {
        assert_eq!((caller.key, caller.account, caller.mode), (Some(id), account, Mode::Test));
        assert_eq!((caller.scopes, caller.currency.as_str()), (scopes, "GBP"));
        assert!(caller.require_scope(Scope::Send).is_ok());
        assert!(matches!(caller.require_scope(Scope::Read), Err(Error::Scope("read"))));
    }
    let listed = api_keys::list(&node.cx, account).await.unwrap();
    assert_eq!((listed.len(), listed[0].name.as_str()), (1, "till 1"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn revoked_key_is_cached_only_for_requests_that_are_checked_again() {
    let db = TestDb::new().await;
    let node = Node::start(&db).await;
    let account = accounts::create(&node.cx, "ann@x.org", "EUR", false).await.unwrap().unwrap();
    let (id, key) = create_key(&node, account, Mode::Live, Scopes::ALL).await;
    let (here, there) = (Keyring::default(), Keyring::default());
    for keyring in [&here, &there] {
        keyring.authenticate_cached(&node.cx, key.reveal()).await.unwrap();
    }
    let other_account =
        accounts::create(&node.cx, "bob@x.org", "EUR", false).await.unwrap().unwrap();
    let revoked = api_keys::revoke(&node.cx, &Actor::operator(other_account), id).await;
    assert!(matches!(revoked, Err(Error::NotFound)));
    let by = Actor::operator(account);
    api_keys::revoke(&node.cx, &by, id).await.unwrap();
    assert!(
        here.authenticate_cached(&node.cx, key.reveal()).await.is_ok(),
        "the writer checks the key again"
    );
    assert!(is_unauthenticated(&here.authenticate(&node.cx, key.reveal()).await));
    assert!(
        is_unauthenticated(&here.authenticate_cached(&node.cx, key.reveal()).await),
        "the check removes the key from the cache"
    );
    there.forget(id);
    assert!(is_unauthenticated(&there.authenticate_cached(&node.cx, key.reveal()).await));
    for id in [id, ApiKeyId(db.ids.next(node.cx.db.now()))] {
        assert!(matches!(api_keys::revoke(&node.cx, &by, id).await, Err(Error::NotFound)));
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn malformed_key_is_not_looked_up() {
    let db = TestDb::new().await;
    let node = Node::start(&db).await;
    let account = accounts::create(&node.cx, "ann@x.org", "EUR", false).await.unwrap().unwrap();
    let (_, key) = create_key(&node, account, Mode::Live, Scopes::ALL).await;
    let mut mistyped = key.reveal().to_owned();
    mistyped.pop();
    let unknown = ApiKey::from_random(Mode::Live, &[7; 64]).unwrap();
    for text in ["", "hg_live_", mistyped.as_str(), unknown.reveal()] {
        assert!(
            is_unauthenticated(&Keyring::default().authenticate_cached(&node.cx, text).await),
            "{text}"
        );
        assert!(
            is_unauthenticated(&Keyring::default().authenticate(&node.cx, text).await),
            "{text}"
        );
    }
    let by = Actor::operator(account);
    let name = "till 1".parse().unwrap();
    let spec = KeySpec { mode: Mode::Live, scopes: Scopes::ALL, name: &name };
    let short = api_keys::create(&node.cx, &by, spec, &[1; 29]).await;
    assert!(matches!(short, Err(Error::Internal(_))));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn account_is_created_once_and_never_overdrawn() {
    let db = TestDb::new().await;
    let node = Node::start(&db).await;
    let account = accounts::create(&node.cx, "ann@x.org", "EUR", false).await.unwrap().unwrap();
    assert_eq!(accounts::create(&node.cx, "ann@x.org", "EUR", true).await.unwrap(), None);
    let owner = |email: &str| AccountRef::Owner(email.to_owned());
    let nobody = accounts::resolve(&node.cx, &owner("bob@x.org")).await;
    assert!(matches!(nobody, Err(Error::NotFound)));
    let nobody = accounts::resolve(&node.cx, &AccountRef::Id(AccountId(account.0 + 1))).await;
    assert!(matches!(nobody, Err(Error::NotFound)));
    let cash = "cash".parse().unwrap();
    accounts::credit(&node.cx, &Actor::operator(account), Amount(500), &cash).await.unwrap();
    accounts::credit(&node.cx, &Actor::operator(account), Amount(-500), &cash).await.unwrap();
    let overdrawn = accounts::credit(&node.cx, &Actor::operator(account), Amount(-1), &cash).await;
    assert!(matches!(overdrawn, Err(Error::InsufficientBalance)));
    let found = accounts::resolve(&node.cx, &owner("ann@x.org")).await.unwrap();
    assert_eq!((found.id, found.available), (account, Amount::ZERO));
    node.check().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn node_keeps_its_number_and_carrier_ids() {
    let db = TestDb::new().await;
    let first = Node::start(&db).await;
    let other = Node::with(&db, db.reopen().await, 2, 1).await;
    let again = Node::start(&db).await;
    assert_eq!((first.cx.node, first.carrier), (again.cx.node, again.carrier));
    assert_ne!(first.cx.node, other.cx.node);
    assert_eq!(first.carrier, other.carrier);
    // The clock of the test is fixed, that of PostgreSQL is not.
    let offset = nodes::clock_offset(&first.cx).await.unwrap();
    assert_eq!(offset == 0, !db.db.is_shared());
}
